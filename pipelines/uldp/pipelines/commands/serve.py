"""The command that shows results over HTTP: serve."""

import logging
import os
from pathlib import Path

import click

from uldp.pipelines.commands.output import say, show_log
from uldp.pipelines.options import FOLDER, SPEC
from uldp.pipelines.process import end_at_signals
from uldp.schemas.errors import RequestError
from uldp.schemas.extras import needed
from uldp.schemas.specs.mistakes import plain

#: The variable of the environment that may hold the token.
TOKEN = "ULDP_SERVE_TOKEN"  # noqa: S105 (a name)
_LEAST = 16


@click.command()
@click.argument("out", nargs=-1, required=True, type=FOLDER)
@click.option("--port", default=8077, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 for any.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen at. One that others reach needs a token.",
)
@click.option(
    "--token-file",
    type=SPEC,
    metavar="FILE",
    help=f"File of a token that each request must bring.  [default: ${TOKEN}]",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="A name of this machine, or of a proxy, that requests may have; may be repeated.",
)
def serve(out: tuple[Path, ...], port: int, host: str, token_file: Path | None, names: tuple[str, ...]) -> None:
    """Show results live: the page of uldp report, a JSON API, and metrics. Nothing is written.

    The page follows a job that runs. A browser asks for a user and a password: the token is the password of any user.

    Example: uldp serve results
    """
    with needed("serving", "serve"):
        from uldp.pipelines.serve.app import serve as serve_folders

    show_log("uldp.pipelines.web", logging.WARNING)
    serve_folders(out, host=host, port=port, names=names, token=_token(token_file), say=say, until=end_at_signals)


def _token(file: Path | None) -> str | None:
    """Read the token; RequestError if it is too short to be one, or not ASCII."""
    where = f"${TOKEN}" if file is None else plain(str(file))
    text = os.environ.get(TOKEN) if file is None else file.read_text(encoding="utf-8", errors="replace")
    if text is None:
        return None
    token = text.strip()
    if len(token) < _LEAST or not token.isascii() or any(each.isspace() for each in token):
        raise RequestError(f"{where}: a token has {_LEAST} characters or more, ASCII without spaces")
    return token

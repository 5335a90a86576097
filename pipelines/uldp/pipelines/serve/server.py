"""The server of results: its folders, its address, and its end."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from uldp.pipelines.live.served import served
from uldp.pipelines.serve.app import application
from uldp.pipelines.web.server import bound, is_loopback, server_of, url_of
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.mistakes import quote

#: The connections that readers may hold at once.
MOST_CONNECTIONS = 64


def serve(
    paths: Sequence[Path],
    *,
    host: str,
    port: int,
    names: Collection[str],
    token: str | None,
    say: Callable[[str], None],
    until: Callable[[Callable[[], None]], object],
) -> None:
    """Serve results folders until somebody ends it, by what ``until`` is called with.

    Port 0 is any, ``names`` are further hosts, and requests must bring the token. RequestError if others would reach
    the address without a token; EndpointError if the port cannot be opened; ResultsError if a path is no directory.
    """
    if token is None and not is_loopback(host):
        raise RequestError(
            f"--host {quote(host)}: others reach this address, so a token is needed; write one of 16 characters or more"
            " to a file, and name it by --token-file"
        )
    folders = served(paths)
    with bound(host, port) as opened:
        server, url = server_of(application(folders, names=names, token=token), MOST_CONNECTIONS), url_of(opened)

        def end() -> None:
            server.should_exit = True

        until(end)
        for name in folders:
            say(f"{folders[name].path}: {url}results/{name}/")
        say(f"serving at {url}; stop with Ctrl-C")
        server.run(sockets=[opened])
    say("stopped")

"""The command that takes messages over HTTP: collect."""

import logging
from pathlib import Path
from typing import Any

import click

from uldp.pipelines.commands.output import load_or_follow, say, show_log
from uldp.pipelines.options import KAFKA_CONFIG, REGISTRY_IDS, SPEC, SPECS_IN, here_or_topic
from uldp.pipelines.process import end_at_signals
from uldp.schemas.extras import needed


@click.command()
@click.option("--spec", "specs", multiple=True, type=SPEC, help="A collection to take; may be repeated.")
@SPECS_IN
@click.option(
    "--to",
    required=True,
    callback=here_or_topic,
    help="A local stream's directory, kafka:HOST:PORT/TOPIC or pubsub:projects/P/topics/T.",
)
@click.option("--port", default=8070, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 for any.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen at. One that others reach needs --tokens.",
)
@click.option(
    "--tokens", type=SPEC, metavar="FILE", help="CSV file token,sender: who may post, and the sender of each message."
)
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="Origin of pages whose browsers may post, as https://app.example; may be repeated.",
)
@click.option(
    "--megabytes",
    default=60,
    show_default=True,
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="Million bytes that a token may post from one address in a minute. A gateway may need more.",
)
@click.option(
    "--refused",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep a sample of the messages that get 422 in this folder, 64 MiB at the most.",
)
@REGISTRY_IDS
@KAFKA_CONFIG
def collect(
    specs: tuple[Path, ...], specs_in: str | None, to: str, tokens: Path | None, kafka_config: Path | None, **edge: Any
) -> None:
    """Take messages of devices by HTTP, and append them to a stream: an edge for who has no broker.

    A device posts a report or a batch to /v1/reports, as it would send it to a broker. The answer is 202 when the
    message is on disk, or when the broker has it; 422 with the reason, if it can never be counted; 413 if it is too
    large; 429 or 503 if the device has to send it again later. No address of a device is stored. A local stream that is
    not there is begun, and stays open when the command ends.

    Example: uldp collect --spec examples/manhattan/spec.yaml --to posted
    """
    with needed("collecting", "beam", "serve"):
        from uldp.pipelines.intake.server import collect as take
    from uldp.pipelines.intake.tokens import Tokens
    from uldp.transforms.io.endpoints import parse_endpoint

    for package in ("intake", "web"):
        show_log(f"uldp.pipelines.{package}", logging.WARNING)
    take(
        load_or_follow(specs, specs_in, None),
        parse_endpoint(to, kafka_config),
        tokens=None if tokens is None else Tokens.read(tokens),
        say=say,
        until=end_at_signals,
        **edge,
    )

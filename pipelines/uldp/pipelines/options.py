"""Types and options that several commands of the command line share."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from uldp.schemas.specs.durations import milliseconds, parse_duration
from uldp.transforms.io.schemes import scheme_of

SPEC = click.Path(dir_okay=False, path_type=Path)


class _Folder(click.Path):
    """A directory of this machine. A URL or a topic must not become a directory of that name."""

    name = "directory"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        url = re.match(r"[A-Za-z][A-Za-z0-9+.-]*(?=://)", str(value))
        if scheme := url[0] if url else scheme_of(str(value)):
            self.fail(f"{value}: {scheme}: does not name a directory on this machine; name one", param, ctx)
        return super().convert(value, param, ctx)


FOLDER = _Folder(file_okay=False, path_type=Path)
KAFKA_CONFIG = click.option(
    "--kafka-config",
    type=SPEC,
    metavar="FILE",
    help="File of settings for Kafka's client (TLS, SASL), one NAME=VALUE per line; it must be on each worker too.",
)


def _registry_ids(ctx: click.Context, param: click.Parameter, path: Path | None) -> Mapping[int, str] | None:
    """Read what the ids of a schema registry mean."""
    from uldp.pipelines.registry_ids import read_registry_ids

    return None if path is None else read_registry_ids(path)


REGISTRY_IDS = click.option(
    "--registry-ids",
    type=SPEC,
    callback=_registry_ids,
    metavar="FILE",
    help="CSV file id,schema of ids of a schema registry, so that messages in its framing count.",
)


def here_or_topic(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Refuse a URL: messages are appended to a directory of this machine, or to a topic."""
    if scheme_of(value) is None:
        FOLDER.convert(value, param, ctx)
    return value


BEAM = {"ignore_unknown_options": True, "allow_extra_args": True}


def duration_ms(text: str) -> int:
    """Read a duration in milliseconds."""
    try:
        return milliseconds(parse_duration(text))
    except ValueError as error:
        raise click.BadParameter(f"{text!r}: {error}") from error


def time_ms(text: str) -> int:
    """Read an ISO 8601 time, UTC unless it says otherwise, in milliseconds."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not an ISO 8601 time; write 2026-01-05T09:00:00Z") from error
    time = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    if time < 0:
        raise click.BadParameter(f"{text!r} is before 1970; write a later time, as 2026-01-05T09:00:00Z")
    return time


PUBLISHED_BY = click.option(
    "--published-by",
    type=time_ms,
    metavar="TIME",
    help="When all messages had been published whose files hold no times, as those of Kafka Connect do not; ISO 8601.",
)


def results_place(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Refuse a topic: results are files."""
    if value is not None and scheme_of(value) is not None:
        raise click.BadParameter(f"{value}: results go to a directory, or to a URL such as gs://BUCKET/results")
    return value


SPECS_IN = click.option(
    "--specs",
    "specs_in",
    callback=results_place,
    metavar="DIR_OR_URL",
    help="Folder of specs, in place of --spec: looked at every minute while the command runs; for a cluster, read when"
    " the job is submitted.",
)


def job_options(*, sources: str, results: str, needs_spec: bool = True) -> Callable[[Any], Any]:
    """Add what both jobs take; they differ in what they read, in where they write, and in where specs may be."""

    def add(command: Any) -> Any:
        for option in (
            KAFKA_CONFIG,
            REGISTRY_IDS,
            click.option(
                "--keep-ids",
                is_flag=True,
                help="Keep the ids of counted reports in --private-to, 16 bytes each, so that uldp merge can compare.",
            ),
            click.option(
                "--shards",
                type=click.IntRange(1, 1 << 15),
                help="Parts into which a cluster divides report ids, for as many workers. A stream keeps the number."
                "  [default: 16]",
            ),
            click.option("--rejected-to", metavar="TOPIC", help="Topic for rejected reports too."),
            click.option(
                "--estimates-to",
                metavar="URI",
                help="Place for estimates too: a topic, duckdb:FILE, parquet:FOLDER, postgresql://USER@HOST/DATABASE or"
                " bigquery:PROJECT.DATASET.TABLE.",
            ),
            click.option(
                "--sender-key",
                type=SPEC,
                metavar="FILE",
                help="File of 32 bytes or more, the key of digests of senders.  [default: drawn, in --private-to]",
            ),
            click.option(
                "--private-to",
                callback=results_place,
                metavar="DIR_OR_URL",
                help="Place of late and rejected reports, which hold what clients sent, and of counts of few reports."
                "  [default: --to]",
            ),
            click.option("--to", "out", required=True, callback=results_place, help=results),
            click.option("--from", "source", required=True, help=sources),
            click.option(
                "--spec", "specs", required=needs_spec, multiple=True, type=SPEC, help="A spec; may be repeated."
            ),
            click.pass_context,
        ):
            command = option(command)
        return command

    return add


def selection_options(command: Any) -> Any:
    """Add what chooses windows of a results directory; the names are those of ``Selection``."""
    for option in (
        click.option("--estimator", metavar="NAME", help="Only estimates of this estimator."),
        click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N windows of each collection."),
        click.option("--until", type=time_ms, metavar="TIME", help="Only windows that begin before this time."),
        click.option("--since", type=time_ms, metavar="TIME", help="Only windows that end after this time."),
        click.option("--collection", metavar="NAME", help="Only windows of this collection."),
    ):
        command = option(command)
    return command

"""The commands that find what is lost, and give it up: audit and give-up."""

import json
from pathlib import Path

import click

from uldp.pipelines.commands.output import say
from uldp.pipelines.options import FOLDER, KAFKA_CONFIG, PUBLISHED_BY
from uldp.schemas.errors import DataError


@click.command()
@click.argument("source")
@click.argument("out", type=FOLDER)
@click.option("--private", type=FOLDER, help="The directory of --private-to, if the job had one.")
@click.option(
    "--estimates-to", "places", multiple=True, metavar="URI", help="Place on the network that the job published to."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@KAFKA_CONFIG
@PUBLISHED_BY
def audit(
    source: str,
    out: Path,
    private: Path | None,
    places: tuple[str, ...],
    as_json: bool,
    kafka_config: Path | None,
    published_by: int | None,
) -> None:
    """Count SOURCE again, and name what is lost or double in the results OUT of its job.

    SOURCE is what the job read, or a copy: a local stream, files of messages, or kafka:HOST:PORT/TOPIC. The command
    changes nothing, and asks each place of rows that the job was started with which windows it has; one on the network
    only if you name it. Windows of a stream that have not fired yet are open, which is no fault. The exit code is 1 if
    a report is in no pane, or in too many, if a file is missing or damaged, or if a place of rows lacks a window or
    does not answer.

    Example: uldp audit stream results
    """
    from uldp.pipelines.audit.audit import audit as recount
    from uldp.pipelines.results.text import number_of
    from uldp.transforms.io.endpoints import parse_endpoint
    from uldp.transforms.io.files import published

    endpoint = published(parse_endpoint(source, kafka_config), published_by)
    found = recount(endpoint, out, private=private, places=[parse_endpoint(place) for place in places])
    counted = f"{number_of(found.messages, 'message')}, {number_of(found.reports, 'report')}"
    if as_json:
        fields = {"messages": found.messages, "reports": found.reports, "faults": found.faults, "notes": found.notes}
        say(json.dumps(fields))
    else:
        for note in found.notes:
            say(f"{out}: {note}")
        if not found.faults:
            say(f"{source}: {counted}: {'all accounted' if not found.notes else 'all accounted so far'}")
    if found.faults:
        raise DataError("\n".join([*found.faults, f"{source}: {counted}: not all accounted in {out}"]))


@click.command("give-up")
@click.argument("stream", type=FOLDER)
def give_up(stream: Path) -> None:
    """Give up all segments that the local stream STREAM lacks, so that its jobs go on without them.

    Jobs account the messages as missing, and flag the windows. First try to restore the segments: this is final. No job
    reads a segment that was given up, even if its file comes back, because jobs may have accounted it already. Backfill
    such a file by itself, and merge the results. The command may run beside jobs and writers.

    Example: uldp give-up stream
    """
    from uldp.pipelines.audit.reading import given_up_text
    from uldp.transforms.io.local.stream import LocalStream
    from uldp.transforms.io.message_files import StreamError

    found = LocalStream.open(stream)
    lost = found.give_up_missing()
    for each in lost:
        say(f"{stream}: {given_up_text(each, 'are')}")
    if not lost:
        already = "".join(f"; {given_up_text(each, 'were')}" for each in found.given_up)
        raise StreamError(f"{stream}: lacks no segment, so nothing is given up{already}")

"""The command that gives up lost segments of a local stream: give-up."""

from pathlib import Path

import click

from uldp.pipelines.commands.output import say
from uldp.pipelines.options import FOLDER


@click.command("give-up")
@click.argument("stream", type=FOLDER)
def give_up(stream: Path) -> None:
    """Give up all segments that the local stream STREAM lacks, so that its jobs go on without them.

    Jobs account the messages as missing, and flag the windows. First try to restore the segments: this is final. No job
    reads a segment that was given up, even if its file comes back, because jobs may have accounted it already. Backfill
    such a file by itself, and merge the results. The command may run beside jobs and writers.

    Example: uldp give-up stream
    """
    from uldp.pipelines.audit.given_up import given_up_text
    from uldp.transforms.io.local.stream import LocalStream
    from uldp.transforms.io.message_files import StreamError

    found = LocalStream.open(stream)
    lost = found.give_up_missing()
    for each in lost:
        say(f"{stream}: {given_up_text(each, 'are')}")
    if not lost:
        already = "".join(f"; {given_up_text(each, 'were')}" for each in found.given_up)
        raise StreamError(f"{stream}: lacks no segment, so nothing is given up{already}")

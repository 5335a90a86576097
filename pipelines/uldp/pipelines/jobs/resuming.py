"""A local job that is started again: where it goes on, and what it leaves out because an earlier run has written it.

Windows that no report can change any more are sealed. A job that resumes reads what the other windows need, and writes
neither the sealed windows, of which it may see a part alone, nor late and rejected reports of segments from before.

Segments that were given up, and that the job would read again, are missing in the windows that are not sealed.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib import metadata
from pathlib import Path
from typing import Self

import apache_beam as beam

from uldp.collector.shared_specs import HotSpecs, SharedSpecs
from uldp.pipelines.jobs.kept_specs import KeptSpec
from uldp.pipelines.jobs.outputs import Claim
from uldp.pipelines.jobs.written import Results
from uldp.pipelines.results.files import ResultsError
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader
from uldp.schemas.records import Message, iso
from uldp.schemas.rejected import Rejected
from uldp.schemas.specs.collection import CollectionKey
from uldp.schemas.statistic import Statistic
from uldp.transforms.aggregated import Aggregated
from uldp.transforms.io.local.events import CLOCK_TOLERANCE
from uldp.transforms.io.local.journal import JOURNAL, Journal, PaneWritten, begins_with, given_up_taken, segments_read
from uldp.transforms.io.local.resume import ResumePoints
from uldp.transforms.io.local.resume_point import RESUME, ResumePoint
from uldp.transforms.io.local.segments import name_of, number_of
from uldp.transforms.io.local.stream import LocalStream


def resume_points(
    specs: SharedSpecs, stream: LocalStream, claim: Claim, watermark_delay_ms: int, say: Callable[[str], None]
) -> ResumePoints:
    """Return the resume points of a job, from the one that an earlier run of the same job has written.

    If results are gone, the job reads its stream from the beginning, and writes them again; ResultsError if segments
    are gone too, or the point is not of this stream and clock, DataError if the point or the journal is damaged.
    StreamError if the stream lacks a segment.
    """
    path, results = Path(claim.results, RESUME), Results.of(claim)
    start = ResumePoint.read(path)
    job = _digest(specs, claim, watermark_delay_ms)
    if start is not None and start.job != job:
        say(f"{path} is of a job with other specs or options: {stream.path} is read from its beginning")
        start = None
    if start is not None:
        _refuse_missing(start, stream, path)
        _refuse_future(start, stream, path)
    else:
        stream.refuse_holes()
    whole = stream.whole and not any(_read_since(stream, results.journal))
    lost = None if start is None and whole else _lost(start, results, specs)
    if lost is not None and not whole:
        raise ResultsError(
            f"{lost}, and segments of {stream.path} are gone from which the job counted it; restore them, or the whole"
            " results from a backup, or choose another --to"
        )
    if lost is not None:
        say(f"{lost}: {stream.path} is read from its beginning, to write it again")
        start = None
    if start is not None:
        say(f"resuming at {start.segment} of {stream.path}; it is read again from {start.first} on")
    elif stream.first:
        say(f"{stream.path} begins at segment {stream.first}: uldp prune has removed what is before")
    known = segments_read(results.journal, "" if start is None else start.first)
    taken = [each.first for each in given_up_taken(results.journal)] if stream.given_up else []
    read_of_first = 0 if start is None else _read_of_first(start, stream, results.journal)
    reach = reach_of(specs)
    journal = Journal(results.journal, anew=start is None and whole)
    return ResumePoints(path, job, reach, journal, start, known, taken, read_of_first)


def _read_since(stream: LocalStream, journal: Path) -> Iterator[str]:
    """Yield the segments that a journal says were read before they were given up."""
    if stream.given_up:
        read = segments_read(journal, name_of(stream.given_up[0].first))
        yield from (name for name in read if stream.given_up_at(int(name)) is not None)


def _read_of_first(start: ResumePoint, stream: LocalStream, journal: Path) -> int:
    """Return how many messages were read before the point of segments that were given up together with its first."""
    number = number_of(start.first)
    given_up = stream.given_up_at(number)
    if given_up is None or given_up.first == number:
        return 0
    read = segments_read(journal, name_of(given_up.first))
    return sum(entry.messages for name, entry in read.items() if int(name) < number)


def has_begun(claim: Claim) -> bool:
    """Return whether an earlier run of a job may have read a message: each opens its journal before it does."""
    return Path(claim.results, JOURNAL).exists() or Path(claim.results, RESUME).exists()


def reach_of(specs: SharedSpecs) -> int:
    """Return how many milliseconds before the watermark messages may have been published that are needed again."""
    return max(served.reach for served in specs.served.values())


def _lost(start: ResumePoint | None, results: Results, specs: SharedSpecs) -> str | None:
    """Return what the journal says is written, and is gone although the job does not write it again."""
    if start is None:
        return results.lost(None, lambda pane: True)
    if not begins_with(results.journal, start.journal):
        return f"{results.journal}: is older than {RESUME}, or another one"
    unwritten = Unwritten.after(start, specs)
    return results.lost(start.journal.size, lambda pane: not unwritten.has_pane(pane))


def _digest(specs: SharedSpecs, claim: Claim, watermark_delay_ms: int) -> str:
    """Return a digest of what decides a job's results, beside ``job.json`` and specs that change while it runs."""
    private = "" if claim.private == claim.results else claim.private
    digest = hashlib.sha256(json.dumps([metadata.version("uldp-stream"), private, watermark_delay_ms]).encode())
    for spec in () if isinstance(specs, HotSpecs) else specs:
        digest.update(KeptSpec.of(spec).digest)
    return digest.hexdigest()[:32]


def _refuse_missing(start: ResumePoint, stream: LocalStream, path: Path) -> None:
    last, first = stream.path / start.last, number_of(start.first)
    there = {path.name for path in stream.segments()}
    gone = [name for number in range(first, stream.first) if (name := name_of(number)) not in there]
    if gone:
        raise ResultsError(
            f"{stream.path / gone[0]}: removed by uldp prune for another job, and this job needs it, as {path} says;"
            f" restore the segments before {name_of(stream.first)}, or choose another --to, and the job begins there"
        )
    if not last.exists() and stream.given_up_at(number_of(start.last)) is None:
        raise ResultsError(
            f"{last}: missing, and the job has read it, as {path} says; restore the segment, or choose another --to"
        )
    stream.refuse_holes(first)


def _refuse_future(start: ResumePoint, stream: LocalStream, path: Path) -> None:
    """Refuse a watermark that a wrong clock has set: all messages until then would count as late."""
    ahead = 0 if start.watermark is None or stream.simulated_clock else start.watermark - stream.now()
    if ahead > CLOCK_TOLERANCE:
        raise ResultsError(
            f"{path}: the watermark is {iso(start.watermark or 0)}, ahead of the clock by"
            f" {timedelta(seconds=ahead // 1000)}, and reports would count as late until then; if the clock is right,"
            " choose another --to, and the job reads the stream from its beginning"
        )


@dataclass(frozen=True)
class Unwritten:
    """Leaves out what an earlier run has written."""

    #: A time, in ms, between the starts of the last sealed and the next window of each version; None if none is sealed.
    opened: Mapping[CollectionKey, int] | None
    segment: str  # the first segment of which late and rejected reports may not be written yet

    @classmethod
    def after(cls, point: ResumePoint, specs: SharedSpecs) -> Self:
        """Return what is not written at a resume point."""
        if point.watermark is None:
            return cls(None, point.segment)
        opened = {key: point.watermark - each.sealed_after for key, each in specs.served.items()}
        return cls(opened, point.segment)

    def of(self, aggregated: Aggregated) -> Aggregated:
        """Keep the panes of windows that are not sealed, and the late and rejected reports of new segments."""
        return Aggregated(
            aggregated.estimates | "OpenEstimates" >> beam.Filter(self.has_pane).with_output_types(Estimate),
            aggregated.counts | "OpenCounts" >> beam.Filter(self.has_pane).with_output_types(Statistic),
            aggregated.late | "NewLate" >> beam.Filter(self.has_report).with_output_types(Message),
            aggregated.rejected | "NewRejected" >> beam.Filter(self.has_report).with_output_types(Rejected),
            aggregated.missing,
            aggregated.kept,
        )

    def has_pane(self, pane: PaneHeader | PaneWritten) -> bool:
        """Return whether the window of a pane is not sealed."""
        key = pane.collection, pane.version
        # A collection that is not there has come later, and no window of it was written before.
        return self.opened is None or key not in self.opened or pane.window_start > self.opened[key]

    def has_report(self, record: Message | Rejected) -> bool:
        """Return whether a record is of a new segment: its source begins with the name of its segment."""
        return record.source >= self.segment

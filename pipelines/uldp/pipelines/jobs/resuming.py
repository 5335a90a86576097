"""A local job that is started again: where it goes on, and what it leaves out because an earlier run has written it.

Windows that no report can change any more are sealed. A job that resumes reads what the other windows need, and writes
neither the sealed windows, of which it may see a part alone, nor late and rejected reports of segments from before.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Self

import apache_beam as beam

from uldp.collector.shared_specs import SharedSpecs
from uldp.pipelines.jobs.outputs import Claim, spec_files
from uldp.pipelines.results.files import ResultsError
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader
from uldp.schemas.records import Message, Rejected
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.aggregate import Aggregated
from uldp.transforms.io.local.resume import ResumeError, ResumePoint, ResumePoints
from uldp.transforms.io.local.stream import LocalStream, number_of

#: The file of the resume point of a job, beside its results.
RESUME = "resume.json"


def resume_points(
    specs: Sequence[CollectionSpec],
    stream: LocalStream,
    claim: Claim,
    watermark_delay_ms: int,
    say: Callable[[str], None],
) -> ResumePoints:
    """Return the resume points of a job, which begin with the one that an earlier run of the same job has written.

    Raises:
        ResultsError: if the file of the point is damaged, or the stream lacks the last segment that it names.
        StreamError: if the stream lacks a segment.
    """
    path = Path(claim.results, RESUME)
    try:
        start = ResumePoint.read(path)
    except ResumeError as error:
        raise ResultsError(str(error)) from error
    job = _digest(specs, claim, watermark_delay_ms)
    if start is not None and start.job != job:
        say(f"{path} is of a job with other specs or options: {stream.path} is read from its beginning")
        start = None
    if start is None:
        stream.refuse_holes()
    else:
        _refuse_missing(start, stream, path)
        say(f"resuming at {start.segment} of {stream.path}; it is read again from {start.first} on")
    reach = max(served.reach for served in SharedSpecs.of(specs).served.values())
    return ResumePoints(path, job, reach, start)


def _digest(specs: Sequence[CollectionSpec], claim: Claim, watermark_delay_ms: int) -> str:
    """Return a digest of the properties of a job that decide what it writes and where, beside those in ``job.json``."""
    private = "" if claim.private == claim.results else claim.private
    digest = hashlib.sha256(json.dumps([metadata.version("uldp-stream"), private, watermark_delay_ms]).encode())
    for parts, content in spec_files(specs).items():
        digest.update(json.dumps([*parts, len(content)]).encode() + content)
    return digest.hexdigest()[:32]


def _refuse_missing(start: ResumePoint, stream: LocalStream, path: Path) -> None:
    last = stream.path / start.last
    if not last.exists():
        raise ResultsError(
            f"{last}: missing, and the job has read it, as {path} says; restore the segment, or choose another --to"
        )
    stream.refuse_holes(number_of(start.first))


@dataclass(frozen=True)
class Unwritten:
    """Leaves out what an earlier run has written.

    Attributes:
        opened: The start of the last sealed window of each collection and version, in milliseconds, or a later time
            before the start of the next; None if no window is sealed.
        segment: The first segment of which late and rejected reports may not be written yet.
    """

    opened: Mapping[CollectionKey, int] | None
    segment: str

    @classmethod
    def after(cls, point: ResumePoint, specs: Sequence[CollectionSpec]) -> Self:
        """Return what is not written at a resume point."""
        if point.watermark is None:
            return cls(None, point.segment)
        served = SharedSpecs.of(specs).served
        return cls({key: point.watermark - each.sealed_after for key, each in served.items()}, point.segment)

    def of(self, aggregated: Aggregated) -> Aggregated:
        """Keep the panes of windows that are not sealed, and the late and rejected reports of new segments."""
        return Aggregated(
            aggregated.estimates | "OpenEstimates" >> beam.Filter(self.has_pane).with_output_types(Estimate),
            aggregated.counts | "OpenCounts" >> beam.Filter(self.has_pane).with_output_types(Statistic),
            aggregated.late | "NewLate" >> beam.Filter(self.has_report).with_output_types(Message),
            aggregated.rejected | "NewRejected" >> beam.Filter(self.has_report).with_output_types(Rejected),
            aggregated.missing,
        )

    def has_pane(self, pane: PaneHeader) -> bool:
        """Return whether the window of a pane is not sealed."""
        return self.opened is None or pane.window_start > self.opened[pane.collection, pane.version]

    def has_report(self, record: Message | Rejected) -> bool:
        """Return whether a record is of a new segment: its source begins with the name of its segment."""
        return record.source >= self.segment

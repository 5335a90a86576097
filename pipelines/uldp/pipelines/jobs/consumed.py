"""Remove the segments of a local stream that its job has read and needs no more.

The resume point of a job names the first segment that the job would read again. The job writes the point at each step,
and has written before it what it takes from all segments before. So this is safe beside the running job, and beside
``uldp collect``, which appends behind. Nobody can backfill or audit what was removed, and a job with other specs reads
what is left.
"""

from dataclasses import dataclass
from pathlib import Path

from uldp.pipelines.jobs.identity import job_of
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.text import number_of
from uldp.schemas.regular_files import sync_folder
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.folders import Kind, mismatch
from uldp.transforms.io.local.resume_point import RESUME, ResumePoint
from uldp.transforms.io.local.segments import number_of as segment_number
from uldp.transforms.io.local.stream import LocalStream


@dataclass(frozen=True, slots=True)
class Consumed:
    """The number of segments that were removed, or would be, and their bytes."""

    segments: int = 0
    nbytes: int = 0

    def __str__(self) -> str:
        return f"{number_of(self.segments, 'segment')} that the job needs no more; {self.nbytes:,} bytes"


def remove_consumed(out: Path, source: Path, *, dry_run: bool = False) -> Consumed:
    """Remove, or count, segments that a job needs no more; StreamError or ResultsError if it does not follow them."""
    stream, job = LocalStream.open(source), job_of(out)
    if job is None:
        raise ResultsError(mismatch(out, Kind.RESULTS))
    if job.command != "stream" or job.content != stream.id:
        raise ResultsError(
            f"{plain(str(out))}: holds results of {plain(str(job))}, and {plain(str(source))} is another stream; give"
            " the stream of this job"
        )
    point = ResumePoint.read(out / RESUME)
    if point is None:
        return Consumed()
    first = segment_number(point.first)
    consumed = [path.stat().st_size for path in stream.segments() if segment_number(path.name) < first]
    if not dry_run:
        sync_folder(out)  # else a power cut could bring back the point before, which needs older segments
        stream.forget(first)
    return Consumed(len(consumed), sum(consumed))

"""What ``uldp merge`` takes with the ids of reports, beside the backfills whose results it joins.

    python -m benchmarks.merging

Two backfills count half of the reports of the same windows, and keep their ids, so that ids decide about each window.
All times are of the processor.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.rows import Row, alone, clock, print_table
from benchmarks.workloads import batches
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.jobs.settings import JobSettings
from uldp.pipelines.merge.merge import merge
from uldp.transforms.io.message_files import write_messages

REPORTS = 6_000_000


def halves(folder: Path, reports: int) -> float:
    """Write the results of two halves of so many reports; return the seconds of both backfills."""
    workload, taken = batches("urr", reports), 0.0
    for half in range(2):
        archive = folder / f"{half}.avro"
        chunks = range(half * workload.chunks // 2, (half + 1) * workload.chunks // 2)
        with archive.open("wb") as file:
            write_messages(file, [message for index in chunks for message in workload.chunk(index)])
        out, settings = folder / f"half-{half}", JobSettings(keep_ids=True)
        begun = clock()
        jobs.backfill(workload.specs, archive, out, jobs.pipeline_options([]), settings)
        taken += clock() - begun
    return taken


def merged(folder: Path) -> float:
    """Merge the results of two halves; return the seconds."""
    begun = clock()
    merge([str(folder / f"half-{half}") for half in range(2)], str(folder / "whole"))
    return clock() - begun


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure both, each in a process of its own; ``quick`` takes a tenth of the reports."""
    reports = REPORTS // 10 if quick else REPORTS
    with tempfile.TemporaryDirectory() as name:
        counted, megabytes = alone(halves, Path(name), reports)
        yield Row("merging", "two backfills that keep ids", reports, counted, megabytes=megabytes)
        joined, megabytes = alone(merged, Path(name))
        remark = f"{joined / counted:.2f} times the backfills"
        yield Row("merging", "their merge", reports, joined, megabytes=megabytes, remark=remark)


if __name__ == "__main__":
    print_table(rows())

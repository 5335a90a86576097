"""What a pane takes in a stream: the processor time of one job with few panes and of one with many, of as many reports.

    python -m benchmarks.panes_in_stream

``uldp stream`` on Beam's local runner follows a stream of one day in windows of an hour, whose segments of a minute all
wait. The reports are of one collection, or of many in turn, with 625 values each. Each pane has an estimate, and is
written to files.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.rows import Row, alone, print_table
from uldp.collector.estimating import estimates_of_each
from uldp.pipelines.jobs import local as jobs
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms import estimate
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import write_messages

COLLECTIONS, HOURS, MINUTES = 100, 24, 60
#: Reports of a pane of the many; the limit is 100.
IN_PANE = 120
START, MINUTE = 1_767_225_600_000, 60_000


def specs(count: int) -> list[CollectionSpec]:
    """Return so many collections of 625 values."""
    return [
        CollectionSpec.parse(
            {
                "collection": f"panes-{number}",
                "version": 1,
                "domain": {"size": 625},
                "mechanism": {"name": "rr", "epsilon": 1.0},
                "window": {"size": "1h"},
            }
        )
        for number in range(count)
    ]


def publish(stream: LocalStream, of: Sequence[CollectionSpec], reports: int, hours: int) -> None:
    """Write reports, of each collection in turn, as a segment for each minute."""
    rng = np.random.default_rng(7)
    times = START + (hours * MINUTES * MINUTE * np.arange(reports) / reports).astype(np.int64)
    symbols = rng.integers(625, size=reports)
    for minute, rows in enumerate(np.array_split(np.arange(reports), hours * MINUTES)):
        messages = [
            Message(Report(of[row % len(of)].collection, 1, rng.bytes(16), at, symbol).encode(), at)
            for row, at, symbol in zip(rows.tolist(), times[rows].tolist(), symbols[rows].tolist(), strict=True)
        ]
        with (stream.path / f"{minute:012d}.avro").open("wb") as file:
            write_messages(file, messages)
    stream.close()


def run(collections: int, reports: int, hours: int) -> tuple[float, float]:
    """Follow a stream of some collections; returns the seconds of the processor, and those of estimates among them."""
    with tempfile.TemporaryDirectory() as folder:
        stream, of = LocalStream.create(Path(folder, "stream"), simulated_clock=True), specs(collections)
        publish(stream, of, reports, hours)
        began, of_estimates = time.process_time(), [0.0]

        def timed(*given: Any) -> Any:
            start = time.thread_time()
            found = estimates_of_each(*given)
            of_estimates[0] += time.thread_time() - start
            return found

        options = jobs.pipeline_options([])
        with mock.patch.object(estimate, "estimates_of_each", timed):
            jobs.follow(of, stream.path, Path(folder, "out"), options)
        return time.process_time() - began, of_estimates[0]


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure both; ``quick`` takes a tenth of the collections and a twelfth of the day."""
    collections, hours = (COLLECTIONS // 10, HOURS // 12) if quick else (COLLECTIONS, HOURS)
    reports, panes = collections * hours * IN_PANE, collections * hours
    (few, of_few), megabytes = alone(run, 1, reports, hours)
    yield Row("panes in a stream", f"{hours} panes in a stream", reports, few, megabytes=megabytes, remark="CPU time")
    (many, of_many), megabytes = alone(run, collections, reports, hours)
    a_pane, its_estimate = ((after - before) / (panes - hours) for before, after in ((few, many), (of_few, of_many)))
    remark = f"CPU time; {1000 * a_pane:.2f} ms a pane more, {1000 * its_estimate:.2f} of them its estimate"
    yield Row("panes in a stream", f"{panes:,} panes in a stream", reports, many, megabytes=megabytes, remark=remark)


if __name__ == "__main__":
    print_table(rows())

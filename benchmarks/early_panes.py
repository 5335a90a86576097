"""What early panes of many collections take of a core, on a live local stream.

    python -m benchmarks.early_panes

The job of ``uldp stream`` follows a stream of a segment a second, which holds reports of each collection, by the clock
on the wall: once without early panes, and once with one of each collection each 30 seconds. A pane of four values has
an estimate, and is written to files. Seconds are those of the processor, from ``WARM`` seconds on, and without those of
the thread that writes the segments.
"""

import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.rows import Row, alone, clock, print_table
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.jobs.settings import JobSettings
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream

COLLECTIONS, EVERY = 1_000, 30
#: Seconds before the first measured one, and the measured ones.
WARM, MEASURED = 10, 60
SIZE = 4


def specs(collections: int, window: Mapping[str, str]) -> list[CollectionSpec]:
    """Return collections with the same windows."""
    keys: dict[str, Any] = {
        "version": 1,
        "domain": {"size": SIZE},
        "mechanism": {"name": "rr", "epsilon": 1.0},
        "window": dict(window),
        "limits": {"min_reports": 1},  # early panes with more are one step behind
    }
    return [CollectionSpec.parse({"collection": f"early-{number}"} | keys) for number in range(collections)]


def publish(stream: LocalStream, of: list[CollectionSpec], seconds: int, taken: list[float]) -> None:
    """Append a segment each second with a report of each collection, and note the time of the job at each."""
    now, began = int(time.time() * 1000), time.monotonic()
    for second in range(seconds):
        time.sleep(max(began + second - time.monotonic(), 0))
        first = second * len(of)
        reports = [
            Report(*spec.key, number.to_bytes(16, "big"), now, number % SIZE).encode()
            for number, spec in enumerate(of, first)
        ]
        stream.append([Message(report, int(time.time() * 1000)) for report in reports])
        taken.append(clock() - time.thread_time())  # without those of this thread
    stream.close()


def run(collections: int, measured: int, window: Mapping[str, str]) -> tuple[float, int]:
    """Follow a live stream; returns the seconds of the processor, and the number of early panes in all."""
    said, taken = list[str](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        stream, of = LocalStream.create(Path(folder, "stream")), specs(collections, window)
        writer = threading.Thread(target=publish, args=(stream, of, WARM + measured + 1, taken))

        def say(line: str) -> None:
            said.append(line)
            if len(said) == 1:  # the job is about to read
                writer.start()

        options = jobs.pipeline_options([])
        jobs.follow(of, stream.path, Path(folder, "out"), options, JobSettings(say=say))
        writer.join()
    return taken[-1] - taken[WARM], sum(" early " in line for line in said)


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure both; ``quick`` takes a hundredth of the collections, and panes each second for a tenth of the time."""
    collections, measured, every = (COLLECTIONS // 100, MEASURED // 10, 1) if quick else (COLLECTIONS, MEASURED, EVERY)
    windows = {"no early panes": {"size": "1d"}, f"one each {every} s": {"size": "1d", "early_every": f"{every}s"}}
    before = 0.0
    for label, window in windows.items():
        (seconds, panes), megabytes = alone(run, collections, measured, window)
        more = f"; {100 * (seconds - before) / measured:.1f} % more" if before else ""
        remark = f"{100 * seconds / measured:.1f} % of a core{more}; {panes:,} early panes"
        label = f"{collections:,} collections, {label}"
        yield Row("early panes", label, collections * measured, seconds, megabytes=megabytes, remark=remark)
        before = seconds


if __name__ == "__main__":
    print_table(rows())

"""How old a report is when an early pane first holds it, on a live local stream.

    python -m benchmarks.latency

A writer appends reports to a stream, by the clock on the wall; the job of ``uldp stream`` follows it. Each early pane
says how many reports it holds, so that of each report it is known when it first was in one. Whoever waits for a pane
waits for half the firing interval on average, before anything else.
"""

import re
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.rows import Row, alone, print_table
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.jobs.settings import JobSettings
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream

#: Seconds between early panes, how long reports are published, and between segments.
FIRING_INTERVAL, DURATION, BETWEEN_SEGMENTS = 1, 15.0, 0.2
REPORTS_PER_SEGMENT = 1000
SPEC = CollectionSpec.parse(
    {
        "collection": "latency",
        "version": 1,
        "domain": {"size": 625},
        "mechanism": {"name": "rr", "epsilon": 1.0},
        "window": {"size": "1d", "early_every": f"{FIRING_INTERVAL}s"},
        "limits": {"min_reports": 1},  # early panes with more are one step behind
    }
)

#: When each pane was said, and how many reports it holds. Of this process: the runner copies what it is given.
_panes: list[tuple[float, int]] = []


def _said(line: str) -> None:
    if match := re.search(r"early .* n +([\d,]+)", line):
        _panes.append((time.monotonic(), int(match[1].replace(",", ""))))


def _publish(stream: LocalStream, duration: float, appended: list[float]) -> None:
    """Append a segment again and again, and note when it was there."""
    began = time.monotonic()
    while time.monotonic() < began + duration:
        now = int(time.time() * 1000)
        first = REPORTS_PER_SEGMENT * len(appended)
        numbers = range(first, first + REPORTS_PER_SEGMENT)
        data = (Report(*SPEC.key, number.to_bytes(16, "big"), now, number % 625).encode() for number in numbers)
        stream.append([Message(report, now) for report in data])
        appended.append(time.monotonic())
        time.sleep(BETWEEN_SEGMENTS)
    stream.close()


def run(duration: float) -> list[float]:
    """Return, for each segment, the seconds from its arrival to the early pane that holds its last report."""
    appended: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        stream = LocalStream.create(Path(folder, "stream"))
        writer = threading.Thread(target=_publish, args=(stream, duration, appended))
        writer.start()
        options = jobs.pipeline_options([])
        jobs.follow([SPEC], stream.path, Path(folder, "out"), options, JobSettings(say=_said))
        writer.join()
    waits = []
    for index, arrived in enumerate(appended):
        shown = [said for said, n in _panes if n >= REPORTS_PER_SEGMENT * (index + 1)]
        if shown:  # else it came with the pane on time, when the stream was closed
            waits.append(min(shown) - arrived)
    return waits


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure once; ``quick`` publishes for half of the time."""
    waits, _ = alone(run, DURATION / (2 if quick else 1))
    if not waits:
        yield Row("latency", "arrival to early pane", 1, None, remark="no early pane fired")
        return
    remark = f"median of {len(waits)} segments, 95 in 100 below {sorted(waits)[len(waits) * 95 // 100]:.2f} s"
    yield Row(
        "latency",
        f"arrival to early pane, one every {FIRING_INTERVAL} s",
        1,
        statistics.median(waits),
        remark=f"{remark}; the clock's seconds",
    )


if __name__ == "__main__":
    print_table(rows())

"""What a bundle of a live stream costs by the windows of its collections: an hour, and a day every minute.

    python -m benchmarks.sliding

The job of ``uldp stream`` follows a stream of ten segments a second, and takes each in a bundle of its own. A report is
in 1,440 of the sliding windows. The time of a bundle is what the bundles after the first ``WARM`` take on average,
with the windows that end meanwhile, one a minute of each collection. At the close of a stream, and after an outage, the
watermark passes many ends of windows at once: what a day takes, in a stream of 24 segments that is closed.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from unittest import mock

from benchmarks.rows import Row, alone, clock, in_turn, print_table
from uldp.pipelines.jobs import local as jobs
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.window import Limits
from uldp.transforms.io.local.events import LocalStreamEvents
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.local.waiting import Waiting

START = 1_767_225_600_000
#: Segments of a minute of stream, milliseconds between them, and reports of each.
SEGMENTS, EVERY_MS, REPORTS = 600, 100, 100
#: Milliseconds of an hour, and its reports in the stream of a day.
HOUR, HOURLY = 3_600_000, 1_000
WARM, SIZE = 20, 625
WINDOWS = {
    "fixed 1 h": {"size": "1h", "allowed_lateness": "10m"},
    "sliding 24 h / 1 min": {"size": "1d", "period": "1m", "allowed_lateness": "10m"},
}
REPEAT = 3
#: The replaced parts of the local runner, and segments of a stream that is followed without one.
PARTS = ("copied_state", "copied_steps", "full_bundles", "small_state", "next_timers", "remembered_specs")
PART_SEGMENTS = 60


def specs(window: dict[str, str], collections: int, size: int = SIZE) -> list[CollectionSpec]:
    """Collections with the same windows."""
    return [
        CollectionSpec.parse(
            {
                "collection": f"sliding-{number}",
                "version": 1,
                "domain": {"size": size},
                "mechanism": {"name": "rr", "epsilon": 1.0},
                "window": window,
                "limits": {"min_reports": 1 << 40},  # ``benchmarks.estimators`` measures estimates
            }
        )
        for number in range(collections)
    ]


def publish(stream: LocalStream, of: list[CollectionSpec], segments: int) -> None:
    """Append segments, whose reports are of all collections in turn."""
    for segment in range(segments):
        now = START + segment * EVERY_MS
        numbers = range(segment * REPORTS, (segment + 1) * REPORTS)
        reports = [Report(*of[n % len(of)].key, n.to_bytes(16, "big"), now, n * 7919 % SIZE).encode() for n in numbers]
        stream.append([Message(report, now) for report in reports])
    stream.close()


class _EnoughError(Exception):
    """All segments are read. At the end of its stream, a job would fire 1,440 windows of each collection."""


def run(window: dict[str, str], collections: int, segments: int) -> float:
    """Follow a stream of so many segments; return the seconds from segment ``WARM`` to the last."""
    at: list[float] = []
    read = LocalStreamEvents.read

    def watched(events: LocalStreamEvents, *of: Mapping[str, int]) -> None:
        read(events, *of)
        at.append(clock())
        if len(at) >= segments:
            raise _EnoughError

    of = specs(window, collections)
    with tempfile.TemporaryDirectory() as folder:
        stream = LocalStream.create(Path(folder, "stream"), simulated_clock=True)
        publish(stream, of, segments)
        options = jobs.pipeline_options([])
        with (
            mock.patch.object(LocalStreamEvents, "read", watched),
            mock.patch.object(Waiting, "MAX_SEGMENTS", 1),
            suppress(Exception),  # Beam gives its own
        ):
            jobs.follow(of, stream.path, Path(folder, "out"), options)
    return at[segments - 1] - at[WARM]


def close(window: dict[str, str]) -> tuple[float, int]:
    """Follow a day of a collection of four values to its close; return the seconds, and the number of result files."""
    of = specs(window, 1, 4)[0].model_copy(update={"limits": Limits(min_reports=1)})
    with tempfile.TemporaryDirectory() as folder:
        stream, out = LocalStream.create(Path(folder, "stream"), simulated_clock=True), Path(folder, "out")
        for hour in range(24):
            times = [START + hour * HOUR + n * HOUR // HOURLY for n in range(HOURLY)]
            ids = range(hour * HOURLY, (hour + 1) * HOURLY)
            reports = [Report(*of.key, n.to_bytes(16, "big"), at, n % 4) for n, at in zip(ids, times, strict=True)]
            stream.append([Message(report.encode(), at) for report, at in zip(reports, times, strict=True)])
        stream.close()
        begun = clock()
        jobs.follow([of], stream.path, out, jobs.pipeline_options([]))
        return clock() - begun, sum(path.is_file() for path in out.rglob("*"))


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure in turn; ``quick`` takes a fifth of the segments."""
    segments = SEGMENTS // 5 if quick else SEGMENTS + 10
    measured = segments - WARM - 1
    for collections in (1, 10):
        calls = {label: partial(_alone, window, collections, segments) for label, window in WINDOWS.items()}
        seconds = in_turn(calls, 1 if quick else REPEAT)
        least = min(seconds.values())
        for label, taken in seconds.items():
            yield Row(
                "sliding",
                f"{label}, collections: {collections}",
                measured * REPORTS,
                taken,
                remark=f"{1000 * taken / measured:.1f} ms a bundle, {taken / least:.2f} times the least",
            )
    files = dict[str, int]()

    def closed(label: str) -> float:
        (seconds, files[label]), _ = alone(close, WINDOWS[label])
        return seconds

    for label, taken in in_turn({label: partial(closed, label) for label in WINDOWS}, 1 if quick else REPEAT).items():
        yield Row("sliding", f"{label}, a day to its close", 24 * HOURLY, taken, remark=f"{files[label]:,} files")


def without(part: str) -> float:
    """Follow a stream of ten sliding collections, in a process of its own, without a replaced part of the runner."""
    with mock.patch.object(jobs, part, nullcontext):
        return run(WINDOWS["sliding 24 h / 1 min"], 10, PART_SEGMENTS)


def part_rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure what each part of ``uldp.transforms.io.local.lighter_runner`` gains."""
    calls: dict[str, Callable[[], float]] = {part: partial(_without, part) for part in PARTS}
    calls["all parts"] = partial(_alone, WINDOWS["sliding 24 h / 1 min"], 10, PART_SEGMENTS)
    seconds = in_turn(calls, 1 if quick else REPEAT)
    for part in PARTS:
        remark = f"{seconds[part] / seconds['all parts']:.2f} times as long"
        yield Row("sliding", f"without {part}", (PART_SEGMENTS - WARM - 1) * REPORTS, seconds[part], remark=remark)


def _without(part: str) -> float:
    return alone(without, part)[0]


def _alone(window: dict[str, str], collections: int, segments: int) -> float:
    return alone(run, window, collections, segments)[0]


if __name__ == "__main__":
    print_table(chain(rows(), part_rows()))

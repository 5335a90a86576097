"""What ``uldp stream`` takes to read its local stream again after a restart: by reports, and by segments.

    python -m benchmarks.restart

A live job on Beam's local runner follows a stream of one day and hourly windows, whose segments all wait when it
starts: as a writer leaves them that appends one each second, or one each ten seconds with ten times the reports.

Then a stream of thirty days with as many segments, from its beginning and from the resume point of a job that has read
it before, by CPU time: such a job reads the segments of the windows that can change, whatever came before these.

Last, the start of a job of 1,000 collections, which keeps their specs with its results, and its start again.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import numpy as np

from benchmarks.rows import Row, alone, print_table, timed
from uldp.pipelines.jobs import local as jobs
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import write_messages

#: A report each second.
HOUR, HOURS = 3_600, 24
DAYS = 30
COLLECTIONS = 1_000
START = 1_767_225_600_000
SPEC = CollectionSpec.parse(
    {
        "collection": "restart",
        "version": 1,
        "domain": {"size": 625},
        "mechanism": {"name": "rr", "epsilon": 1.0},
        "window": {"size": "1h", "allowed_lateness": "1h"},
    }
)


def publish(stream: LocalStream, segments: int, reports: int, days: float) -> None:
    """Write reports of some days in so many segments. It waits for no disk, as a writer would after each."""
    rng = np.random.default_rng(7)
    times = START + (days * 24 * HOUR * 1000 * np.arange(reports) / reports).astype(np.int64)
    for number, part in enumerate(np.array_split(times, segments)):
        messages = [
            Message(Report(*SPEC.key, rng.bytes(16), at, symbol).encode(), at)
            for at, symbol in zip(part.tolist(), rng.integers(625, size=len(part)).tolist(), strict=True)
        ]
        with (stream.path / f"{number:012d}.avro").open("wb") as file:
            write_messages(file, messages)
    stream.close()


def run(segments: int, reports: int) -> float:
    """Follow a stream of so many segments that all wait; returns the seconds that it took."""
    with tempfile.TemporaryDirectory() as folder:
        stream = LocalStream.create(Path(folder, "stream"), simulated_clock=True)
        publish(stream, segments, reports, reports / (24 * HOUR))
        return timed(lambda: follow(stream, Path(folder, "out")))


def follow(stream: LocalStream, out: Path, specs: Sequence[CollectionSpec] = (SPEC,)) -> None:
    """Follow a stream to its end."""
    options = jobs.pipeline_options([])
    jobs.follow(specs, stream.path, out, options)


def run_again(segments: int, days: float, collections: int = 1) -> tuple[float, float]:
    """Follow a stream twice; returns the seconds of the processor of both jobs, where the second one resumes.

    Of several collections, the first one alone has reports.
    """
    keys = SPEC.model_dump(mode="json", exclude_none=True)
    specs = [SPEC, *(CollectionSpec.parse(keys | {"collection": f"other-{n}"}) for n in range(1, collections))]
    with tempfile.TemporaryDirectory() as folder:
        stream = LocalStream.create(Path(folder, "stream"), simulated_clock=True)
        publish(stream, segments, segments, days)
        moments = [time.process_time()]
        for _ in range(2):
            follow(stream, Path(folder, "out"), specs)
            moments.append(time.process_time())
        return moments[1] - moments[0], moments[2] - moments[1]


def run_in_turn(segments: int, days: float) -> tuple[float, float]:
    """Follow a stream from its beginning, by a job that remembers what steps declare, and by one that asks Beam.

    Returns the seconds of the processor of each.
    """
    with tempfile.TemporaryDirectory() as folder:
        stream = LocalStream.create(Path(folder, "stream"), simulated_clock=True)
        publish(stream, segments, segments, days)
        began = time.process_time()
        follow(stream, Path(folder, "remembered"))
        remembered = time.process_time()
        with mock.patch.object(jobs, "remembered_specs", nullcontext):
            follow(stream, Path(folder, "asked"))
        return remembered - began, time.process_time() - remembered


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure both; ``quick`` takes a hundredth of the segments."""
    reports = HOUR * HOURS // (100 if quick else 1)
    for segments in (reports, reports // 10):
        seconds, megabytes = alone(run, segments, reports)
        remark = f"{1000 * seconds / segments:.2f} ms a segment"
        yield Row("restart", f"{segments:,} segments that wait", reports, seconds, megabytes=megabytes, remark=remark)
    days = DAYS / (10 if quick else 1)
    (whole, rest), megabytes = alone(run_again, reports, days)
    what = f"{reports:,} segments of {days:g} days"
    yield Row("restart", f"{what}, from the beginning", reports, whole, megabytes=megabytes, remark="CPU time")
    remark = f"CPU time; {whole / rest:.1f} times as fast"
    yield Row("restart", f"{what}, from the resume point", reports, rest, megabytes=megabytes, remark=remark)
    (remembered, asked), megabytes = alone(run_in_turn, reports // 10, days)
    remark = f"CPU time; {asked / remembered:.1f} times as fast as with Beam's own questions of each bundle"
    what = f"{reports // 10:,} segments of {days:g} days, from the beginning"
    yield Row("restart", what, reports // 10, remembered, megabytes=megabytes, remark=remark)
    collections = COLLECTIONS // (100 if quick else 1)
    (whole, rest), megabytes = alone(run_again, 1, 1, collections)
    for what, seconds in (("start", whole), ("start again", rest)):
        label = f"{what} of {collections:,} collections"
        yield Row("restart", label, 1, seconds, megabytes=megabytes, remark="CPU time; one segment")


if __name__ == "__main__":
    print_table(rows())

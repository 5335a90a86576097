"""Pipelines on a standalone Flink cluster, with TaskManagers that are killed."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.coders import Coder, StrUtf8Coder
from apache_beam.io.unbounded_source import CheckpointMark, UnboundedReader, UnboundedSource
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp

from tests import build
from tests.build import HOUR, START
from tests.cluster.daemons import wait_until
from tests.cluster.flink import Flink
from tests.embedded import ALIKE, OF_AN_ARCHIVE, outputs_of_branches
from uldp.pipelines.jobs.aggregate import JobAggregate
from uldp.pipelines.jobs.cluster import cluster_options
from uldp.pipelines.jobs.kept_specs import keep_specs
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message, Report
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.local.segments import last_publish_time
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import read_messages
from uldp.transforms.io.results.write import WriteResults

REPORTS, SEGMENTS = 6_000, 60
#: How far a report's publish time is behind its event time, at most.
DELAY = 60_000

#: Every report has a symbol of its own and no privacy, so that a right count is 1: a 2 is a double count, a 0 a loss.
SPEC = build.spec(
    collection="one-each",
    domain={"size": REPORTS},
    mechanism={"name": "identity"},
    window={"size": "1h", "early_every": "1s", "allowed_lateness": "30m"},
)


@dataclass
class Mark(CheckpointMark):
    """The next segment, and the watermark before it in microseconds."""

    segment: int
    watermark: int


class MarkCoder(Coder):
    def encode(self, value: Mark) -> bytes:
        return f"{value.segment} {value.watermark}".encode()

    def decode(self, encoded: bytes) -> Mark:
        return Mark(*map(int, encoded.split()))


class SegmentReader(UnboundedReader):
    def __init__(self, path: Path, mark: Mark) -> None:
        self._stream = LocalStream(path)
        self._next = mark
        self._ended = False

    def start(self) -> bool:
        return self.advance()

    def advance(self) -> bool:
        closed = self._stream.closed  # before the look, so that a segment before the closing is not missed
        following = self._stream.segments()[self._next.segment : self._next.segment + 1]
        if not following:
            self._ended = closed
            return False
        self._segment, self._at = following[0], self._next.watermark
        published = (last_publish_time(self._segment) - DELAY) * 1000
        self._next = Mark(self._next.segment + 1, max(self._at, published))
        return True

    def get_current(self) -> str:
        return str(self._segment)

    def get_current_timestamp(self) -> Timestamp:
        return Timestamp(micros=self._at)

    def get_watermark(self) -> Timestamp:
        return MAX_TIMESTAMP if self._ended else Timestamp(micros=self._next.watermark)

    def get_checkpoint_mark(self) -> Mark:
        return self._next


@dataclass
class SegmentSource(UnboundedSource):
    """The segments of a local stream, which lies where all workers reach it."""

    path: Path

    def split(self, desired_num_splits: int, options: object = None) -> list["SegmentSource"]:
        return [self]

    def create_reader(self, options: object, checkpoint_mark: CheckpointMark | None) -> SegmentReader:
        if checkpoint_mark is None:
            return SegmentReader(self.path, Mark(0, MIN_TIMESTAMP.micros))
        assert isinstance(checkpoint_mark, Mark)
        return SegmentReader(self.path, checkpoint_mark)

    def get_checkpoint_mark_coder(self) -> Coder:
        return MarkCoder()

    def default_output_coder(self) -> Coder:
        return StrUtf8Coder()


def read_segment(path: str) -> Iterator[Message]:
    return read_messages(Path(path))


def schedule() -> list[list[Message]]:
    """Segments of reports from three hours, out of order by up to a minute, each tenth of them twice."""
    rng = np.random.default_rng(3)
    times = np.sort(rng.integers(START, START + 3 * HOUR, REPORTS))
    messages = []
    for symbol, time in enumerate(times.tolist()):
        data = Report(*SPEC.key, rng.bytes(16), time, symbol).encode()
        messages.append(Message(data, time + int(rng.integers(DELAY))))
        if symbol % 10 == 0:
            messages.append(Message(data, messages[-1].publish_time + int(rng.integers(10 * DELAY))))
    messages.sort(key=lambda message: message.publish_time)
    return [messages[part[0] : part[-1] + 1] for part in np.array_split(np.arange(len(messages)), SEGMENTS)]


@contextmanager
def aggregating(flink: Flink, stream: LocalStream, out: Path) -> Iterator[str]:
    """Run the job that aggregates a stream; gives its id, and cancels it at the end."""
    often = ("--checkpointing_interval=1000", "--max_bundle_time_mills=100")
    pipeline = beam.Pipeline(options=cluster_options([*flink.arguments, "--parallelism=2", *often]))
    segments = pipeline | "ReadSegments" >> beam.io.Read(SegmentSource(stream.path))
    messages = segments | "ReadMessages" >> beam.FlatMap(read_segment).with_output_types(Message)
    _ = messages | "Aggregate" >> JobAggregate([SPEC], simulated_clock=True) | "Write" >> WriteResults(str(out))
    pipeline.run()
    job = flink.cluster.running_job()
    try:
        yield job
    finally:
        flink.cluster.cancel(job)


def panes(out: Path) -> list[Statistic]:
    return newest(ResultsFolder(out).statistics()) if (out / "counts").exists() else []


@pytest.mark.nightly
def test_bounded(flink: Flink, tmp_path: Path) -> None:
    with beam.Pipeline(options=PipelineOptions([*flink.arguments, "--parallelism=1"])) as pipeline:
        numbers = pipeline | beam.Create(range(100)) | beam.Map(lambda number: str(number * number))
        _ = numbers | beam.io.WriteToText(str(tmp_path / "squares"))
    lines = [line for file in tmp_path.glob("squares-*") for line in file.read_text(encoding="utf-8").split()]
    assert sorted(map(int, lines)) == [number * number for number in range(100)]


@pytest.mark.nightly
def test_windows_of_others_change_nothing(flink: Flink, tmp_path: Path) -> None:
    options = [*flink.arguments, "--parallelism=1"]
    assert outputs_of_branches(tmp_path, *options) == dict.fromkeys(ALIKE, OF_AN_ARCHIVE)


@pytest.mark.nightly
@pytest.mark.parametrize("kills", [0, 2])
def test_every_report_is_counted_once(flink: Flink, tmp_path: Path, kills: int) -> None:
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    keep_specs(str(tmp_path / "out"), [SPEC])
    segments = iter(schedule())
    randomness = random.Random(kills)

    def publish(count: int) -> None:
        for _ in range(count):
            stream.append(next(segments))

    with aggregating(flink, stream, tmp_path / "out") as job:
        publish(20)
        wait_until(lambda: panes(tmp_path / "out"), "a pane", seconds=120)
        for kill in range(kills):
            publish(10)
            flink.cluster.wait_for_checkpoints(job, randomness.randint(1, 3))
            flink.cluster.kill_task_manager(kill % 2)
            publish(3)
            flink.cluster.start_task_manager(kill % 2)
            flink.cluster.wait_for_checkpoints(job, 1)
        publish(SEGMENTS - 20 - 13 * kills)
        stream.close()
        copies = REPORTS // 10

        def total() -> Accounting:
            return sum((pane.accounting for pane in panes(tmp_path / "out")), Accounting())

        wait_until(lambda: total().received >= REPORTS + copies, "all is counted", seconds=120)
        wait_until(lambda: all(pane.pane.kind.value != "early" for pane in panes(tmp_path / "out")), "windows closed")

    assert total() == Accounting(received=REPORTS + copies, counted=REPORTS, duplicate=copies)
    assert np.sum([pane.cells for pane in panes(tmp_path / "out") if pane.n], axis=0).tolist() == [1] * REPORTS
    assert all(pane.accounting.received for pane in ResultsFolder(tmp_path / "out").statistics())

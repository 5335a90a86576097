"""The last panes of a stream equal the backfill of the same reports, count for count; and what a backfill reads."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import build
from tests.build import MINUTE, START, spec
from uldp.mechanisms.catalog import build_protocol
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.jobs.settings import JobSettings
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.archive import message_files
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import read_messages


def make_spec(**window: str) -> CollectionSpec:
    return spec(
        domain={"size": 6},
        sensitive=[1, 2],
        tags=[{"name": "home"}],
        window={"size": "1h", "allowed_lateness": "30m"} | window,
    )


SPEC = make_spec(early_every="1s")


@dataclass(frozen=True)
class Sent:
    """A report and when it is published, both in minutes from the start."""

    at: int
    published: int

    @property
    def late(self) -> bool:
        window_end = (self.at // 60 + 1) * 60
        return self.published >= window_end + 30


def sent_within(delay: int) -> st.SearchStrategy[Sent]:
    """A report from one of three hours, published at most ``delay`` minutes after its window's end."""

    def build(at: int, share: float) -> Sent:
        latest = (at // 60 + 1) * 60 + delay
        return Sent(at, at + int(share * (latest - at)))

    return st.builds(build, st.integers(0, 179), st.floats(0, 1))


def messages_of(schedule: Sequence[Sent], seed: int) -> list[Message]:
    """Encode a schedule, in the order of publishing."""
    rng = np.random.default_rng(seed)
    symbols = build_protocol(SPEC).mechanism.perturb(rng.integers(0, 7, len(schedule)), rng)
    messages = []
    for sent, symbol in zip(schedule, symbols, strict=True):
        data = Report(*SPEC.key, rng.bytes(16), START + sent.at * MINUTE, int(symbol)).encode()
        messages.append(Message(data, START + sent.published * MINUTE))
    return sorted(messages, key=lambda message: message.publish_time)


def append(stream: LocalStream, messages: Sequence[Message], segments: int) -> None:
    for part in np.array_split(np.arange(len(messages)), segments):
        if part.size:
            stream.append([messages[index] for index in part])
    stream.close()


def follow(stream: LocalStream, out: Path, spec: CollectionSpec = SPEC) -> list[Statistic]:
    jobs.follow([spec], stream.path, out, jobs.pipeline_options([]), JobSettings(say=print))
    return newest(ResultsFolder(out).statistics())


def backfill(source: Path, out: Path, spec: CollectionSpec = SPEC) -> list[Statistic]:
    jobs.backfill([spec], source, out, jobs.pipeline_options(["--runner=DirectRunner"]))
    return newest(ResultsFolder(out).statistics())


def counts_by_window(panes: Sequence[Statistic]) -> dict[int, list[int]]:
    return {pane.window_start: pane.cells.tolist() for pane in panes}


@pytest.mark.slow
@settings(max_examples=5, deadline=None, derandomize=True)
@given(st.lists(sent_within(delay=240), min_size=1, max_size=60), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_late_reports_are_kept_and_correct_their_window(schedule: list[Sent], segments: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stream = LocalStream.create(Path(folder, "stream"), simulated_clock=True)
        append(stream, messages_of(schedule, seed), segments)

        streamed = follow(stream, Path(folder, "streamed"))
        everything = backfill(stream.path, Path(folder, "everything"))

        late = sum(sent.late for sent in schedule)
        total = sum((pane.accounting for pane in streamed), Accounting())
        assert total == Accounting(received=len(schedule), counted=len(schedule) - late, late=late)
        merged = {start: np.array(counts) for start, counts in counts_by_window(streamed).items()}
        if late:
            kept = [m for file in message_files(Path(folder, "streamed", "late")) for m in read_messages(file)]
            assert len(kept) == late
            for pane in backfill(Path(folder, "streamed", "late"), Path(folder, "corrected")):
                merged[pane.window_start] = merged[pane.window_start] + pane.cells
        assert {start: counts.tolist() for start, counts in merged.items()} == counts_by_window(everything)


@pytest.mark.parametrize("period", [pytest.param("10m", marks=pytest.mark.nightly), "30m"])
def test_sliding_windows(period: str, tmp_path: Path) -> None:
    spec = make_spec(period=period)
    rng = np.random.default_rng(5)
    schedule = [
        Sent(int(at), int(at + delay))
        for at, delay in zip(rng.integers(0, 180, 300), rng.integers(0, 30, 300), strict=True)
    ]
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    append(stream, messages_of(schedule, 6), 20)

    streamed = follow(stream, tmp_path / "streamed", spec)
    backfilled = backfill(stream.path, tmp_path / "backfilled", spec)

    assert counts_by_window(streamed) == counts_by_window(backfilled)
    assert sum(pane.accounting.counted for pane in streamed) == 300 * 60 // int(period[:-1])


def test_a_stream_that_cannot_be_read_fails_and_completes_no_window(tmp_path: Path) -> None:
    """Beam takes any end of its events for the end of the input; an unreadable segment must not be one."""
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    stream.append(messages_of([Sent(5, 5)], seed=1))
    (stream.path / "000000000001.avro").write_bytes(b"not Avro")
    with pytest.raises(Exception, match="not an Avro file of messages"):
        follow(stream, tmp_path / "out")
    assert ResultsFolder(tmp_path / "out").statistics() == []


HONEST, FORGED = 1, 4


@pytest.mark.parametrize(("folders", "counted"), [(("a", "b"), HONEST), (("b", "a"), FORGED)])
def test_a_report_in_a_file_that_is_read_first_takes_the_place_of_earlier_ones(
    folders: tuple[str, str], counted: int, tmp_path: Path
) -> None:
    """The forged report was published fifty minutes after the honest one. A stream would have called it a copy."""
    for folder, symbol, minute in zip(folders, (HONEST, FORGED), (0, 50), strict=True):
        stream = LocalStream.create(tmp_path / "archive" / folder, simulated_clock=True)
        stream.append([build.message(build.report(1, symbol), START + minute * MINUTE)])
        stream.close()
    (pane,) = backfill(tmp_path / "archive", tmp_path / "results", spec(mechanism={"name": "rr", "epsilon": 1.0}))
    assert pane.cells.tolist() == [int(symbol == counted) for symbol in range(5)]
    assert pane.accounting == Accounting(received=2, counted=1, duplicate=1)

"""Segments that wait are one bundle, but the results are those of segments that come one by one."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, islice
from pathlib import Path
from typing import Any
from unittest import mock

import fastavro
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import HOUR, MINUTE, START, message, report, spec
from tests.listening import listeners_below
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.framing import load_schema
from uldp.schemas.pane import Accounting, PaneKind
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import milliseconds
from uldp.schemas.specs.window import WindowSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.archive import message_files
from uldp.transforms.io.local.events import LocalStreamEvents
from uldp.transforms.io.local.segments import read_header
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.local.waiting import Moments, Waiting
from uldp.transforms.io.message_files import StreamError, read_messages

A = Path("a")


# What fires between two watermarks.


@given(
    st.integers(0, 400),
    st.integers(0, 400),
    st.sampled_from([("1h", None, "0s"), ("1h", None, "90m"), ("1h", "10m", "5m"), ("30m", None, "7m")]),
)
def test_something_happens_where_a_window_ends_or_ids_are_forgotten(
    before: int, after: int, shape: tuple[str, str | None, str]
) -> None:
    """In minutes; every minute between the two is looked at."""
    size, period, lateness = shape
    window = WindowSpec.model_validate({"size": size, "period": period, "allowed_lateness": lateness})
    cut, late = milliseconds(window.slice) // MINUTE, milliseconds(window.allowed_lateness) // MINUTE
    happens = any(minute % cut in (0, late % cut) for minute in range(before + 1, after + 1))
    assert Moments.of([window]).between(before * MINUTE, after * MINUTE) is happens


# Which segments wait together.


def test_an_event_is_bounded_by_segments_and_by_bytes() -> None:
    waiting = Waiting(Moments.of([]))
    waiting.add(A, Waiting.MAX_BYTES - 1)
    assert (waiting.takes(1), waiting.takes(2), waiting.takes(float("inf"))) == (True, False, False)
    waiting.take()
    assert waiting.takes(float("inf"))  # a segment of any size, alone
    for _ in range(Waiting.MAX_SEGMENTS):
        assert waiting.takes(1)
        waiting.add(A, 1)
    assert not waiting.takes(1)


def test_the_paths_of_an_event_fit_a_message_of_grpc() -> None:
    assert Waiting.MAX_SEGMENTS * os.pathconf("/", "PC_PATH_MAX") <= 4 << 20


def test_a_compressed_segment_has_any_size(tmp_path: Path) -> None:
    stream = LocalStream.create(tmp_path / "stream")
    plain = stream.append([Message(b"x" * 1000, 5)])
    header = read_header(plain)
    assert (header.last_publish_time, header.nbytes, header.size) == (5, plain.stat().st_size, plain.stat().st_size)
    assert header.marker == plain.read_bytes()[-16:].hex()
    with (tmp_path / "deflated").open("wb") as file:
        record = Message(b"x" * 1000, 5).to_avro()
        fastavro.writer(
            file, load_schema("message"), [record], codec="deflate", metadata={"uldp.last_publish_time": "5"}
        )
    assert read_header(tmp_path / "deflated").nbytes == float("inf")


# What the runner is told.


def announced(events: LocalStreamEvents) -> list[list[str]]:
    """The names of the segments of each event."""
    return [
        [Path(element.encoded_element.decode()).stem.lstrip("0") or "0" for element in event.element_event.elements]
        for event in events.Events(None, None)
        if event.HasField("element_event")
    ]


def test_what_waits_is_announced_together_and_windows_end_between(tmp_path: Path) -> None:
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    for minute in (10, 11, 12, 61, 62, 63, 121):
        stream.append([Message(b"", START + minute * MINUTE)])
    stream.close()
    window = WindowSpec.model_validate({"size": "1h"})
    with LocalStreamEvents(stream, 0, [window]) as events:
        assert announced(events) == [["0"], ["1", "2", "3"], ["4", "5", "6"]]
        assert (events.announced, events.watermark) == (7, START + 121 * MINUTE)
    with LocalStreamEvents(stream, 2 * MINUTE, [window]) as events:  # so the watermark passes the hour later
        assert announced(events) == [["0"], ["1", "2", "3", "4"], ["5", "6"]]


def test_a_watermark_ahead_of_the_clock_is_told_once_until_the_clock_has_caught_up(tmp_path: Path) -> None:
    LocalStream.create(tmp_path / "stream")
    times = [START + HOUR, START, START, START + HOUR - MINUTE, START + 2 * HOUR, START + HOUR]
    now, warned = times[:1], list[int]()
    stream = LocalStream.open(tmp_path / "stream", clock=lambda: now[0] / 1000)
    with LocalStreamEvents(stream, 0, [], warn=warned.append) as events:
        announced = events.Events(None, None)
        for time in times:
            now[0] = time
            next(event for event in announced if event.HasField("processing_time_event"))
    assert warned == [HOUR, HOUR]


def test_the_runner_hears_of_an_idle_stream_when_a_window_ends(tmp_path: Path) -> None:
    """And not at each poll, for each of which it would look at each step."""
    LocalStream.create(tmp_path / "stream")
    minutes = count()
    stream = LocalStream.open(tmp_path / "stream", clock=lambda: (START + next(minutes) * MINUTE) / 1000)
    window = WindowSpec.model_validate({"size": "1h"})
    with (
        mock.patch.multiple(LocalStreamEvents, POLL_SECONDS=0, TICK_SECONDS=3600),
        LocalStreamEvents(stream, 0, [window]) as events,
    ):
        told = [event.watermark_event.new_watermark for event in islice(events.Events(None, None), 12)]
    hours = [moment // 1000 // HOUR for moment in told if moment]
    assert hours == [*range(hours[0], hours[0] + 6)]


def test_an_idle_stream_waits_for_what_its_writer_has_not_taken_yet(tmp_path: Path) -> None:
    answers = iter([None, START, START])
    with LocalStreamEvents(LocalStream.create(tmp_path / "stream"), 1_000, [], settled=lambda: next(answers)) as events:
        told = iter(events.Events(None, None))
        watermarks = (event.watermark_event.new_watermark for event in told if event.HasField("watermark_event"))
        assert next(watermarks) == (START - 1_000) * 1_000
        assert next(answers, None) == START  # it was asked twice


def test_nobody_else_can_take_events(tmp_path: Path) -> None:
    before = listeners_below(os.getpid())
    with LocalStreamEvents(LocalStream.create(tmp_path / "stream"), 0, []) as events:
        assert listeners_below(os.getpid()) == before
        socket = Path(events.endpoint.removeprefix("unix:"))
        assert socket.is_socket()
        assert socket.parent.stat().st_mode & 0o777 == 0o700
    assert not socket.parent.exists()


def test_a_folder_whose_name_is_too_long_for_a_socket_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("x" * 120)))
    (tmp_path / ("x" * 120)).mkdir()
    with (
        pytest.raises(StreamError, match="no socket can be made there; set TMPDIR to a short path on this machine"),
        LocalStreamEvents(LocalStream.create(tmp_path / "stream"), 0, []),
    ):
        pass


# What a job makes of it.


def test_events_that_somebody_else_took_end_no_job_as_complete(tmp_path: Path) -> None:
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    for hour in range(3):
        stream.append([message(report(hour, 0, START + hour * HOUR), START + hour * HOUR)])
    stream.close()

    def stolen(events: LocalStreamEvents, request: object, context: object) -> Iterator[Any]:
        return (event for number, event in enumerate(events._events()) if number < 4)

    with (
        mock.patch.object(LocalStreamEvents, "Events", stolen),
        pytest.raises(StreamError, match=r"stream: 1 of 3 announced segments were read before the runner ended"),
    ):
        follow(stream, tmp_path / "out", spec(window={"size": "1h"}))


def follow(stream: LocalStream, out: Path, spec: CollectionSpec, *, at_once: int = Waiting.MAX_SEGMENTS) -> None:
    with mock.patch.object(Waiting, "MAX_SEGMENTS", at_once):
        jobs.follow([spec], stream.path, out, jobs.pipeline_options([]))


def files(out: Path) -> Mapping[str, bytes]:
    """The results that are of panes."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for kind in ("counts", "estimates")
        for path in (out / kind).rglob("*.avro")
    }


def facts(panes: Iterable[Statistic]) -> list[tuple[object, ...]]:
    """All of some panes but their revisions."""
    return [(pane.key, pane.pane.kind, pane.cells.tolist(), pane.accounting, pane.flags) for pane in panes]


def sent(rng: np.random.Generator, n: int, delay: int, again: int) -> list[Message]:
    """Reports of two hours, published up to ``delay`` minutes later; a third of them again, ``again`` minutes later."""
    messages = []
    for number in range(n):
        minute, symbol = int(rng.integers(120)), int(rng.integers(5))
        published = minute + int(rng.integers(delay + 1))
        each = report(number, symbol, START + minute * MINUTE)
        messages.append(message(each, START + published * MINUTE))
        if number % 3 == 0:
            messages.append(message(each, START + (published + again) * MINUTE))
    return sorted(messages, key=lambda each: each.publish_time)


def write(stream: LocalStream, messages: list[Message], segments: int) -> None:
    for part in np.array_split(np.arange(len(messages)), segments):
        stream.append([messages[index] for index in part.tolist()])
    stream.close()


def kept(out: Path, folder: str) -> list[tuple[bytes, int]]:
    """The messages that a job keeps in a folder."""
    found: Iterable[str] = message_files(out / folder) if (out / folder).exists() else ()
    return sorted((each.data, each.publish_time) for file in found for each in read_messages(file))


@pytest.mark.parametrize(
    "period", [{}, pytest.param({"period": "20m"}, marks=pytest.mark.slow)], ids=["fixed", "sliding"]
)
def test_the_files_are_those_of_segments_one_by_one(period: dict[str, str], tmp_path: Path) -> None:
    each = spec(window={"size": "1h", "allowed_lateness": "10m"} | period)
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    write(stream, sent(np.random.default_rng(4), 300, delay=0, again=0), 10)
    follow(stream, tmp_path / "one", each, at_once=1)
    follow(stream, tmp_path / "many", each)
    assert files(tmp_path / "many") == files(tmp_path / "one") != {}


@pytest.mark.slow
def test_a_window_ends_with_the_same_reports_whatever_is_late(tmp_path: Path) -> None:
    """Late panes may be fewer: each holds the late reports of a bundle."""
    each = spec(window={"size": "1h", "allowed_lateness": "47m"})
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    messages = sent(np.random.default_rng(5), 200, delay=120, again=30)
    write(stream, messages, 16)
    follow(stream, tmp_path / "one", each, at_once=1)
    follow(stream, tmp_path / "many", each)
    one, many = (ResultsFolder(tmp_path / name).statistics() for name in ("one", "many"))
    on_time = [facts(pane for pane in panes if pane.pane.kind is PaneKind.ON_TIME) for panes in (one, many)]
    assert on_time[0] == on_time[1]
    assert facts(newest(one)) == facts(newest(many))
    assert len(many) < len(one)
    assert kept(tmp_path / "one", "late") == kept(tmp_path / "many", "late") != []
    total = sum((pane.accounting for pane in newest(many)), Accounting())
    assert (total.received, total.late > 0, total.duplicate > 0) == (len(messages), True, True)


def test_what_came_before_a_damaged_segment_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    for minute in (5, 6, 61, 62):
        stream.append([message(report(minute, 0, START + minute * MINUTE))])
    (stream.path / "000000000004.avro").write_bytes(b"not Avro")
    with pytest.raises(Exception, match=r"000000000004\.avro: not an Avro file of messages"):
        follow(stream, tmp_path / "out", spec())
    assert "timed out waiting for new events" not in caplog.text  # Beam would wait for 30 s, and then say so
    (pane,) = ResultsFolder(tmp_path / "out").statistics()
    assert (pane.window_start, pane.n) == (START, 2)


def test_a_job_fails_although_what_could_not_be_read_can_be_read_now(tmp_path: Path) -> None:
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    stream.append([message(report(1, 0))])
    with (
        mock.patch("uldp.transforms.io.local.events.read_header", side_effect=OSError("the disk was away")),
        pytest.raises(OSError, match="the disk was away"),
    ):
        follow(stream, tmp_path / "out", spec())

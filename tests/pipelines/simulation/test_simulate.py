"""Simulations into a stream: segments, pace and faults."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, MINUTE, START
from tests.messages import read_back
from uldp.mechanisms.protocol.encoding import Held
from uldp.pipelines.simulation import simulate as module
from uldp.pipelines.simulation.delivery import publish
from uldp.pipelines.simulation.fleet import Fleet, Summary
from uldp.pipelines.simulation.simulate import simulate
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.records import Message
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import read_messages

SECOND = 1000


def make_fleet(users: int = 500) -> Fleet:
    spec = build.spec(domain={"size": 4}, window={"size": "1h", "allowed_lateness": "10m"})
    truth = Truth(spec.variables, (Held(np.arange(4), np.full(4, -1)),), np.full(4, 0.25))
    return Fleet(spec, truth, users, 1, START, 2 * HOUR, duplicates=0.1, late=0.1, malformed=0.1)


@pytest.fixture
def stream(tmp_path: Path) -> LocalStream:
    return LocalStream.create(tmp_path / "stream", simulated_clock=True)


def segments_of(stream: LocalStream) -> list[list[Message]]:
    """The messages by segment, without their position in it."""
    return [[message._replace(source="") for message in read_messages(path)] for path in stream.segments()]


class FakeClock:
    """Real time, as far as the simulation knows."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_the_stream_holds_what_the_fleet_publishes_and_is_closed(stream: LocalStream) -> None:
    fleet = make_fleet()
    steps = list(publish(fleet))
    assert simulate(fleet, stream) == sum((step.summary for step in steps), Summary())
    published = [message for step in steps for message in read_back(step.messages)]
    assert [message for segment in segments_of(stream) for message in segment] == published
    assert stream.closed


def test_a_segment_is_a_step_of_time(stream: LocalStream) -> None:
    simulate(make_fleet(), stream, segment_ms=5 * MINUTE)
    steps = [{message.publish_time // (5 * MINUTE) for message in segment} for segment in segments_of(stream)]
    assert all(len(step) == 1 for step in steps)
    assert all(max(first) < min(then) for first, then in pairwise(steps))


@pytest.mark.parametrize("users", [300, 30_000])
def test_a_long_simulation_has_a_thousand_segments_at_most(users: int, stream: LocalStream) -> None:
    fleet = replace(make_fleet(users=users), duration_ms=30 * 24 * HOUR)
    sent = simulate(fleet, stream)
    sizes = [len(segment) for segment in segments_of(stream)]
    assert sum(sizes) == sent.received
    assert len(sizes) <= sent.received * 1000 / users
    assert min(sizes[:-1]) >= users // 1000


@pytest.mark.parametrize("most", [1, 32])
def test_a_segment_holds_no_more_messages_than_fit_into_memory(
    most: int, stream: LocalStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_SEGMENT", most)
    sent = simulate(make_fleet(users=200), stream, segment_ms=HOUR)
    sizes = [len(segment) for segment in segments_of(stream)]
    assert max(sizes) == most
    assert min(sizes) > 0
    assert sum(sizes) == sent.received


@pytest.mark.parametrize("speed", [0.5, 60.0, 10_000.0])
def test_at_a_speed_segments_appear_when_their_time_is_over(
    speed: float, stream: LocalStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    monkeypatch.setattr(module, "time", clock)
    appended: list[tuple[float, int, int]] = []

    def append(self: LocalStream, messages: EncodedMessages) -> None:
        first, last = (messages.publish_times[[0, -1]] - START).tolist()
        appended.append((clock.now - 100, first, last))

    monkeypatch.setattr(LocalStream, "append", append)
    simulate(make_fleet(), stream, speed=speed)
    for seconds, first, last in appended:
        assert seconds * speed * SECOND >= last
        # Nothing waits longer than a segment lasts, which is a minute or, if that is shorter, half a second.
        assert seconds * speed * SECOND <= first + min(MINUTE, SECOND * speed / 2) + 1


def test_progress_rises_to_the_number_of_users(stream: LocalStream) -> None:
    done: list[int] = []
    simulate(make_fleet(users=700), stream, progress=done.append)
    assert done == sorted(done)
    assert done[-1] == 700
    assert len(set(done)) > 50


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"speed": 0}, "speed must be more than 0, got 0"),
        ({"speed": float("nan")}, "speed must be more than 0, got nan"),
        ({"segment_ms": 0}, "segment_ms must be 1 or more, got 0"),
    ],
)
def test_impossible_settings_are_errors(settings: dict[str, Any], message: str, stream: LocalStream) -> None:
    with pytest.raises(ValueError, match=message):
        simulate(make_fleet(), stream, **settings)


def test_a_stream_of_the_present_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs a stream with a simulated clock"):
        simulate(make_fleet(), LocalStream.create(tmp_path / "stream"))

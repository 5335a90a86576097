"""Pub/Sub's publish times against the watermark of the reader: backlogs, seeks, stamps, and clocks that jump."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.pubsub import NOW, SUBSCRIPTION
from uldp.schemas.records import Message
from uldp.transforms.io.publish_times import LATEST
from uldp.transforms.io.pubsub.checkpoint import AckMarkCoder, Leases
from uldp.transforms.io.pubsub.source import PubSubReader, PubSubSource

DAY = 86_400_000
DELAY = 10_000


@dataclass
class Clock:
    ms: int = NOW

    def __call__(self) -> float:
        return self.ms / 1000


@dataclass
class Queue:
    """Gives messages with the publish times that wait, all at once."""

    waiting: list[int] = field(default_factory=list)

    def pull(self) -> tuple[list[str], list[Message]]:
        given, self.waiting = self.waiting, []
        return ["ack"] * len(given), [Message(b"", time) for time in given]

    def acknowledge(self, ack_ids: Sequence[str]) -> None:
        pass

    def extend(self, ack_ids: Sequence[str], seconds: int) -> None:
        pass


class UntendedLeases(Leases):
    """No thread extends them."""

    def keep_tending(self) -> None:
        pass


def reader_of(source: PubSubSource, clock: Clock) -> PubSubReader:
    return PubSubReader(source, UntendedLeases(Queue(), clock=clock), clock=clock)


def elsewhere(reader: PubSubReader, clock: Clock) -> PubSubReader:
    """The reader of another process, which knows only the bytes of the mark."""
    mark = AckMarkCoder().decode(AckMarkCoder().encode(reader.get_checkpoint_mark()))
    leases = UntendedLeases(Queue(), mark, clock)
    return PubSubReader(reader._source, leases, mark, recovering=True, clock=clock)


def give(reader: PubSubReader, *times: int) -> list[int]:
    """The publish times that a reader gives to what comes next."""
    queue = reader._leases.queue
    assert isinstance(queue, Queue)
    queue.waiting += times
    return [message.publish_time for message in reader.get_current().messages] if reader.advance() else []


def watermark(reader: PubSubReader) -> int:
    return int(reader.get_watermark().micros // 1000)


@pytest.mark.parametrize("simulated", [False, True])
@given(data=st.data())
def test_no_message_is_before_the_watermark_that_was_announced(simulated: bool, data: st.DataObject) -> None:
    times, clock = st.integers(-(2**63), 2**63 - 1) | st.integers(NOW - DAY, NOW + DAY), Clock()
    reader = reader_of(PubSubSource(SUBSCRIPTION, DELAY, "time", simulated_clock=simulated), clock)
    for _ in range(data.draw(st.integers(1, 8))):
        clock.ms = NOW + data.draw(st.sampled_from([-3, 0, 3])) * DAY
        announced = watermark(reader)
        match data.draw(st.sampled_from(["pull", "commit", "restart"])):
            case "commit":
                for _ in range(2):  # a commit is believed with the next mark
                    reader.get_checkpoint_mark().finalize_checkpoint()
            case "restart":
                reader = elsewhere(reader, clock)
                assert watermark(reader) == announced
        latest = LATEST if simulated else clock.ms
        given_times = give(reader, *data.draw(st.lists(times, max_size=3)))
        assert all(time >= announced for time in given_times)
        assert all(time <= latest or time == announced for time in given_times)
        assert watermark(reader) >= announced

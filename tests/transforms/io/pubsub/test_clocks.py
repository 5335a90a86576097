"""Pub/Sub's publish times against the watermark of the reader: backlogs, seeks, stamps, and clocks that jump."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.pubsub import NOW, SUBSCRIPTION, Clock, Queue, StillLeases, commit, queue_of, watermark
from uldp.schemas.records import Message
from uldp.transforms.io.publish_times import LATEST
from uldp.transforms.io.pubsub.checkpoint import AckMarkCoder
from uldp.transforms.io.pubsub.source import PubSubReader, PubSubSource

DAY = 86_400_000
DELAY = 10_000


def reader_of(source: PubSubSource, clock: Clock) -> PubSubReader:
    return PubSubReader(source, StillLeases(Queue(), clock=clock), clock=clock)


def elsewhere(reader: PubSubReader, clock: Clock) -> PubSubReader:
    """The reader of another process, which knows only the bytes of the mark."""
    mark = AckMarkCoder().decode(AckMarkCoder().encode(reader.get_checkpoint_mark()))
    leases = StillLeases(Queue(), mark, clock)
    return PubSubReader(reader._source, leases, mark, recovering=True, clock=clock)


def give(reader: PubSubReader, *times: int) -> list[int]:
    """The publish times that a reader gives to what comes next."""
    queue_of(reader).waiting.append([Message(b"", time) for time in times])
    return [message.publish_time for message in reader.get_current().messages] if reader.advance() else []


@pytest.mark.parametrize("simulated", [False, True])
@given(data=st.data())
def test_no_message_is_before_the_watermark_that_was_announced(simulated: bool, data: st.DataObject) -> None:
    times, clock = st.integers(-(2**63), 2**63 - 1) | st.integers(NOW - DAY, NOW + DAY), Clock()
    reader = reader_of(PubSubSource(SUBSCRIPTION, DELAY, "time", simulated_clock=simulated), clock)
    for _ in range(data.draw(st.integers(1, 8))):
        clock.now = (NOW + data.draw(st.sampled_from([-3, 0, 3])) * DAY) / 1000
        announced = watermark(reader)
        match data.draw(st.sampled_from(["pull", "commit", "restart"])):
            case "commit":
                commit(reader)
            case "restart":
                reader = elsewhere(reader, clock)
                assert watermark(reader) == announced
        latest = LATEST if simulated else round(clock.now * 1000)
        given_times = give(reader, *data.draw(st.lists(times, max_size=3)))
        assert all(time >= announced for time in given_times)
        assert all(time <= latest or time == announced for time in given_times)
        assert watermark(reader) >= announced


@pytest.mark.parametrize(("written", "reached"), [(NOW - 60_000, NOW - 60_000), (2 * NOW, NOW + 10_000)])
def test_a_steady_flow_of_old_times_holds_the_watermark_and_times_to_come_do_not_move_it(
    written: int, reached: int
) -> None:
    """A second each: a message of now, and one whose publisher wrote its time."""
    clock = Clock()
    reader = reader_of(PubSubSource(SUBSCRIPTION, delay_ms=0, timestamp_attribute="sent_at"), clock)
    for _ in range(10):
        clock.pause(1)
        give(reader, round(clock.now * 1000), written)
        last = watermark(reader)
        commit(reader)
    assert last == reached

"""A topic with open transactions: what cannot be read yet holds the watermark, and is not taken for the end."""

import pytest
from apache_beam.utils.timestamp import MAX_TIMESTAMP
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.kafka import (
    NOW,
    TIMED_OUT,
    TOPIC,
    Broker,
    Clock,
    Failure,
    Reason,
    drain,
    reader_of,
    serving,
    sources,
    watermark,
)
from uldp.schemas.records import Message, iso
from uldp.transforms.io.kafka.reader import LOOK_SECONDS, OPEN_SECONDS
from uldp.transforms.io.kafka.source import KafkaSource


def test_the_first_message_that_is_withheld_holds_the_watermark(broker: Broker) -> None:
    broker.partitions, broker.open, clock = {0: [NOW - 9000, NOW - 5000, NOW - 4000]}, {0: 1}, Clock()
    reader = reader_of(KafkaSource(TOPIC, 100), clock)
    assert sources(drain(reader)) == ["reports/0/0"]
    for _ in range(3):
        clock.tick(20_000)
        assert drain(reader) == []
        assert watermark(reader) in (NOW - 9100, NOW - 5100)
    assert watermark(reader) == NOW - 5100
    broker.open = {}
    assert [each.publish_time for each in drain(reader)] == [NOW - 5000, NOW - 4000]
    now = clock.tick(int(LOOK_SECONDS * 1000))
    drain(reader)
    assert watermark(reader) == now - 100
    assert broker.uncommitted[0].next == {}  # which fetches nothing more


def test_a_transaction_without_a_time_holds_the_watermark_where_it_was(broker: Broker) -> None:
    """The connection that reads it gives nothing."""
    broker.partitions, clock = {0: [NOW - 9000]}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    broker.uncommitted[0].consume = lambda *_: []
    broker.partitions[0] += [NOW + 1]
    broker.open = {0: 1}
    for _ in range(3):
        clock.tick()
        drain(reader)
    assert watermark(reader) == NOW
    assert broker.uncommitted[0].assigned == 1  # it is asked on, not anew


@pytest.mark.parametrize("question", ["offsets_for_times", "list_topics"])
def test_a_question_that_fails_holds_the_watermark(broker: Broker, question: str) -> None:
    """Whether messages are withheld, and whether there are more partitions."""

    def fail(*_: object) -> None:
        raise Failure(Reason(TIMED_OUT))

    broker.partitions, clock = {0: [NOW - 9000]}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    (consumer,) = broker.uncommitted if question == "offsets_for_times" else broker.consumers
    setattr(consumer, question, fail)
    clock.tick(int(LOOK_SECONDS * 1000))
    assert drain(reader) == []
    assert watermark(reader) == NOW


def test_the_log_says_once_since_when_a_transaction_is_open(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    broker.partitions, broker.open, clock = {0: [], 3: [NOW, NOW + 1]}, {3: 1}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    for _ in range(3):
        assert caplog.messages == []
        clock.tick(int(OPEN_SECONDS * 1000) // 3)
        drain(reader)
    clock.tick(int(OPEN_SECONDS * 1000))
    drain(reader)
    (line,) = caplog.messages
    assert line == (
        f"kafka:broker:9092/reports: partition 3: a transaction is open since {iso(NOW + 1)}, so messages from"
        " offset 1 on cannot be read, and all windows wait for them; end it, or run: kafka-transactions.sh"
        " --bootstrap-server broker:9092 abort --topic reports --partition 3 --start-offset 1"
    )


def test_who_stops_at_the_end_says_what_is_behind_it(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    broker.partitions, broker.open = {0: [NOW] * 5, 1: [NOW] * 2}, {0: 2}
    reader = reader_of(KafkaSource(TOPIC, stop_at_end=True))
    assert sources(drain(reader)) == ["reports/0/0", "reports/0/1", "reports/1/0", "reports/1/1"]
    assert reader.get_watermark() == MAX_TIMESTAMP
    assert len(caplog.messages) == 1
    assert "partition 0 has 3 messages from offset 2 on that cannot be read yet, because a transaction is open" in (
        caplog.text
    )


@given(st.data())
def test_no_message_comes_behind_the_watermark(data: st.DataObject) -> None:
    """Whatever is sent, and however long transactions are open: each message keeps the time at which it was sent."""
    broker, clock = Broker({0: [], 1: []}, largest=data.draw(st.integers(1, 3))), Clock()
    with serving(broker):
        source, read = KafkaSource(TOPIC), list[Message]()
        reader = reader_of(source, clock)
        for _ in range(data.draw(st.integers(1, 20))):
            partition = data.draw(st.integers(0, 1))
            if data.draw(st.booleans()):
                broker.open.pop(partition, None)
            elif data.draw(st.booleans()):
                broker.open.setdefault(partition, len(broker.partitions[partition]))
            broker.partitions[partition] += [clock.ms] * data.draw(st.integers(0, 3))
            if data.draw(st.booleans()):
                reader = reader_of(source, clock, reader.get_checkpoint_mark())
            clock.tick(data.draw(st.sampled_from([1, 300, 60_000])))
            if reader.advance():
                read += reader.get_current().messages
        broker.open.clear()
        for _ in range(5):
            clock.tick(60_000)
            read += drain(reader)
    assert watermark(reader) == clock.ms
    assert {each.source: each.publish_time for each in read} == {
        f"reports/{partition}/{offset}": time
        for partition, times in broker.partitions.items()
        for offset, time in enumerate(times)
    }
    assert len(read) == sum(map(len, broker.partitions.values()))

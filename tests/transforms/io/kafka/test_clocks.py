"""Kafka's publish times against the watermark of the reader, whatever clocks say."""

import pytest
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.kafka import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    LONGEST,
    NOW,
    TOPIC,
    Broker,
    Clock,
    drain,
    reader_of,
    serving,
    watermark,
)
from uldp.transforms.io.kafka.reader import _warn_of_senders_times
from uldp.transforms.io.kafka.source import KafkaSource

DAY = 86_400_000
DELAY = 10_000


@pytest.mark.parametrize("simulated", [False, True])
@given(data=st.data())
def test_no_message_is_before_the_watermark_that_was_announced(simulated: bool, data: st.DataObject) -> None:
    times, broker, clock = st.integers(-LONGEST, LONGEST) | st.integers(NOW - DAY, NOW + DAY), Broker({0: []}), Clock()
    source = KafkaSource(TOPIC, DELAY, simulated_clock=simulated)
    with serving(broker):
        reader = reader_of(source, clock)
        for _ in range(data.draw(st.integers(1, 6))):
            clock.ms = NOW + data.draw(st.sampled_from([-3, 0, 3])) * DAY
            broker.partitions[0] += data.draw(st.lists(times, max_size=3))
            if data.draw(st.booleans()):
                reader = reader_of(source, clock, reader.get_checkpoint_mark())
            announced = watermark(reader)
            if reader.advance():
                for message in reader.get_current().messages:
                    assert message.publish_time >= announced
                    assert simulated or message.publish_time in {announced, min(message.publish_time, clock.ms)}
            assert watermark(reader) >= announced


def test_what_is_read_to_its_end_closes_no_window_before(broker: Broker) -> None:
    broker.partitions, broker.largest = {0: [NOW, NOW - 3 * DAY]}, 1
    reader = reader_of(KafkaSource(TOPIC, stop_at_end=True))
    assert reader.advance()
    assert reader.get_watermark() == MIN_TIMESTAMP
    assert [message.publish_time for message in drain(reader)] == [NOW - 3 * DAY]
    assert reader.get_watermark() == MAX_TIMESTAMP


@pytest.mark.parametrize(
    ("kind", "source", "warnings"),
    [
        (CREATE_TIME, KafkaSource(TOPIC), 1),
        (LOG_APPEND_TIME, KafkaSource(TOPIC), 0),
        (CREATE_TIME, KafkaSource(TOPIC, simulated_clock=True), 0),
        (CREATE_TIME, KafkaSource(TOPIC, stop_at_end=True), 0),
    ],
)
def test_it_is_logged_once_that_senders_choose_the_time(
    broker: Broker, caplog: pytest.LogCaptureFixture, kind: int, source: KafkaSource, warnings: int
) -> None:
    _warn_of_senders_times.cache_clear()
    broker.partitions, broker.largest, broker.kind = {0: [NOW] * 3}, 1, kind
    for _ in range(2):
        drain(reader_of(source))
    assert [
        record.message.endswith("set message.timestamp.type=LogAppendTime on the topic") for record in caplog.records
    ] == [True] * warnings

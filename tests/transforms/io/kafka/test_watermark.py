"""The watermark of the reader of Kafka: idle or silent partitions, brokers that are away, and wrong clocks."""

import pytest
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.kafka import (
    ALL_BROKERS_DOWN,
    CREATE_TIME,
    LOG_APPEND_TIME,
    LONGEST,
    NOW,
    TIMED_OUT,
    TOPIC,
    Broker,
    Clock,
    Failure,
    Raw,
    Reason,
    drain,
    reader_of,
    serving,
    sources,
    watermark,
)
from uldp.transforms.io.kafka.reader import LOOK_SECONDS, STUCK_SECONDS, _warn_of_senders_times
from uldp.transforms.io.kafka.source import KafkaSource


def test_nothing_is_known_before_something_was_read(broker: Broker) -> None:
    broker.partitions, broker.largest = {0: [NOW - 9000, NOW], 1: [NOW - 8000]}, 1
    reader = reader_of(KafkaSource(TOPIC))
    assert reader.get_watermark() == MIN_TIMESTAMP
    assert reader.start()
    assert reader.get_watermark() == MIN_TIMESTAMP  # of partition 1 nothing was read


def test_the_watermark_is_the_latest_time_less_the_delay(broker: Broker) -> None:
    broker.partitions, broker.largest = {0: [NOW - 9000, NOW - 7000, NOW - 8000, NOW - 6000]}, 1
    reader = reader_of(KafkaSource(TOPIC, 100))
    seen = [watermark(reader) for _ in range(3) if reader.advance()]
    assert seen == [NOW - 9100, NOW - 7100, NOW - 7100]


def test_an_idle_partition_does_not_hold_it(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW - 9000], 1: []}, Clock()
    reader = reader_of(KafkaSource(TOPIC, 100), clock)
    drain(reader)
    assert watermark(reader) == NOW - 100
    now = clock.tick(60_000)
    assert drain(reader) == []
    assert watermark(reader) == now - 100


def test_what_was_not_fetched_yet_holds_it(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW]}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    consumer = broker.consumers[-1]
    consume, consumer.consume = consumer.consume, lambda *_: []  # the broker is asked, and the fetch is slow
    broker.partitions[0].append(NOW + 1)
    clock.tick(60_000)
    assert not reader.advance()
    assert watermark(reader) == NOW
    consumer.consume = consume
    assert [message.publish_time for message in drain(reader)] == [NOW + 1]


def test_a_broker_that_is_away_holds_it_and_fails_nothing(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW]}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    broker.partitions[0].append(NOW + 1)
    broker.refuses, broker.events = Reason(TIMED_OUT), [Raw(failed=Reason(ALL_BROKERS_DOWN))]
    clock.tick(60_000)
    assert drain(reader) == []
    assert watermark(reader) == NOW
    broker.refuses = None
    assert sources(drain(reader)) == ["reports/0/1"]
    now = clock.tick(int(LOOK_SECONDS * 1000))
    drain(reader)
    assert watermark(reader) == now


@pytest.mark.parametrize("more_of_others", [0, 1])
def test_a_partition_of_which_nothing_comes_is_connected_to_anew(
    broker: Broker, caplog: pytest.LogCaptureFixture, more_of_others: int
) -> None:
    broker.partitions, clock = {0: [NOW], 1: [NOW]}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    (deaf,) = broker.consumers
    consume = deaf.consume
    deaf.consume = lambda *of: [raw for raw in consume(*of) if raw.partition() == 1]
    broker.partitions[0].append(NOW)
    read = []
    for _ in range(2):
        assert (deaf.closed, caplog.messages) == (False, [])
        clock.tick(int(STUCK_SECONDS * 1000))
        broker.partitions[1] += [NOW] * more_of_others
        read += drain(reader)
    assert (deaf.closed, len(caplog.messages)) == (True, 1)
    expected = [f"reports/1/{1 + offset}" for offset in range(2 * more_of_others)]
    assert sources([*read, *drain(reader)]) == [*expected, "reports/0/1"]


def test_after_a_long_outage_another_connection_goes_on(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW]}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    broker.refuses = Reason(TIMED_OUT)
    for n in (1, 1, 1, 2, 2):
        assert len(broker.consumers) == n
        clock.tick(int(STUCK_SECONDS * 1000))
        assert drain(reader) == []
    assert [consumer.closed for consumer in broker.consumers] == [True, True, False]
    broker.refuses = None
    broker.partitions[0].append(NOW)
    assert sources(drain(reader)) == ["reports/0/1"]


def test_a_broker_that_is_away_at_first_is_waited_for(broker: Broker) -> None:
    broker.partitions, broker.refuses = {0: [NOW]}, Reason(TIMED_OUT)
    reader = reader_of(KafkaSource(TOPIC, stop_at_end=True))
    assert not reader.start()
    assert reader.get_watermark() == MIN_TIMESTAMP
    assert reader.get_checkpoint_mark().positions == {}
    broker.refuses = None
    assert sources(drain(reader)) == ["reports/0/0"]


def test_a_chunk_is_not_lost_where_the_question_behind_it_fails(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW], 1: []}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    clock.tick()
    broker.partitions[0].append(NOW)
    fetched = broker.consumers[-1].consume(10, 0.1)
    broker.events, broker.refuses = fetched, Reason(TIMED_OUT)
    assert reader.advance()
    assert sources(reader.get_current().messages) == ["reports/0/1"]


def test_a_fetch_that_fails_gives_nothing_twice(broker: Broker) -> None:
    def fail(*_: object) -> None:
        raise Failure(Reason(TIMED_OUT))

    broker.partitions = {0: [NOW]}
    reader = reader_of(KafkaSource(TOPIC))
    assert reader.advance()
    broker.consumers[-1].consume = fail
    assert not reader.advance()


def test_a_simulated_clock_is_that_of_the_messages(broker: Broker) -> None:
    broker.partitions, clock = {0: [1000, 3000], 1: [], 2: [500]}, Clock()
    reader = reader_of(KafkaSource(TOPIC, 100, simulated_clock=True), clock)
    drain(reader)
    clock.tick(3_600_000)
    drain(reader)
    assert watermark(reader) == 3000 - 100
    broker.partitions[1].append(LATER := 2 * NOW)
    drain(reader)
    clock.tick(int(LOOK_SECONDS * 1000))
    drain(reader)
    assert watermark(reader) == LATER - 100


def test_an_idle_partition_whose_end_nobody_knows_holds_the_watermark(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW]}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    broker.leaderless = {0}
    clock.tick(60_000)
    drain(reader)
    assert watermark(reader) == NOW


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

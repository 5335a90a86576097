"""The reader of Kafka against a broker that is a few lists; the client library is not needed."""

from dataclasses import replace
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.kafka import (
    ALL_BROKERS_DOWN,
    CREDENTIALS,
    END_OF_PARTITION,
    LONGEST,
    NO_PARTITION,
    NO_PERMISSION,
    NO_TOPIC,
    NO_TOPIC_HERE,
    NOW,
    TIMED_OUT,
    TLS,
    TOPIC,
    Broker,
    Clock,
    Failure,
    Raw,
    Reason,
    drain,
    reader_of,
    sources,
    watermark,
)
from uldp.schemas.records import Message
from uldp.transforms.io.chunks import ChunkSize
from uldp.transforms.io.kafka.consumers import CONSUMERS
from uldp.transforms.io.kafka.source import MAX_MESSAGES, STUCK_SECONDS, KafkaSource, ReadFromKafka, attributes
from uldp.transforms.io.kafka.topic import KafkaError

# Splits.


@pytest.mark.parametrize(("partitions", "desired", "n"), [(1, 20, 1), (3, 20, 3), (20, 20, 20), (7, 3, 3), (5, 1, 1)])
def test_each_partition_has_one_reader(broker: Broker, partitions: int, desired: int, n: int) -> None:
    broker.partitions = {each: [] for each in range(partitions)}
    split = KafkaSource(TOPIC, 5).split(desired)
    assert len(split) == n
    assert sorted(each for source in split for each in source.partitions) == list(range(partitions))
    assert max(len(source.partitions) for source in split) - min(len(source.partitions) for source in split) <= 1
    assert {replace(source, partitions=()) for source in split} == {KafkaSource(TOPIC, 5)}
    assert [source.split(20) for source in split] == [[source] for source in split]


def test_one_clock_has_one_reader(broker: Broker) -> None:
    broker.partitions = {0: [], 1: []}
    source = KafkaSource(TOPIC, simulated_clock=True)
    assert source.split(20) == [source]


@pytest.mark.parametrize(
    ("size", "n"),
    [(0, MAX_MESSAGES), (100, MAX_MESSAGES), (28_000, 9), (ChunkSize.BYTES // 2, 1), (9 * ChunkSize.BYTES, 1)],
)
def test_a_chunk_has_as_many_messages_as_its_bytes_allow(broker: Broker, size: int, n: int) -> None:
    broker.partitions, broker.largest, broker.body = {0: [NOW] * 3 * MAX_MESSAGES}, MAX_MESSAGES, bytes(size)
    reader = reader_of(KafkaSource(TOPIC))
    assert reader.start()  # and knows then how large they are
    assert reader.advance()
    assert len(reader.get_current()) == n


def test_who_was_not_split_reads_all(broker: Broker) -> None:
    broker.partitions = {0: [NOW], 5: [NOW]}
    assert sources(drain(reader_of(KafkaSource(TOPIC)))) == ["reports/0/0", "reports/5/0"]


# Messages.


def test_messages_come_in_order_with_time_and_source(broker: Broker) -> None:
    broker.partitions, broker.largest = {3: [NOW - 5, NOW - 7, NOW - 1]}, 2
    assert drain(reader_of(KafkaSource(TOPIC, partitions=(3,)))) == [
        Message(b"", NOW - 5, {}, "reports/3/0"),
        Message(b"", NOW - 7, {}, "reports/3/1"),
        Message(b"", NOW - 1, {}, "reports/3/2"),
    ]


@pytest.mark.parametrize(
    ("stamp", "live", "simulated"),
    [
        (NOW + 1, NOW, NOW + 1),
        (LONGEST, NOW, 9223371950454774),  # Beam's last moment
        (-1, 0, 0),
        (-LONGEST, 0, 0),
        (NOW - 1, NOW - 1, NOW - 1),
    ],
)
def test_times_that_cannot_be_are_bounded(broker: Broker, stamp: int, live: int, simulated: int) -> None:
    broker.partitions = {0: [stamp]}
    for simulated_clock, expected in ((False, live), (True, simulated)):
        reader = reader_of(KafkaSource(TOPIC, simulated_clock=simulated_clock))
        assert [message.publish_time for message in drain(reader)] == [expected]
        assert watermark(reader) == max(expected, watermark(reader))


def test_a_message_without_a_body_is_empty(broker: Broker) -> None:
    broker.events = [Raw((0, 0), body=None)]
    assert drain(reader_of(KafkaSource(TOPIC))) == [Message(b"", NOW, {}, "reports/0/0")]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (None, {}),
        ([], {}),
        ([("a", b"x"), ("b", "ü".encode())], {"a": "x", "b": "ü"}),
        ([("a", b"1"), ("a", b"2")], {"a": "2"}),
        ([("a", None), ("", b"")], {"a": "", "": ""}),
        ([("a", b"\xff\x00k")], {"a": "\\xff\x00k"}),
        ([("a", b"\xed\xa0\x80")], {"a": "\\xed\\xa0\\x80"}),  # a surrogate
    ],
)
def test_headers_are_attributes(headers: Any, expected: dict[str, str]) -> None:
    assert attributes(Raw(named=lambda: headers)) == expected


@given(st.lists(st.tuples(st.text(), st.none() | st.binary())))
def test_no_header_is_an_error(headers: list[tuple[str, bytes | None]]) -> None:
    for name, value in attributes(Raw(named=lambda: headers)).items():
        (name + value).encode()


@pytest.mark.parametrize("error", [UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), SystemError("bad")])
def test_header_names_that_the_client_cannot_read_are_left_out(error: Exception) -> None:
    def unreadable() -> None:
        raise error

    assert attributes(Raw(named=unreadable)) == {}


# The watermark.


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


def test_the_partition_furthest_behind_holds_it(broker: Broker) -> None:
    broker.partitions, broker.largest = {0: [NOW - 1], 1: [NOW - 9000, NOW - 8000, NOW - 7000]}, 2
    reader = reader_of(KafkaSource(TOPIC))
    assert reader.advance()
    assert reader.advance()
    assert watermark(reader) < NOW - 1


def test_an_idle_partition_does_not_hold_it(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW - 9000], 1: []}, Clock()
    reader = reader_of(KafkaSource(TOPIC, 100), clock)
    drain(reader)
    assert watermark(reader) == NOW - 100
    now = clock.tick(60_000)
    assert drain(reader) == []
    assert watermark(reader) == now - 100


def test_an_idle_partition_does_not_hold_it_while_another_is_busy(broker: Broker) -> None:
    broker.partitions, broker.largest, clock = {0: [], 1: [NOW - 50] * 9}, 1, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    assert not reader.advance()  # that partition 0 is at its end
    for _ in range(3):
        clock.tick()
        assert reader.advance()
    assert watermark(reader) == NOW - 50


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
    now = clock.tick()
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


def test_a_partition_that_is_behind_and_moves_is_left_alone(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW] * 10}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    broker.largest = 1
    for _ in range(10):
        assert reader.advance()
        clock.tick(int(STUCK_SECONDS * 1000))
    assert len(broker.consumers) == 1


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


def test_it_never_goes_backwards(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW]}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    broker.partitions[0].append(NOW - 120_000)
    drain(reader)
    clock.tick(-60_000)
    with CONSUMERS.lend(reader._source, TOPIC) as consumer:
        consumer.asked = 0
    drain(reader)
    assert watermark(reader) == NOW


def test_who_is_behind_is_not_asked_whether_it_is(broker: Broker) -> None:
    broker.partitions, broker.largest, clock = {0: [NOW]}, 1, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    broker.partitions[0] += [NOW + 1] * 3
    assert reader.advance()
    broker.consumers[-1].offsets_for_times = None  # fails who calls it
    clock.tick()
    assert reader.advance()


def test_a_simulated_clock_is_that_of_the_messages(broker: Broker) -> None:
    broker.partitions, clock = {0: [1000, 3000], 1: [], 2: [500]}, Clock()
    reader = reader_of(KafkaSource(TOPIC, 100, simulated_clock=True), clock)
    drain(reader)
    clock.tick(3_600_000)
    drain(reader)
    assert watermark(reader) == 3000 - 100
    broker.partitions[1].append(LATER := 2 * NOW)
    drain(reader)
    clock.tick()
    drain(reader)
    assert watermark(reader) == LATER - 100


# Errors that stay.


@pytest.mark.parametrize("reason", [Reason(NO_TOPIC), Reason(NO_PERMISSION), Reason(TIMED_OUT, dead=True)])
def test_what_no_waiting_heals_fails(broker: Broker, reason: Reason) -> None:
    for at_once in (True, False):
        clock = Clock()
        reader = reader_of(KafkaSource(TOPIC, partitions=(0,)), clock)
        if at_once:
            broker.events = [Raw(failed=reason)]
        else:
            drain(reader)
            broker.refuses = reason  # said only to who asks: the topic was deleted
            clock.tick()
        with pytest.raises(KafkaError, match=rf"^kafka:broker:9092/reports: .*\(reason {reason.number}\)$"):
            reader.advance()


@pytest.mark.parametrize("partitions", [(), (0,)])
def test_who_is_refused_on_the_way_fails(broker: Broker, partitions: tuple[int, ...]) -> None:
    broker.meets, broker.refuses = [Reason(ALL_BROKERS_DOWN), Reason(CREDENTIALS)], Reason(TIMED_OUT)
    with pytest.raises(KafkaError, match=r"the broker refused the credentials; .*\(reason -169\)$"):
        reader_of(KafkaSource(TOPIC, partitions=partitions)).start()
    broker.refuses = None
    assert drain(reader_of(KafkaSource(TOPIC, partitions=partitions))) == []  # the next one begins anew


@pytest.mark.parametrize("code", [TIMED_OUT, NO_PARTITION, NO_TOPIC_HERE, ALL_BROKERS_DOWN, 5, 6])
def test_what_waiting_heals_does_not(broker: Broker, code: int) -> None:
    broker.events, broker.meets = [Raw(failed=Reason(code)), Raw((0, 0))], [Reason(TLS)]
    assert sources(drain(reader_of(KafkaSource(TOPIC)))) == ["reports/0/0"]


# The end.


def test_reading_stops_where_the_end_was(broker: Broker) -> None:
    broker.partitions, broker.largest = {0: [NOW, NOW], 1: [NOW], 2: []}, 1
    source = KafkaSource(TOPIC, stop_at_end=True)
    reader = reader_of(source)
    assert reader.start()
    for times in broker.partitions.values():
        times.append(NOW)
    read = sources(reader.get_current().messages) + sources(drain(reader))
    reader = reader_of(source, mark=reader.get_checkpoint_mark())  # the mark knows the end
    read += sources(drain(reader))
    for _ in range(len(broker.partitions)):
        read += sources(drain(reader))  # which stops where only an end is fetched
    assert read == ["reports/0/0", "reports/0/1", "reports/1/0"]
    assert reader.get_watermark() == MAX_TIMESTAMP
    reader.close()


def test_an_end_that_nobody_knows_yet_is_waited_for(broker: Broker) -> None:
    broker.partitions, broker.leaderless = {0: [NOW], 1: []}, {0}
    reader = reader_of(KafkaSource(TOPIC, stop_at_end=True))
    assert drain(reader) == []
    broker.leaderless = set()
    assert len(drain(reader)) == 1
    assert reader.get_watermark() == MAX_TIMESTAMP


def test_an_idle_partition_whose_end_nobody_knows_holds_the_watermark(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW]}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    broker.leaderless = {0}
    clock.tick(60_000)
    drain(reader)
    assert watermark(reader) == NOW


def test_the_end_of_a_transaction_is_no_message(broker: Broker) -> None:
    broker.partitions = {0: [NOW, NOW]}
    reader = reader_of(KafkaSource(TOPIC, stop_at_end=True))
    broker.largest = 0
    assert not reader.advance()
    broker.consumers[-1].consume = lambda *_: [Raw((0, 0)), Raw((0, 2), failed=Reason(END_OF_PARTITION))]
    assert reader.advance()
    assert reader.get_watermark() == MAX_TIMESTAMP


def test_a_topic_is_read_by_a_pipeline(broker: Broker) -> None:
    broker.partitions, broker.largest = {each: [NOW + each] * 5 for each in range(3)}, 2
    with beam.Pipeline("FnApiRunner") as pipeline:
        chunks = pipeline | ReadFromKafka(KafkaSource(TOPIC, stop_at_end=True))
        expected = [f"reports/{partition}/{offset}" for partition in range(3) for offset in range(5)]
        assert_that(chunks | beam.FlatMap(lambda chunk: sources(chunk.messages)), equal_to(expected))

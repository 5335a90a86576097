"""The reader of Kafka against a broker that is a few lists; the client library is not needed."""

from dataclasses import replace
from itertools import chain
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.utils.timestamp import MAX_TIMESTAMP
from hypothesis import given
from hypothesis import strategies as st

from tests.beams import needs_sources
from tests.fakes.kafka import (
    ALL_BROKERS_DOWN,
    CREDENTIALS,
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
    Raw,
    Reason,
    drain,
    reader_of,
    sources,
)
from uldp.schemas.errors import EndpointError
from uldp.schemas.records import ATTEMPT, SENDER, Message
from uldp.transforms.io.chunks import ChunkSize
from uldp.transforms.io.kafka.checkpoint import KafkaMark, Position
from uldp.transforms.io.kafka.consumers import attributes
from uldp.transforms.io.kafka.reader import MAX_MESSAGES
from uldp.transforms.io.kafka.source import KafkaSource, ReadFromKafka

# Readers.


def partitions_of(source: KafkaSource) -> set[int]:
    reader = reader_of(source)
    reader.start()
    return set(reader.get_checkpoint_mark().positions)


@pytest.mark.parametrize(
    ("partitions", "most", "n"), [(1, 16, 1), (3, 16, 3), (16, 16, 16), (50, 16, 16), (50, 20, 20), (200, 500, 128)]
)
def test_each_partition_has_one_reader(broker: Broker, partitions: int, most: int, n: int) -> None:
    broker.partitions = {each: [] for each in range(partitions)}
    readers = KafkaSource(TOPIC, 5, readers=most).of_readers()
    assert len(readers) == n
    shares = [partitions_of(source) for source in readers]
    assert sorted(chain(*shares)) == list(range(partitions))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert {replace(source, share=(0, 1)) for source in readers} == {KafkaSource(TOPIC, 5, readers=most)}
    assert [source.of_readers() for source in readers] == [[source] for source in readers]


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


# Messages.


def test_a_message_without_a_body_is_empty(broker: Broker) -> None:
    broker.events = [Raw((0, 0), body=None)]
    assert drain(reader_of(KafkaSource(TOPIC))) == [Message(b"", NOW, {}, "reports/0/0")]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (None, {}),
        ([(ATTEMPT, b"2"), ("other", b"x"), (SENDER, "ü".encode())], {ATTEMPT: "2", SENDER: "ü"}),
        ([(SENDER, b"1"), (SENDER, b"2")], {SENDER: "2"}),
        ([(SENDER, None), ("", b"")], {SENDER: ""}),
        ([(SENDER, b"\xff\x00k")], {SENDER: "\\xff\x00k"}),
        ([(SENDER, b"\xed\xa0\x80")], {SENDER: "\\xed\\xa0\\x80"}),  # a surrogate
    ],
)
def test_headers_are_attributes(headers: Any, expected: dict[str, str]) -> None:
    assert attributes(Raw(named=lambda: headers)) == expected


@given(st.lists(st.tuples(st.text() | st.sampled_from([ATTEMPT, SENDER]), st.none() | st.binary())))
def test_no_header_is_an_error(headers: list[tuple[str, bytes | None]]) -> None:
    for name, value in attributes(Raw(named=lambda: headers)).items():
        (name + value).encode()


@pytest.mark.parametrize("error", [UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), SystemError("bad")])
def test_header_names_that_the_client_cannot_read_are_left_out(error: Exception) -> None:
    def unreadable() -> None:
        raise error

    assert attributes(Raw(named=unreadable)) == {}


# Errors that stay.


@pytest.mark.parametrize("reason", [Reason(NO_TOPIC), Reason(NO_PERMISSION), Reason(TIMED_OUT, dead=True)])
def test_what_no_waiting_heals_fails(broker: Broker, reason: Reason) -> None:
    for at_once in (True, False):
        clock = Clock()
        reader = reader_of(KafkaSource(TOPIC), clock)
        if at_once:
            broker.events = [Raw(failed=reason)]
        else:
            drain(reader)
            broker.refuses = reason  # said only to who asks: the topic was deleted
            clock.tick()
        with pytest.raises(EndpointError, match=rf"^kafka:broker:9092/reports: .*\(reason {reason.number}\)$"):
            reader.advance()


@pytest.mark.parametrize("mark", [None, KafkaMark({0: Position(0)}, TOPIC)])
def test_who_is_refused_on_the_way_fails(broker: Broker, mark: KafkaMark | None) -> None:
    broker.meets, broker.refuses = [Reason(ALL_BROKERS_DOWN), Reason(CREDENTIALS)], Reason(TIMED_OUT)
    with pytest.raises(EndpointError, match=r"the broker refused the credentials; .*\(reason -169\)$"):
        reader_of(KafkaSource(TOPIC), mark=mark).start()
    broker.refuses = None
    assert drain(reader_of(KafkaSource(TOPIC), mark=mark)) == []  # the next one begins anew


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


@needs_sources
def test_a_topic_is_read_by_a_pipeline(broker: Broker) -> None:
    broker.partitions, broker.largest = {each: [NOW + each] * 5 for each in range(3)}, 2
    with beam.Pipeline("FnApiRunner") as pipeline:
        chunks = pipeline | ReadFromKafka(KafkaSource(TOPIC, stop_at_end=True))
        expected = [f"reports/{partition}/{offset}" for partition in range(3) for offset in range(5)]
        assert_that(chunks | beam.FlatMap(lambda chunk: sources(chunk.messages)), equal_to(expected))

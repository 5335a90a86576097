"""A topic that removes messages before they are read: they are named once, with their offsets, and no others are."""

from collections.abc import Callable, Iterator

import pytest
from apache_beam.utils.timestamp import MAX_TIMESTAMP
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.kafka import (
    END_OF_PARTITION,
    NOW,
    OUT_OF_RANGE,
    TIMED_OUT,
    TOPIC,
    Broker,
    Clock,
    Raw,
    Reason,
    drain,
    reader_of,
    resumed,
    serving,
    sources,
    watermark,
)
from uldp.schemas.records import Message, Missing, missing_messages
from uldp.transforms.io.kafka.reader import KafkaReader
from uldp.transforms.io.kafka.source import KafkaSource

DELAY = 100


def offsets(first: int, end: int, partition: int = 0) -> list[str]:
    return [f"reports/{partition}/{offset}" for offset in range(first, end)]


def the_same(reader: KafkaReader, clock: Clock) -> KafkaReader:
    return reader


@pytest.mark.parametrize("then", [resumed, the_same])
def test_what_the_topic_removed_is_named(
    broker: Broker, caplog: pytest.LogCaptureFixture, then: Callable[[KafkaReader, Clock], KafkaReader]
) -> None:
    broker.partitions, clock, missing = {0: [NOW - 5000] * 200}, Clock(), list[Missing]()
    reader = reader_of(KafkaSource(TOPIC, DELAY), clock)
    read = drain(reader, missing)
    broker.partitions[0] += [NOW + 1000] * 100 + [NOW + 2000] * 110
    broker.removed = {0: 300}
    clock.tick(3000)
    reader = then(reader, clock)
    read += drain(reader, missing) + drain(reader, missing)
    assert (len(broker.partitions[0]), len(read)) == (410, 310)
    assert sources(read) == offsets(0, 200) + offsets(300, 410)
    assert missing == [Missing("reports/0", 200, 299, after=NOW - DELAY, before=NOW + 2000)]
    (said,) = caplog.messages
    assert said.startswith(
        f"{TOPIC}: partition 0 lost 100 messages from offset 200 on before this job read them; raise"
    )
    read, missing = drain(resumed(reader, clock)), []
    assert (read, missing) == ([], [])


def test_what_was_removed_before_a_job_began_is_not_its_loss(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    broker.partitions, broker.removed, missing = {0: [NOW] * 5, 1: [NOW] * 3}, {0: 2, 1: 3}, list[Missing]()
    for stop_at_end in (False, True):
        assert caplog.messages == []
        reader = reader_of(KafkaSource(TOPIC, stop_at_end=stop_at_end))
        assert sources([*drain(reader, missing), *drain(reader, missing)]) == offsets(2, 5)
        assert missing == []
    assert caplog.messages == [f"{TOPIC}: 5 messages were removed from the topic before this job began"]


@pytest.mark.parametrize(("removed", "lost"), [(3, 1), (4, 2), (5, 3), (6, 3), (9, 3)])
def test_who_stops_at_the_end_misses_what_was_before_it(broker: Broker, removed: int, lost: int) -> None:
    broker.partitions, broker.largest, missing = {0: [NOW] * 5, 1: []}, 2, list[Missing]()
    reader = reader_of(KafkaSource(TOPIC, stop_at_end=True))
    assert reader.advance()
    broker.partitions[0] += [NOW] * 5
    broker.removed, broker.largest = {0: removed}, 10
    read = []
    for _ in range(5):
        read += drain(reader, missing)
        reader = resumed(reader, Clock())
        assert (reader.get_watermark() == MAX_TIMESTAMP) <= bool(missing)
    assert reader.get_watermark() == MAX_TIMESTAMP
    assert sources(read) == offsets(removed, 5)
    assert [(each.first, each.count) for each in missing] == [(2, lost)]


def test_gaps_prove_nothing(broker: Broker) -> None:
    """Compaction and the marks of transactions leave them."""
    broker.partitions, missing = {0: [NOW] * 3}, list[Missing]()
    reader = reader_of(KafkaSource(TOPIC))
    drain(reader, missing)
    broker.partitions[0] += [NOW] * 9
    broker.consumers[-1].consume = lambda *_: [Raw((0, 9)), Raw((0, 12), failed=Reason(END_OF_PARTITION))]
    assert sources([*drain_once(reader, missing)]) == ["reports/0/9"]
    assert missing == []


def drain_once(reader: KafkaReader, missing: list[Missing]) -> Iterator[Message]:
    assert reader.advance()
    missing += reader.get_current().missing
    yield from reader.get_current().messages


def test_an_offset_that_is_there_again_is_read(broker: Broker) -> None:
    """A new leader may not know for a moment how far its partition goes."""
    broker.partitions, missing = {0: [NOW] * 3}, list[Missing]()
    reader = reader_of(KafkaSource(TOPIC))
    drain(reader)
    consumer = broker.consumers[-1]
    broker.events = [Raw((0, 3), failed=Reason(OUT_OF_RANGE))]
    consumer.next.clear()
    broker.partitions[0].append(NOW)
    assert sources([*drain(reader, missing), *drain(reader, missing)]) == offsets(3, 4)
    assert missing == []


def test_a_partition_that_was_cut_is_read_again(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    broker.partitions, missing = {0: [NOW] * 5}, list[Missing]()
    reader = reader_of(KafkaSource(TOPIC))
    drain(reader)
    broker.partitions[0] = [NOW] * 3
    reader = resumed(reader, Clock())
    assert sources([*drain(reader, missing), *drain(reader, missing)]) == offsets(0, 3)
    assert missing == []
    assert "partition 0 ends before offset 5, which was read: it was cut" in caplog.text


def test_a_broker_that_does_not_answer_is_asked_again(broker: Broker) -> None:
    broker.partitions, clock, missing = {0: [NOW] * 3, 1: [NOW]}, Clock(), list[Missing]()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    broker.partitions[0] += [NOW] * 4
    broker.partitions[1] += [NOW]
    broker.consumers[-1].next[1] = 2
    broker.removed, held = {0: 5}, watermark(reader)
    fetched = [Raw((1, 1), time=NOW), Raw((0, 3), failed=Reason(OUT_OF_RANGE))]
    for refuses, leaderless in ((Reason(TIMED_OUT), set[int]()), (None, {0})):
        broker.events, broker.refuses, broker.leaderless = fetched, refuses, leaderless
        clock.tick(5000)
        read, fetched = drain(reader, missing), []
        assert sources(read) == (["reports/1/1"] if refuses else [])
        assert watermark(reader) == held
    broker.leaderless = set()
    assert sources([*drain(reader, missing), *drain(reader, missing)]) == offsets(5, 7)
    assert [(each.first, each.last) for each in missing] == [(3, 4)]


@given(st.data())
def test_each_message_is_read_or_missing(data: st.DataObject) -> None:
    """Whatever is sent, removed and resumed; a reader that is lost takes with it what followed its mark."""
    broker, clock = Broker({0: [], 1: []}, largest=data.draw(st.integers(1, 3))), Clock()
    with serving(broker):
        reader, missing, read = reader_of(KafkaSource(TOPIC, DELAY), clock), list[Missing](), list[str]()
        drain(reader)
        for _ in range(data.draw(st.integers(1, 12))):
            partition = data.draw(st.integers(0, 1))
            broker.partitions[partition] += [clock.ms] * data.draw(st.integers(0, 4))
            if data.draw(st.booleans()):
                last, before = len(broker.partitions[partition]), broker.removed.get(partition, 0)
                broker.removed[partition] = data.draw(st.integers(before, last))
            if data.draw(st.booleans()):
                reader = resumed(reader, clock)
            clock.tick(data.draw(st.sampled_from([0, 300, 60_000])))
            announced = watermark(reader)
            if reader.advance():
                read += sources(reader.get_current().messages)
                missing += reader.get_current().missing
                assert reader.get_current_timestamp().micros // 1000 >= announced
            assert watermark(reader) >= announced
        for _ in range(5):
            read += sources(drain(reader, missing))
    named = [f"{each.source}/{offset}" for each in missing for offset in range(each.first, each.last + 1)]
    sent = [text for each, times in broker.partitions.items() for text in offsets(0, len(times), each)]
    assert sorted([*read, *named]) == sorted(sent)
    assert missing_messages(missing) == len(named)

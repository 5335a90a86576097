"""A topic that gets more partitions while it is followed: each has one reader, and none of its reports is late."""

from itertools import chain

import pytest

from tests.fakes.kafka import NOW, TOPIC, Broker, Clock, drain, reader_of, resumed, sources, watermark
from uldp.schemas.records import Message, Missing
from uldp.transforms.io.kafka.reader import LOOK_SECONDS
from uldp.transforms.io.kafka.source import KafkaSource

LOOK = int(LOOK_SECONDS * 1000)


@pytest.mark.parametrize("restarted", [False, True])
def test_partitions_that_are_added_are_read_from_their_first_message(broker: Broker, restarted: bool) -> None:
    """140 messages, then 100 to each of three partitions."""
    broker.partitions, clock = {0: [NOW] * 140}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    read = drain(reader)
    sent = clock.tick(LOOK // 2)
    broker.partitions = {0: [NOW] * 140 + [sent] * 100, 1: [sent] * 100, 2: [sent] * 100}
    if restarted:
        reader = resumed(reader, clock)
    clock.tick(LOOK)
    announced = watermark(reader)
    read += drain(reader) + drain(reader)
    assert sorted(sources(read)) == sorted(
        f"reports/{each}/{n}" for each in range(3) for n in range(240 if each == 0 else 100)
    )
    assert len(read) == 440
    assert announced <= sent
    assert {message.publish_time for message in read[140:]} == {sent}  # none was raised to the watermark


def test_the_watermark_waits_for_the_question_and_for_the_partition(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW]}, Clock()
    reader = reader_of(KafkaSource(TOPIC, 10), clock)
    drain(reader)
    broker.partitions[1] = [NOW + 5]
    broker.partitions[0].append(NOW + LOOK // 2)
    clock.tick(LOOK // 2)
    drain(reader)
    assert watermark(reader) == NOW - 10  # nobody has asked since
    broker.largest = 0
    clock.tick(LOOK)
    assert not reader.advance()
    assert watermark(reader) == NOW - 10  # it is known, and nothing of it was read
    broker.largest = 10
    assert sources(drain(reader)) == ["reports/1/0"]
    clock.tick(LOOK)
    drain(reader)
    assert watermark(reader) == clock.ms - 10


@pytest.mark.parametrize(("before", "after", "most"), [(1, 3, 16), (2, 7, 16), (3, 40, 4), (16, 17, 16)])
@pytest.mark.parametrize("restarted", [False, True])
def test_each_partition_has_one_reader(broker: Broker, before: int, after: int, most: int, restarted: bool) -> None:
    """A job that goes on from a savepoint has the readers with which it began."""
    broker.partitions, clock = {each: [NOW] for each in range(before)}, Clock()
    readers = [reader_of(source, clock) for source in KafkaSource(TOPIC, readers=most).of_readers()]
    read: list[Message] = list(chain(*map(drain, readers)))
    clock.tick(LOOK)
    for each in range(before, after):
        broker.partitions[each] = [clock.ms]
    if restarted:
        readers = [resumed(reader, clock) for reader in readers]
    clock.tick(LOOK)
    for _ in range(2):
        read += chain(*map(drain, readers))
    assert sorted(sources(read)) == sorted(f"reports/{each}/0" for each in range(after))
    marks = [reader.get_checkpoint_mark().positions for reader in readers]
    assert sorted(chain(*marks)) == list(range(after))


def test_what_a_new_partition_has_removed_is_missing(broker: Broker) -> None:
    broker.partitions, clock, missing = {0: [NOW]}, Clock(), list[Missing]()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    broker.partitions[1], broker.removed = [NOW + 100] * 5, {1: 2}
    clock.tick(LOOK)
    for _ in range(3):
        drain(reader, missing)
    assert missing == [Missing("reports/1", 0, 1, NOW, NOW + 100)]


def test_who_stops_at_the_end_reads_what_was_there_at_the_beginning(broker: Broker) -> None:
    broker.partitions, broker.largest, clock = {0: [NOW] * 3}, 1, Clock()
    reader = reader_of(KafkaSource(TOPIC, stop_at_end=True), clock)
    assert reader.advance()
    broker.partitions[1] = [NOW]
    clock.tick(10 * LOOK)
    assert sources(drain(reader)) == ["reports/0/1", "reports/0/2"]

"""Many readers of one source, and the one connection that they share."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.kafka import (
    NO_PERMISSION,
    NOW,
    TOPIC,
    Broker,
    Clock,
    Raw,
    Reason,
    connected,
    drain,
    reader_of,
    serving,
    sources,
    watermark,
)
from uldp.schemas.errors import EndpointError
from uldp.transforms.io.kafka.checkpoint import KafkaMark
from uldp.transforms.io.kafka.consumers import IDLE_SECONDS, Consumers
from uldp.transforms.io.kafka.reader import LOOK_SECONDS, KafkaReader
from uldp.transforms.io.kafka.source import KafkaSource


def test_a_reader_goes_on_where_the_one_before_it_stands(broker: Broker) -> None:
    broker.partitions, broker.largest = {0: [NOW] * 3, 1: []}, 1
    source, clock, mark, read = KafkaSource(TOPIC), Clock(), None, []
    for _ in range(100):
        reader = reader_of(source, clock, mark)
        if reader.start():
            read += sources(reader.get_current().messages)
        mark = reader.get_checkpoint_mark()
        clock.tick()
    assert read == ["reports/0/0", "reports/0/1", "reports/0/2"]
    assert [consumer.assigned for consumer in broker.consumers] == [1]
    # That the partitions are at their ends, the consumer said to another reader, and another one has looked for more.
    assert clock.ms - LOOK_SECONDS * 1000 <= watermark(reader)


@given(st.data())
def test_each_reader_reads_what_is_behind_its_mark(data: st.DataObject) -> None:
    topic = replace(TOPIC, name="any")
    source = KafkaSource(topic)
    broker = Broker({0: [], 1: []}, largest=data.draw(st.integers(1, 3)))
    with serving(broker):
        # What a reader read, and what those read that its marks come from, must be all up to where it stands.
        histories: list[tuple[KafkaMark | None, list[str]]] = [(None, [])]
        readers: list[tuple[KafkaReader, list[str]]] = []
        for _ in range(data.draw(st.integers(1, 30))):
            if not readers or data.draw(st.booleans()):
                mark, history = data.draw(st.sampled_from(histories))
                readers.append((reader_of(source, mark=mark), list(history)))
            reader, history = data.draw(st.sampled_from(readers))
            broker.partitions[data.draw(st.integers(0, 1))] += [NOW] * data.draw(st.integers(0, 3))
            if reader.advance():
                history += sources(reader.get_current().messages)
            mark = reader.get_checkpoint_mark()
            histories.append((mark, list(history)))
            stands = {each: max(at.next, 0) for each, at in mark.positions.items()}
            assert sorted(history) == sorted(f"any/{each}/{n}" for each in stands for n in range(stands[each]))
        for reader, history in readers:
            for _ in range(3):  # of which one may fetch no more than that a partition ends
                history += sources(drain(reader))
            assert len(history) == sum(map(len, broker.partitions.values()))
        assert len(broker.consumers) == 1


def test_after_an_error_that_stays_nobody_goes_on(broker: Broker) -> None:
    broker.partitions = {0: [NOW]}
    source = KafkaSource(TOPIC)
    broker.events = [Raw((0, 0)), Raw(failed=Reason(NO_PERMISSION))]
    with pytest.raises(EndpointError):
        reader_of(source).start()
    assert connected(broker) == []
    assert sources(drain(reader_of(source))) == ["reports/0/0"]


def test_who_is_not_used_is_closed(broker: Broker) -> None:
    clock = Clock()
    consumers = Consumers(clock)
    for key in ("idle", "busy"):
        with consumers.acquire(key, TOPIC):
            pass
    idle, busy = broker.consumers
    for _ in range(4):
        assert not idle.closed
        clock.tick(int(IDLE_SECONDS * 250))
        with consumers.acquire("busy", TOPIC):
            pass
    assert (idle.closed, busy.closed) == (True, False)
    with consumers.acquire("idle", TOPIC) as consumer:
        assert consumer.client is broker.consumers[-1] is not idle
        assert consumer.positions is None
        consumers.close()  # all but who is in use
        assert connected(broker) == [consumer.client]
    consumers.close()
    assert connected(broker) == []


def test_one_at_a_time_uses_a_consumer(broker: Broker) -> None:
    consumers = Consumers()
    with ThreadPoolExecutor(1) as other:

        def borrow() -> list[str]:
            with consumers.acquire("key", TOPIC):
                return list(order)

        order = []
        with consumers.acquire("key", TOPIC) as consumer:
            waiting = other.submit(borrow)
            consumer.seek({0: 0})
            order.append("first")
        assert waiting.result(10) == ["first"]
    assert len(broker.consumers) == 1
    consumers.close()

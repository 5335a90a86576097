"""A topic of a real broker: every message once, through pipelines, marks and a restart of the broker."""

import time
from collections import Counter
from collections.abc import Callable, Sequence

import apache_beam as beam
import pytest
from apache_beam.utils.timestamp import MAX_TIMESTAMP
from confluent_kafka import Producer

from tests.build import START
from tests.cluster.daemons import free_port, wait_until
from tests.cluster.kafka import KafkaBroker, send
from uldp.schemas.errors import EndpointError
from uldp.schemas.records import ATTEMPT, SENDER, Message, Missing
from uldp.transforms.io.kafka.checkpoint import KafkaMark, Position
from uldp.transforms.io.kafka.producer import WriteToKafka
from uldp.transforms.io.kafka.reader import KafkaReader
from uldp.transforms.io.kafka.source import KafkaSource
from uldp.transforms.io.kafka.topic import CHECK_SECONDS, KafkaTopic

#: A moment in the past, in ms, so that publish times are those that were sent.
PARTITIONS, EACH = 4, 2500
DELAY_MS = 1000


def messages(partition: int, n: int, topic: str) -> list[Message]:
    return [
        Message(
            b"%d/%d" % (partition, index),
            START + 1000 * partition + index,
            {ATTEMPT: str(index), SENDER: "ü"} if index % 2 else {},
            f"{topic}/{partition}/{index}",
        )
        for index in range(n)
    ]


@pytest.fixture(scope="module")
def filled(broker: KafkaBroker) -> KafkaTopic:
    """All partitions but the last hold messages."""
    topic = broker.create("filled", PARTITIONS)
    for partition in range(PARTITIONS - 1):
        send(topic, partition, messages(partition, EACH, "filled"))
    return topic


FILLED = [message for partition in range(PARTITIONS - 1) for message in messages(partition, EACH, "filled")]


def read_until(
    reader: KafkaReader, condition: Callable[[], bool], what: str, missing: list[Missing] | None = None
) -> list[Message]:
    """What a reader gives until a condition holds behind one of its chunks."""
    read: list[Message] = []

    def advanced() -> bool:
        while reader.advance():
            read.extend(reader.get_current().messages)
            if missing is not None:
                missing.extend(reader.get_current().missing)
            if condition():
                return True
        return condition()

    wait_until(advanced, what)
    return read


def read_to_end(reader: KafkaReader) -> list[Message]:
    return read_until(reader, lambda: reader.get_watermark() == MAX_TIMESTAMP, "all is read")


def lag_ms(reader: KafkaReader) -> float:
    return time.time() * 1000 - reader.get_watermark().micros / 1000


def once(read: Sequence[Message], expected: Sequence[Message]) -> bool:
    return Counter(map(repr, read)) == Counter(map(repr, expected))


def undated(messages: Sequence[Message]) -> list[Message]:
    """Messages without their publish times, which a reader raises to its watermark."""
    return [message._replace(publish_time=0) for message in messages]


@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_a_reader_goes_on_behind_its_mark(filled: KafkaTopic, chunks: int) -> None:
    source = KafkaSource(filled, stop_at_end=True)
    first = source.create_reader(None, None)
    read: list[Message] = []
    for _ in range(chunks):
        wait_until(first.advance, "a chunk is there")
        read += first.get_current().messages
    coder = source.get_checkpoint_mark_coder()
    mark = coder.decode(coder.encode(first.get_checkpoint_mark()))
    first.close()
    assert 0 < len(read) < len(FILLED)
    second = source.create_reader(None, mark)
    assert once(read + read_to_end(second), FILLED)
    second.close()


def test_a_broker_that_is_away_loses_nothing(broker: KafkaBroker) -> None:
    topic = broker.create("restarted", 2)
    expected = [message for partition in range(2) for message in messages(partition, EACH, "restarted")]
    for partition in range(2):
        send(topic, partition, expected[partition * EACH : (partition + 1) * EACH - 100])
    reader = KafkaSource(topic, DELAY_MS, stop_at_end=False).create_reader(None, None)
    wait_until(reader.advance, "a chunk is there")
    read = list(reader.get_current().messages)
    broker.stop()
    try:
        away = time.monotonic() + 5
        while time.monotonic() < away:  # what was fetched before is still given
            if reader.advance():
                read += reader.get_current().messages
        held = reader.get_watermark()
        assert not reader.advance()
        assert reader.get_watermark() == held
    finally:
        broker.start()
    for partition in range(2):
        send(topic, partition, expected[(partition + 1) * EACH - 100 : (partition + 1) * EACH])
    read += read_until(reader, lambda: lag_ms(reader) < 2 * DELAY_MS, "the watermark is the present")
    assert once(undated(read), undated(expected))
    reader.close()


def test_the_end_of_a_transaction_holds_nothing(broker: KafkaBroker) -> None:
    topic = broker.create("transactions")
    producer = Producer({"bootstrap.servers": topic.servers, "transactional.id": "test"})
    producer.init_transactions(30)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(topic.name, b"x", timestamp=START)
        producer.flush(30)
        end(30)
    reader = KafkaSource(topic, stop_at_end=True).create_reader(None, None)
    assert read_to_end(reader) == [Message(b"x", START, {}, "transactions/0/0")]
    reader.close()
    reader = KafkaSource(topic, DELAY_MS).create_reader(None, None)
    assert len(read_until(reader, lambda: lag_ms(reader) < 2 * DELAY_MS, "the watermark is the present")) == 1
    reader.close()


@pytest.mark.parametrize("stop_at_end", [False, True])
def test_what_a_topic_has_removed_is_named(broker: KafkaBroker, stop_at_end: bool) -> None:
    topic = broker.create(f"removed-{stop_at_end}".lower())
    sent = [Message(b"%d" % index, START + index, {}, f"{topic.name}/0/{index}") for index in range(410)]
    send(topic, 0, sent)
    source = KafkaSource(topic, stop_at_end=stop_at_end)
    mark = KafkaMark({0: Position(200, 410 if stop_at_end else -1, START + 199)}, topic, START)
    broker.remove(topic, 0, 300)
    reader, missing = source.create_reader(None, mark), list[Missing]()
    read = read_until(reader, lambda: reader.get_checkpoint_mark().positions[0].next == 410, "all is read", missing)
    assert read == sent[300:]
    assert missing == [Missing(f"{topic.name}/0", 200, 299, START + 199, START + 300)]
    reader.close()


def test_a_topic_that_is_not_there_is_one_line(broker: KafkaBroker) -> None:
    topic = KafkaTopic(broker.servers, "nowhere")
    line = rf"^kafka:{broker.servers}/nowhere: the topic does not exist; create it, or correct its name \(.*\)$"
    with pytest.raises(EndpointError, match=line):
        topic.check()
    reader = KafkaSource(topic).create_reader(None, None)
    with pytest.raises(EndpointError, match=line):
        read_until(reader, lambda: False, "it fails")
    reader.close()


def test_no_broker_is_one_line_in_time() -> None:
    servers, began = f"127.0.0.1:{free_port()}", time.monotonic()
    with pytest.raises(
        EndpointError, match=rf"^kafka:{servers}/x: the request failed; check that a broker answers .* \(.*\)$"
    ):
        KafkaTopic(servers, "x").check()
    assert time.monotonic() - began < CHECK_SECONDS + 5


def test_records_are_written_once(broker: KafkaBroker) -> None:
    topic = broker.create("written", 3)
    records = [(b"%d" % index, b"value %d" % index) for index in range(3000)]
    with beam.Pipeline("FnApiRunner") as pipeline:
        _ = pipeline | beam.Create(records) | WriteToKafka(topic)
    reader = KafkaSource(topic, stop_at_end=True).create_reader(None, None)
    assert sorted(message.data for message in read_to_end(reader)) == sorted(value for _, value in records)
    reader.close()


def test_a_record_that_the_topic_does_not_take_fails(broker: KafkaBroker) -> None:
    topic = broker.create("small", max_message_bytes="1000")
    with (
        pytest.raises(Exception, match="a record is larger than the topic takes"),
        beam.Pipeline("FnApiRunner") as small,
    ):
        _ = small | beam.Create([(b"key", bytes(2000))]) | WriteToKafka(topic)
    missing = KafkaTopic(broker.servers, "missing")
    with pytest.raises(Exception, match="the topic does not exist"), beam.Pipeline("FnApiRunner") as nowhere:
        _ = nowhere | beam.Create([(b"key", b"value")]) | WriteToKafka(missing)

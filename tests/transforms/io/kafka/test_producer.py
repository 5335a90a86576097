"""What is written to Kafka, against a broker that is a few lists; the client library is not needed."""

import apache_beam as beam
import pytest

from tests.build import START
from tests.fakes.kafka import CREDENTIALS, NO_PERMISSION, TIMED_OUT, TOPIC, Broker, Reason
from uldp.schemas.errors import EndpointError
from uldp.schemas.records import Message
from uldp.transforms.io.kafka.producer import KafkaProducer, WriteToKafka


def write(records: list[tuple[bytes, bytes]]) -> None:
    with beam.Pipeline("FnApiRunner") as pipeline:
        _ = pipeline | beam.Create(records) | WriteToKafka(TOPIC)


def test_records_are_written_also_where_the_queue_is_full(broker: Broker) -> None:
    records = [(b"%d" % n, b"value") for n in range(7)]
    write(records)
    assert sorted(broker.written) == [("reports", key, value) for key, value in records]


def test_a_record_that_was_not_delivered_fails_its_bundle(broker: Broker) -> None:
    broker.delivers = Reason(NO_PERMISSION)
    with pytest.raises(
        Exception, match=r"kafka:broker:9092/reports: the client has no permission; grant .*\(reason 29\)"
    ):
        write([(b"k", b"v")])


def test_a_writer_that_is_refused_fails_its_bundle(broker: Broker) -> None:
    for records in (1, broker.room + 1):
        broker.meets, broker.refuses = [Reason(CREDENTIALS)], Reason(TIMED_OUT)
        with pytest.raises(Exception, match=r"the broker refused the credentials; .*\(reason -169\)"):
            write([(b"k", b"v")] * records)


def test_what_was_said_once_is_not_said_again(broker: Broker) -> None:
    producer = KafkaProducer(TOPIC)
    broker.delivers = Reason(NO_PERMISSION)
    producer.send(b"v")
    with pytest.raises(EndpointError, match="no permission"):
        producer.flush()
    broker.delivers = None
    producer.send(b"v")
    producer.flush()
    assert len(broker.written) == 1


@pytest.mark.parametrize("records", [1, 7])
def test_a_producer_gives_up_where_a_broker_takes_nothing(broker: Broker, records: int) -> None:
    writer = KafkaProducer(TOPIC)
    broker.refuses = Reason(TIMED_OUT)
    writer.give_up(0)
    with pytest.raises(EndpointError, match=r"kafka:broker:9092/reports: .* \(reason -152\)"):
        write_all(writer, records)
    assert broker.written == []
    writer.close()


def test_a_producer_that_gives_up_later_waits_until_then(broker: Broker) -> None:
    writer = KafkaProducer(TOPIC)
    writer.give_up(60)
    write_all(writer, broker.room + 1)
    assert len(broker.written) == broker.room + 1


def write_all(writer: KafkaProducer, records: int) -> None:
    writer.append([Message(b"value", START)] * records)
    writer.flush()


def test_a_record_that_the_client_refuses_fails_its_bundle(broker: Broker) -> None:
    with pytest.raises(Exception, match=r"a record is larger than the topic takes; raise its max.message.bytes"):
        write([(b"k", bytes(101))])

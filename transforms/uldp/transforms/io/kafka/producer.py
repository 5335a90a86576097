"""A producer that writes to a Kafka topic, and knows whether the brokers have every record; and a step that uses it."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.records import Message
from uldp.transforms.io.endpoints import TopicWriter, records_of
from uldp.transforms.io.kafka.topic import KafkaTopic, library

#: Seconds to wait for room in the queue of records for the brokers.
_WAIT_SECONDS = 0.1


class KafkaProducer(TopicWriter):
    """Sends records in the background; ``flush`` reports whether the brokers have them."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._errors: list[Any] = []
        self._topic, self._producer = topic, topic.producer(self._errors.append)
        self._until = math.inf

    def give_up(self, seconds: float) -> None:
        """Wait for brokers so many seconds, not five minutes, and drop the rest; other threads' calls may raise."""
        self._until, self.gives_up = time.monotonic() + seconds, True

    def append(self, messages: Sequence[Message] | EncodedMessages) -> None:
        """Queue messages, each with its publish time as the time that its sender chose."""
        for message in records_of(messages):
            headers = list(message.attributes.items())
            self.send(message.data, headers=headers, timestamp=message.publish_time)

    def send(self, value: bytes, key: bytes | None = None, **options: Any) -> None:
        """Queue a record with the client's options; EndpointError if it can never be written."""
        while True:
            try:
                self._producer.produce(self._topic.name, value, key, on_delivery=self._delivered, **options)
                break
            except BufferError:  # the queue is full; its records are delivered, or fail, after a time
                self._producer.poll(_WAIT_SECONDS)
                self._drop_late()
                self._raise()
            except library().KafkaException as error:
                raise self._topic.error(error.args[0]) from None
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until the brokers have all; EndpointError if they refused one since the last call, or too late."""
        while self._producer.flush(_WAIT_SECONDS) and not self._errors:  # the client's flush waits
            self._drop_late()
        self._raise()

    def _drop_late(self) -> None:
        if time.monotonic() >= self._until:
            self._producer.purge()  # the delivery of each record that is left then fails

    def _raise(self) -> None:
        if self._errors:
            error = self._errors[0]
            self._errors.clear()
            raise self._topic.error(error)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._errors.append(error)


@dataclass
class WriteToKafka(beam.PTransform[PCollection[tuple[bytes, bytes]], None]):
    """Write keys and values to a topic; a bundle ends when the brokers have all its records."""

    topic: KafkaTopic

    def expand(self, records: PCollection[tuple[bytes, bytes]]) -> None:
        """Write in one step."""
        _ = records | "WriteRecords" >> beam.ParDo(_WriteFn(self.topic))


class _WriteFn(beam.DoFn):
    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic

    def setup(self) -> None:
        self._producer = KafkaProducer(self._topic)

    def process(self, record: tuple[bytes, bytes]) -> None:
        key, value = record
        self._producer.send(value, key)

    def finish_bundle(self) -> None:
        self._producer.flush()

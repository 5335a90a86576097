"""A Kafka topic as a simulation writes to it: messages with publish times of its own."""

import io
from collections.abc import Iterator
from typing import Any, cast

import fastavro

from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.framing import load_schema
from uldp.transforms.io.kafka.producer import KafkaProducer
from uldp.transforms.io.kafka.topic import KafkaTopic


class TopicWriter:
    """Appends messages to a topic, each with its publish time as the time that its sender chose."""

    simulated_clock = True

    def __init__(self, topic: KafkaTopic) -> None:
        """Connect.

        Raises:
            KafkaError: if the topic is not there.
        """
        topic.check("WRITE")
        self._producer = KafkaProducer(topic)

    def append(self, messages: EncodedMessages) -> None:
        """Hand messages over; what the brokers say of them is known at the end."""
        for record in _records(messages):
            headers = list(record["attributes"].items())
            self._producer.send(record["data"], headers=headers, timestamp=record["publish_time"])

    def close(self) -> None:
        """Wait until the brokers have everything.

        Raises:
            KafkaError: if they refused anything.
        """
        self._producer.flush()


def _records(messages: EncodedMessages) -> Iterator[dict[str, Any]]:
    body = io.BytesIO(messages.buffer.tobytes())
    for _ in range(len(messages)):
        yield cast(dict[str, Any], fastavro.schemaless_reader(body, load_schema("message"), None))

"""A Kafka topic as a simulation writes to it: messages with publish times of its own."""

import io
from collections.abc import Iterator
from typing import Any, cast

import fastavro

from schemas.framing import load_schema
from transforms.container import EncodedMessages
from transforms.kafkatopic import KafkaTopic, library

#: Seconds to wait for room where messages wait for the broker.
_WAIT_SECONDS = 0.1


class TopicWriter:
    """Appends messages to a topic, each with its publish time as the time that its sender chose."""

    simulated_clock = True

    def __init__(self, topic: KafkaTopic) -> None:
        """Connect.

        Raises:
            KafkaError: if the topic is not there.
        """
        topic.check()
        self._topic, self._producer = topic, topic.producer()
        self._errors: list[Any] = []

    def append(self, messages: EncodedMessages) -> None:
        """Hand messages over; what the broker says of them is known at the end."""
        for record in _records(messages):
            headers = list(record["attributes"].items())
            while True:
                try:
                    self._producer.produce(
                        self._topic.name,
                        record["data"],
                        headers=headers,
                        timestamp=record["publish_time"],
                        on_delivery=self._delivered,
                    )
                    break
                except BufferError:
                    self._producer.poll(_WAIT_SECONDS)
                except library().KafkaException as error:
                    raise self._topic.error(error.args[0]) from None
        self._producer.poll(0)

    def close(self) -> None:
        """Wait until the broker has everything.

        Raises:
            KafkaError: if it refused anything.
        """
        self._producer.flush()
        if self._errors:
            raise self._topic.error(self._errors[0])

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._errors.append(error)


def _records(messages: EncodedMessages) -> Iterator[dict[str, Any]]:
    body = io.BytesIO(messages.buffer.tobytes())
    for _ in range(len(messages)):
        yield cast(dict[str, Any], fastavro.schemaless_reader(body, load_schema("message"), None))

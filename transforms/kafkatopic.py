"""A Kafka topic: what names it, how to connect to its brokers, and what to say when that fails.

Needs the extra ``[kafka]``, which is imported when it is used.
"""

import logging
import re
from dataclasses import dataclass
from typing import Any, Self

LOGGER = logging.getLogger(__name__)

#: Seconds in which a broker must answer where a person waits.
CHECK_SECONDS = 10.0
_SCHEME = "kafka:"
_UNKNOWN_TOPIC = -188
_ALL_BROKERS_DOWN = -187
#: By the protocol's codes, which a broker says, and librdkafka's own, which are negative.
_REMEDIES = {
    3: "the topic does not exist; create it, or correct its name",
    10: "a record is larger than the topic takes; raise its max.message.bytes",
    17: "no topic can have this name; correct it",
    29: "no permission; grant this client DESCRIBE, and READ or WRITE, on the topic",
    58: "the broker refused the credentials; correct them",
    -169: "the broker refused the credentials; correct them",
    _UNKNOWN_TOPIC: "the topic does not exist; create it, or correct its name",
}


class KafkaError(ValueError):
    """A topic that cannot be used; the message says what to do."""


def library() -> Any:
    """Import the client.

    Raises:
        KafkaError: if it is not installed.
    """
    try:
        import confluent_kafka
    except ImportError:
        raise KafkaError("kafka: its client is not installed; run: pip install 'uldp-stream[kafka]'") from None
    return confluent_kafka


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic and the brokers that know where it is.

    >>> print(KafkaTopic.parse("kafka:one:9092,two:9092/reports"))
    kafka:one:9092,two:9092/reports
    """

    servers: str
    name: str

    @classmethod
    def parse(cls, uri: str) -> Self:
        """Read ``kafka:HOST:PORT[,HOST:PORT...]/TOPIC``.

        Raises:
            KafkaError: if it is none.
        """
        servers, _, name = uri.removeprefix(_SCHEME).partition("/")
        if not uri.startswith(_SCHEME) or not all(map(_is_server, servers.split(","))):
            raise KafkaError(f"{uri}: not a Kafka topic; write kafka:HOST:PORT/TOPIC")
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name) or name in {".", ".."}:
            raise KafkaError(f"{uri}: {name!r} names no topic; letters, digits, '.', '_' and '-' do, at most 249")
        return cls(servers, name)

    def __str__(self) -> str:
        return f"{_SCHEME}{self.servers}/{self.name}"

    def check(self) -> list[int]:
        """Ask a broker which partitions the topic has.

        Raises:
            KafkaError: if there is no such topic for this client, or no broker answers within ``CHECK_SECONDS``.
        """
        consumer = self.consumer(None)
        try:
            return self.partitions(consumer, CHECK_SECONDS)
        except library().KafkaException as error:
            raise self.error(error.args[0]) from None
        finally:
            consumer.close()

    def consumer(self, group: str | None) -> Any:
        """Connect, in the background."""
        settings = {
            "bootstrap.servers": self.servers,
            "group.id": group or "uldp-stream",  # must be there, and is not used
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            # A broker answers in turn, so that a question waits as long as it waits for something to fetch.
            "fetch.wait.max.ms": 100,
            # Bytes of one answer of a broker, and kilobytes that wait for their reader: they bound its memory.
            "fetch.max.bytes": 16 << 20,
            "queued.max.messages.kbytes": 32 << 10,
            # By default a reader that is faster waits a second for each filling.
            "fetch.queue.backoff.ms": 10,
        }
        return library().Consumer(settings | self._notices(), logger=LOGGER)

    def _notices(self) -> dict[str, Any]:
        """Say in one line that nobody answers, not ten times a second."""
        return {"log_level": 2, "error_cb": self._notice}

    def _notice(self, error: Any) -> None:
        if error.code() == _ALL_BROKERS_DOWN:
            LOGGER.warning("%s: no broker answers; waiting", self)

    def partitions(self, consumer: Any, timeout_seconds: float) -> list[int]:
        """Ask over an open connection.

        Raises:
            KafkaException: the client's, with the error: no such topic for this client, or no answer.
        """
        found = consumer.list_topics(self.name, timeout_seconds).topics[self.name]
        if found.error is not None:
            raise library().KafkaException(found.error)
        return sorted(found.partitions)

    def producer(self) -> Any:
        """Connect in the background, to write. What is sent again is written once, and done when replicas have it."""
        settings = {
            "bootstrap.servers": self.servers,
            "enable.idempotence": True,
            "acks": "all",
            # How long a topic that was made just now may be unknown.
            "topic.metadata.propagation.max.ms": int(1000 * CHECK_SECONDS),
            # Kilobytes that wait for the broker: they bound its memory.
            "queue.buffering.max.kbytes": 64 << 10,
            "message.max.bytes": 64 << 20,  # what is too large for the topic, the topic says
        }
        return library().Producer(settings | self._notices(), logger=LOGGER)

    def error(self, error: Any) -> KafkaError:
        """Say in one line what is wrong, and what to do."""
        remedy = _REMEDIES.get(error.code(), "is a broker listening there, and can it be reached from here?")
        return KafkaError(f"{self}: {remedy} ({error.str()})")


def _is_server(text: str) -> bool:
    found = re.fullmatch(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})", text)
    return found is not None and 0 < int(found[1]) < 1 << 16


def is_permanent(error: Any) -> bool:
    """Say whether no waiting heals it: a broker that is away comes back, a topic that is not there does not."""
    # That it knows no topic, the client also says when it knows no broker.
    return bool(error.fatal()) or (error.code() in _REMEDIES and error.code() != _UNKNOWN_TOPIC)

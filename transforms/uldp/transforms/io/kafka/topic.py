"""A Kafka topic: what names it, how to connect to its brokers, and what to say when that fails.

Needs the extra ``[kafka]``, which is imported when it is used.
"""

import functools
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

LOGGER = logging.getLogger(__name__)

#: Seconds in which a broker must answer where a person waits.
CHECK_SECONDS = 10.0
#: Seconds between looks whether one has answered.
POLL_SECONDS = 0.1
_SCHEME = "kafka:"
_UNKNOWN_TOPIC = -188
_ALL_BROKERS_DOWN = -187
_NO_TLS = -181
_NOT_PERMITTED = 29
#: By the protocol's codes, which a broker says, and librdkafka's own, which are negative.
_REMEDIES = {
    3: "the topic does not exist; create it, or correct its name",
    10: "a record is larger than the topic takes; raise its max.message.bytes",
    17: "no topic can have this name; correct it",
    _NOT_PERMITTED: "no permission; grant this client DESCRIBE, and READ or WRITE, on the topic",
    58: "the broker refused the credentials; correct sasl.* in the file of --kafka-config",
    -169: "the broker refused the credentials; correct sasl.* in the file of --kafka-config",
    _NO_TLS: "no TLS with this broker; correct security.protocol and ssl.* in the file of --kafka-config",
    _UNKNOWN_TOPIC: "the topic does not exist; create it, or correct its name",
}
#: A broker that asks for TLS says nothing to who does not begin with it.
_NO_ANSWER = (
    "is a broker listening there, and can it be reached from here, with TLS if it asks for it (--kafka-config)?"
)


class KafkaError(ValueError):
    """A topic that cannot be used; the message says what to do."""


def library() -> Any:
    """Import the client.

    Raises:
        KafkaError: if it is not installed.
    """
    try:
        import confluent_kafka.admin
    except ImportError:
        raise KafkaError("kafka: its client is not installed; run: pip install 'uldp-stream[kafka]'") from None
    return confluent_kafka


@functools.cache
def read_config(path: str) -> Mapping[str, str]:
    """Read a file of librdkafka's settings, ``NAME=VALUE`` a line, as other tools of it have: TLS, SASL.

    It holds secrets, so that the command line and a job name the file, and never have what stands in it. Each worker
    reads its own, once. An error says in which line it is, not what stands there.

    Raises:
        KafkaError: if it cannot be read, or a line is none.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise KafkaError(f"{path}: {reason}; it holds settings of Kafka's client, on each worker too") from None
    settings = {}
    for number, line in enumerate(map(str.strip, lines), start=1):
        if line and not line.startswith("#"):
            name, found, value = line.partition("=")
            if not found or not name.strip():
                raise KafkaError(f"{path}: line {number} is no setting; write NAME=VALUE")
            settings[name.strip()] = value.strip()
    return settings


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic and the brokers that know where it is.

    >>> print(KafkaTopic.parse("kafka:one:9092,two:9092/reports"))
    kafka:one:9092,two:9092/reports

    Attributes:
        servers: Hosts and ports of brokers.
        name: The topic's.
        config: The file of what else a client needs to connect; see ``read_config``.
    """

    servers: str
    name: str
    config: str | None = None

    @classmethod
    def parse(cls, uri: str, config: Path | None = None) -> Self:
        """Read ``kafka:HOST:PORT[,HOST:PORT...]/TOPIC``, where ``config`` is here as on each worker.

        Raises:
            KafkaError: if it is none.
        """
        servers, _, name = uri.removeprefix(_SCHEME).partition("/")
        if not uri.startswith(_SCHEME) or not all(map(_is_server, servers.split(","))):
            raise KafkaError(f"{uri}: not a Kafka topic; write kafka:HOST:PORT/TOPIC")
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name) or name in {".", ".."}:
            raise KafkaError(f"{uri}: {name!r} names no topic; letters, digits, '.', '_' and '-' do, at most 249")
        return cls(servers, name, None if config is None else str(config.absolute()))

    def __str__(self) -> str:
        return f"{_SCHEME}{self.servers}/{self.name}"

    @property
    def group(self) -> str | None:
        """The consumer group that is told how far reading is, if the config names one."""
        return self._config().get("group.id")

    def _config(self) -> Mapping[str, str]:
        return {} if self.config is None else read_config(self.config)

    def check(self, needs: Literal["READ", "WRITE"] = "READ") -> list[int]:
        """Ask a broker which partitions the topic has, and whether this client may do with it what it needs.

        Raises:
            KafkaError: if there is no such topic for this client, or no broker answers within ``CHECK_SECONDS``.
        """
        return sorted(partition.id for partition in self._describe(needs).partitions)

    def identity(self) -> str:
        """Ask a broker for the id of the topic, which another topic of this name does not have.

        Raises:
            KafkaError: as ``check``.
        """
        return str(self._describe("READ").topic_id)

    def _describe(self, needs: Literal["READ", "WRITE"]) -> Any:
        met: list[Any] = []
        admin = self._connect(library().admin.AdminClient, {}, met.append)
        topics, asking = library().TopicCollection([self.name]), {"request_timeout": CHECK_SECONDS}
        asked = admin.describe_topics(topics, include_authorized_operations=True, **asking)[self.name]
        while not asked.done() and not any(map(is_permanent, met)):
            admin.poll(POLL_SECONDS)  # what it meets on the way to a broker says more than that it found none
        try:
            found = asked.result(0)
        except (library().KafkaException, TimeoutError) as error:
            telling = [each for each in met if is_permanent(each) or each.code() in _REMEDIES]
            raise self.error((telling or error.args)[0]) from None
        allowed = {operation.name for operation in found.authorized_operations or ()}
        if allowed and needs not in allowed:
            raise KafkaError(f"{self}: {_REMEDIES[_NOT_PERMITTED]} (it has no {needs})")
        return found

    def consumer(self, refused: Callable[[Any], None]) -> Any:
        """Connect in the background, to read; ``refused`` is told what no waiting heals."""
        settings = {
            "group.id": self.group or "uldp-stream",  # must be there, and is not asked
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
        return self._connect(library().Consumer, settings, functools.partial(self._notice, refused))

    def _connect(self, client: Callable[..., Any], settings: Mapping[str, Any], notice: Callable[[Any], None]) -> Any:
        """Make a client of the config and of ``settings``, which prevail; it tells of errors and does not log them."""
        ours = {"bootstrap.servers": self.servers, "log_level": 2, "error_cb": notice}
        try:
            return client({**self._config(), **settings, **ours}, logger=LOGGER)
        except library().KafkaException as error:
            raise KafkaError(f"{self.config}: {error.args[0].str()}") from None

    def _notice(self, refused: Callable[[Any], None], error: Any) -> None:
        """Say in one line that nobody answers, not ten times a second. What is raised here is not passed on."""
        if error.code() == _ALL_BROKERS_DOWN:
            LOGGER.warning("%s: no broker answers; waiting", self)
        elif is_permanent(error):
            refused(error)

    def partitions(self, consumer: Any, timeout_seconds: float) -> list[int]:
        """Ask over an open connection.

        Raises:
            KafkaException: the client's, with the error: no such topic for this client, or no answer.
        """
        found = consumer.list_topics(self.name, timeout_seconds).topics[self.name]
        if found.error is not None:
            raise library().KafkaException(found.error)
        return sorted(found.partitions)

    def producer(self, refused: Callable[[Any], None]) -> Any:
        """Connect in the background, to write; ``refused`` is told what no waiting heals.

        What is sent again is written once, and done when replicas have it.
        """
        settings = {
            "enable.idempotence": True,
            "acks": "all",
            # How long a topic that was made just now may be unknown.
            "topic.metadata.propagation.max.ms": int(1000 * CHECK_SECONDS),
            # Kilobytes that wait for the broker: they bound its memory.
            "queue.buffering.max.kbytes": 64 << 10,
            "message.max.bytes": 64 << 20,  # what is too large for the topic, the topic says
        }
        return self._connect(library().Producer, settings, functools.partial(self._notice, refused))

    def error(self, error: Any) -> KafkaError:
        """Say in one line what is wrong, and what to do."""
        remedy = _REMEDIES.get(error.code(), _NO_ANSWER)
        return KafkaError(f"{self}: {remedy} ({error.str()})")


def _is_server(text: str) -> bool:
    found = re.fullmatch(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})", text)
    return found is not None and 0 < int(found[1]) < 1 << 16


def is_permanent(error: Any) -> bool:
    """Say whether no waiting heals it: a broker that is away comes back, a topic that is not there does not."""
    # That it knows no topic, the client also says when it knows no broker; that TLS failed, when a broker stops.
    return bool(error.fatal()) or (error.code() in _REMEDIES and error.code() not in (_UNKNOWN_TOPIC, _NO_TLS))

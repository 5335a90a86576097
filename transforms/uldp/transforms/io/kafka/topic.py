"""A Kafka topic: its name, the connection to its brokers, and errors with remedies. Needs the extra ``[kafka]``."""

import functools
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from uldp.schemas.errors import EndpointError
from uldp.schemas.extras import needed
from uldp.schemas.regular_files import read_regular

LOGGER = logging.getLogger(__name__)

#: Seconds in which a broker must answer when a person waits.
CHECK_SECONDS = 10.0
#: Seconds between polls for its answer.
POLL_SECONDS = 0.1
_SCHEME = "kafka:"
_UNKNOWN_TOPIC = -188
_ALL_BROKERS_DOWN = -187
_NO_TLS = -181
_NOT_PERMITTED = 29
#: By error code: a broker sends the protocol's codes, and librdkafka's own codes are negative.
_REMEDIES = {
    3: "the topic does not exist; create it, or correct its name",
    10: "a record is larger than the topic takes; raise its max.message.bytes",
    17: "Kafka allows no topic of this name; correct it",
    _NOT_PERMITTED: "the client has no permission; grant it DESCRIBE, and READ or WRITE, on the topic",
    58: "the broker refused the credentials; correct sasl.* in the file of --kafka-config",
    -169: "the broker refused the credentials; correct sasl.* in the file of --kafka-config",
    _NO_TLS: "the TLS connection failed; correct security.protocol and ssl.* in the file of --kafka-config",
    _UNKNOWN_TOPIC: "the topic does not exist; create it, or correct its name",
}
#: A broker that requires TLS does not answer a client that begins without TLS.
_NO_ANSWER = (
    "the request failed; check that a broker answers at this address, and TLS if it requires TLS (--kafka-config)"
)


def library() -> Any:
    """Import the client; EndpointError if it is not installed."""
    with needed("Kafka", "kafka", refusal=EndpointError):
        import confluent_kafka.admin
    return confluent_kafka


@functools.cache
def read_config(path: str) -> Mapping[str, str]:
    """Read a file of librdkafka's settings, one ``NAME=VALUE`` a line, as other librdkafka tools use: TLS, SASL.

    It holds secrets, so a command line or a job has its name alone, each worker reads its own copy, once, and an
    EndpointError gives a number of a line and not its text.
    """
    try:
        lines = read_regular(path).decode("utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else getattr(error, "strerror", None) or error
        raise EndpointError(
            f"{path}: {reason}; check the path: each worker needs this file of settings for Kafka too"
        ) from None
    settings = {}
    for number, line in enumerate(map(str.strip, lines), start=1):
        if line and not line.startswith("#"):
            name, found, value = line.partition("=")
            if not found or not name.strip():
                raise EndpointError(f"{path}: line {number} is not a setting; write NAME=VALUE")
            settings[name.strip()] = value.strip()
    return settings


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic and the brokers that know where it is.

    >>> print(KafkaTopic.parse("kafka:one:9092,two:9092/reports"))
    kafka:one:9092,two:9092/reports
    """

    servers: str  # hosts and ports of brokers
    name: str
    config: str | None = None  # the file with the other settings that a client needs to connect; see ``read_config``

    @classmethod
    def parse(cls, uri: str, config: Path | None = None) -> Self:
        """Read ``kafka:HOST:PORT[,HOST:PORT...]/TOPIC``, with ``config`` as ``read_config``; EndpointError if not."""
        servers, _, name = uri.removeprefix(_SCHEME).partition("/")
        if not uri.startswith(_SCHEME) or not all(map(_is_server, servers.split(","))):
            raise EndpointError(f"{uri}: not a Kafka topic; write kafka:HOST:PORT/TOPIC")
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name) or name in {".", ".."}:
            raise EndpointError(
                f"{uri}: {name!r} cannot be the name of a topic; use letters, digits, '.', '_' and '-', at most 249"
            )
        topic = cls(servers, name, None if config is None else str(config.absolute()))
        topic._config()  # refuses the file here rather than on a worker
        return topic

    def __str__(self) -> str:
        return f"{_SCHEME}{self.servers}/{self.name}"

    @property
    def group(self) -> str | None:
        """The consumer group to which a job commits its offsets, if the config names one."""
        return self._config().get("group.id")

    def _config(self) -> Mapping[str, str]:
        return {} if self.config is None else read_config(self.config)

    def check(self, needs: Literal["READ", "WRITE"] = "READ") -> list[int]:
        """Ask a broker for the topic's partitions, and whether this client has the permission that it needs.

        EndpointError if the topic does not exist, the client has no permission, or no broker answers in
        ``CHECK_SECONDS``.
        """
        return sorted(partition.id for partition in self._describe(needs).partitions)

    def identity(self) -> str:
        """Ask a broker for the topic's id: another one of the same name has another; EndpointError as ``check``."""
        return str(self._describe("READ").topic_id)

    def _describe(self, needs: Literal["READ", "WRITE"]) -> Any:
        met: list[Any] = []
        admin = self._connect(library().admin.AdminClient, {}, met.append)
        topics, asking = library().TopicCollection([self.name]), {"request_timeout": CHECK_SECONDS}
        asked = admin.describe_topics(topics, include_authorized_operations=True, **asking)[self.name]
        while not asked.done() and not any(map(is_permanent, met)):
            admin.poll(POLL_SECONDS)  # an error on the way to a broker says more than a timeout
        try:
            found = asked.result(0)
        except (library().KafkaException, TimeoutError) as error:
            telling = [each for each in met if is_permanent(each) or each.code() in _REMEDIES]
            raise self.error((telling or error.args)[0]) from None
        allowed = {operation.name for operation in found.authorized_operations or ()}
        if allowed and needs not in allowed:
            raise EndpointError(f"{self}: {_REMEDIES[_NOT_PERMITTED]} (missing: {needs})")
        return found

    def consumer(self, refused: Callable[[Any], None]) -> Any:
        """Connect a consumer in the background; ``refused`` gets the errors that waiting does not resolve."""
        settings = {
            "group.id": self.group or "uldp-stream",  # the client requires one, but never asks it for offsets
            "enable.auto.commit": False,
            # With another value, the client goes on elsewhere in silence if the topic does not have an offset any more.
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            # A broker answers in order, so a question waits for as long as the fetch before it waits for messages.
            "fetch.wait.max.ms": 100,
            # Bytes of a broker's answer, and kilobytes of messages that wait for the reader: they bound its memory.
            "fetch.max.bytes": 16 << 20,
            "queued.max.messages.kbytes": 32 << 10,
            # By default the client pauses for a second when its queue is full, and a faster reader must wait.
            "fetch.queue.backoff.ms": 10,
        }
        return self._connect(library().Consumer, settings, functools.partial(self._notice, refused))

    def uncommitted(self) -> Any:
        """Connect a consumer that gets messages of open transactions too, few at once, and reports no errors."""
        settings = {
            "group.id": self.group or "uldp-stream",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_uncommitted",
            # The first batch of messages, whatever its size, and no more.
            "max.partition.fetch.bytes": 1,
            "queued.min.messages": 1,
            "queued.max.messages.kbytes": 1,
        }
        return self._connect(library().Consumer, settings, lambda _: None)

    def _connect(self, client: Callable[..., Any], settings: Mapping[str, Any], notice: Callable[[Any], None]) -> Any:
        """Make a client of the config and ``settings``; these prevail. Its errors go to ``notice``, not to the log."""
        ours = {"bootstrap.servers": self.servers, "log_level": 2, "error_cb": notice}
        try:
            return client({**self._config(), **settings, **ours}, logger=LOGGER)
        except library().KafkaException as error:
            raise EndpointError(f"{self.config}: {error.args[0].str()}") from None

    def _notice(self, refused: Callable[[Any], None], error: Any) -> None:
        """Log in one line that no broker answers, not ten times a second. Exceptions raised here are not passed on."""
        if error.code() == _ALL_BROKERS_DOWN:
            LOGGER.warning("%s: no broker answers; waiting for one", self)
        elif is_permanent(error):
            refused(error)

    def partitions(self, consumer: Any, timeout_seconds: float) -> list[int]:
        """Ask for the partitions over an open connection; the client's KafkaException if it gets no answer."""
        found = consumer.list_topics(self.name, timeout_seconds).topics[self.name]
        if found.error is not None:
            raise library().KafkaException(found.error)
        return sorted(found.partitions)

    def producer(self, refused: Callable[[Any], None]) -> Any:
        """Connect an idempotent producer in the background; ``refused`` gets errors that waiting does not resolve."""
        settings = {
            "enable.idempotence": True,
            "acks": "all",
            # How long brokers may not know a topic that was just created.
            "topic.metadata.propagation.max.ms": int(1000 * CHECK_SECONDS),
            # Kilobytes of records that wait for the broker: they bound the producer's memory.
            "queue.buffering.max.kbytes": 64 << 10,
            "message.max.bytes": 64 << 20,  # a broker refuses a record too large for its topic
        }
        return self._connect(library().Producer, settings, functools.partial(self._notice, refused))

    def error(self, error: Any) -> EndpointError:
        """Make an error that says in one line what is wrong, and what to do."""
        remedy = _REMEDIES.get(error.code(), _NO_ANSWER)
        return EndpointError(f"{self}: {remedy} ({error.str()})")


def _is_server(text: str) -> bool:
    found = re.fullmatch(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})", text)
    return found is not None and 0 < int(found[1]) < 1 << 16


def is_permanent(error: Any) -> bool:
    """Say whether waiting does not resolve an error: an absent broker comes back, a missing topic does not."""
    # The client also reports an unknown topic when it knows no broker, and a TLS failure when a broker stops.
    return bool(error.fatal()) or (error.code() in _REMEDIES and error.code() not in (_UNKNOWN_TOPIC, _NO_TLS))

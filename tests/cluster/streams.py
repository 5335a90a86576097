"""The stream of a broker as tests of jobs send to it, and where they keep what they sent."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tests.cluster.crowd import Crowd
from tests.cluster.kafka import KafkaBroker
from tests.cluster.pubsub import PubSubServer
from uldp.schemas.records import Message
from uldp.transforms.io.kafka.producer import KafkaProducer
from uldp.transforms.io.local.stream import LocalStream

PARTITIONS = 4
#: Messages that are made at once.
AT_ONCE = 50_000


class Stream(Protocol):
    """What a broker keeps.

    Attributes:
        uri: What ``--from`` takes.
        repeats: Whether it may give a message again that has been taken into account.
        batch: How many reports a message has, so that the broker keeps up.
    """

    uri: str
    repeats: bool
    batch: int

    def publish(self, bodies: Sequence[bytes]) -> None:
        """Publish messages, at the broker's time, and wait until it has them."""


class KafkaStream:
    """A topic of ``PARTITIONS``; the client chooses among them."""

    repeats = False
    batch = 1

    def __init__(self, broker: KafkaBroker) -> None:
        name = f"reports-{secrets.token_hex(4)}"  # tests share a broker
        topic = broker.create(name, PARTITIONS, retention_ms="-1", message_timestamp_type="LogAppendTime")
        self.uri, self._producer = str(topic), KafkaProducer(topic)

    def publish(self, bodies: Sequence[bytes]) -> None:
        for body in bodies:
            self._producer.send(body)
        self._producer.flush()


class PubSubStream:
    """A topic with a subscription."""

    repeats = True
    # The server for tests looks at all messages that it holds, for each request.
    batch = 100

    def __init__(self, server: PubSubServer) -> None:
        self._server = server
        self._topic, subscription = server.create("reports")
        self.uri = str(subscription)

    def publish(self, bodies: Sequence[bytes]) -> None:
        self._server.publish(self._topic, bodies)


@dataclass(frozen=True)
class Sender:
    """Sends what a crowd reports to a stream, and keeps it in an archive if there is one."""

    crowd: Crowd
    stream: Stream
    archive: LocalStream | None = None

    def send(self, reports: int) -> None:
        """Send so many new reports, and copies of others."""
        for first in range(0, reports, AT_ONCE):
            self._publish(self.crowd.send(min(AT_ONCE, reports - first)))

    def finish(self) -> None:
        """Send the last copies, and close the archive."""
        self._publish(self.crowd.send_copies())
        if self.archive is not None:
            self.archive.close()

    def _publish(self, bodies: list[bytes]) -> None:
        self.stream.publish(bodies)
        if self.archive is not None:
            now = time.time_ns() // 1_000_000
            self.archive.append([Message(body, now) for body in bodies])

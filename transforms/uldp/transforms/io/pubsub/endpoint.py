"""Subscriptions and topics of Pub/Sub as endpoints: jobs read the former and write to the latter."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.records import Message
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.io.endpoints import Access, Endpoint, EndpointError, Following, Keyed, records_of
from uldp.transforms.io.pubsub.client import Publisher
from uldp.transforms.io.pubsub.source import PublishTo, PubSubSource, ReadSubscription
from uldp.transforms.io.pubsub.subscription import Subscription, Topic

_READ_INSTEAD = "is written to; read one of its subscriptions, pubsub:projects/PROJECT/subscriptions/NAME"
_WRITE_INSTEAD = "is read; write to its topic, pubsub:projects/PROJECT/topics/NAME"


def parse(uri: str, config: Path | None = None) -> "SubscriptionEndpoint | TopicEndpoint":
    """Read ``pubsub:projects/P/subscriptions/S`` or ``pubsub:projects/P/topics/T``. No config is needed.

    Raises:
        PubSubError: if it is something else.
    """
    if f"/{Topic.KIND}/" in uri:
        return TopicEndpoint(Topic.parse(uri))
    return SubscriptionEndpoint(Subscription.parse(uri))


@dataclass(frozen=True)
class SubscriptionEndpoint(Endpoint):
    """A subscription that is followed."""

    subscription: Subscription

    needs_checkpoints = True

    def __str__(self) -> str:
        return str(self.subscription)

    def check(self, access: Access) -> None:
        """Ask Pub/Sub; see ``Subscription.check``."""
        if access == "WRITE":
            raise EndpointError(f"{self}: {_WRITE_INSTEAD}")
        self.subscription.check()

    def identity(self) -> str:
        """Return the path: Pub/Sub gives a subscription nothing else."""
        return self.subscription.identity()

    def read(self, pipeline: beam.Pipeline, following: Following) -> PCollection[Message | Chunk]:
        """Pull, or let the runner pull."""
        source = PubSubSource(self.subscription, following.delay_ms, simulated_clock=following.simulated_clock)
        messages: PCollection[Message | Chunk] = pipeline | "ReadPubSub" >> ReadSubscription(source, following.native)
        return messages


@dataclass(frozen=True)
class TopicEndpoint(Endpoint):
    """A topic that is published to."""

    topic: Topic

    def __str__(self) -> str:
        return str(self.topic)

    def check(self, access: Access) -> None:
        """Ask Pub/Sub; see ``Topic.check``."""
        if access == "READ":
            raise EndpointError(f"{self}: {_READ_INSTEAD}")
        self.topic.check()

    def read(self, pipeline: beam.Pipeline, following: Following) -> PCollection[Message | Chunk]:
        """Refuse: a topic keeps no messages for a job."""
        raise EndpointError(f"{self}: {_READ_INSTEAD}")

    def read_whole(self, pipeline: beam.Pipeline) -> PCollection[Chunk]:
        """Refuse, as ``read``."""
        raise EndpointError(f"{self}: {_READ_INSTEAD}")

    def publish(self, records: PCollection[Keyed], *, native: bool) -> None:
        """Publish each record with its key as an attribute."""
        attributed = beam.MapTuple(_attributed).with_output_types(tuple[bytes, dict[str, str]])
        bodies = records | "KeyAsAttribute" >> attributed
        _ = bodies | "PublishTo" >> PublishTo(self.topic, native)

    @contextmanager
    def writing(self, *, simulated_clock: bool) -> Iterator["TopicWriter"]:
        """Publish messages, which get Pub/Sub's publish times.

        Raises:
            EndpointError: if publish times are to be a simulation's.
            PubSubError: if the topic is not there, or refuses a message.
        """
        if simulated_clock:
            raise EndpointError(f"{self}: Pub/Sub sets publish times itself; simulate into a directory or into Kafka")
        self.check("WRITE")
        writer = TopicWriter(Publisher(self.topic))
        yield writer
        writer.close()


@dataclass(frozen=True)
class TopicWriter:
    """Publishes messages; Pub/Sub sets their publish times."""

    publisher: Publisher
    simulated_clock: bool = False

    def append(self, messages: Sequence[Message] | EncodedMessages) -> None:
        """Publish messages in requests of many."""
        for message in records_of(messages):
            self.publisher.publish(message.data, message.attributes)

    def now(self) -> int:
        """Return this machine's time."""
        return int(time.time() * 1000)

    def close(self) -> None:
        """Publish the last request."""
        self.publisher.flush()


def _attributed(key: bytes, body: bytes) -> tuple[bytes, dict[str, str]]:
    return body, {"key": key.decode()}

"""Google Cloud Pub/Sub: a subscription read as messages, and bytes published to a topic.

Runners without a source of their own read through ``PubSubSource``; Dataflow has one, which is better there.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import apache_beam as beam
from apache_beam.coders import Coder
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.io.unbounded_source import CheckpointMark, ReadFromUnboundedSource, UnboundedReader, UnboundedSource
from apache_beam.pvalue import PBegin, PCollection
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp

from uldp.schemas.records import NO_ATTRIBUTES, Message
from uldp.transforms.io.chunks import Chunk, ChunkCoder
from uldp.transforms.io.pubsub.checkpoint import EXTENSION_SECONDS, AckMark, AckMarkCoder, Leases, Unavailable
from uldp.transforms.io.pubsub.client import Publisher, Puller
from uldp.transforms.io.pubsub.subscription import Subscription, Topic

LOGGER = logging.getLogger(__name__)

#: A reader takes no more than that without an acknowledgement; their ids alone are some 100 MB.
MOST_OUTSTANDING = 500_000
#: For how long Pub/Sub keeps a message at the most.
RETENTION_MS = 31 * 24 * 3600 * 1000
#: Seconds between lines of the log about a subscription that does not answer.
LOG_EVERY_SECONDS = 30.0
#: A runner gets results, and the mark is kept, at the end of a bundle; each bundle has its cost.
MAX_CHUNKS_OF_BUNDLE = 64
MAX_SECONDS_OF_BUNDLE = 1.0
#: Seconds between looks where there is nothing.
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class PubSubSource(UnboundedSource):
    """A subscription as chunks of messages.

    Messages are acknowledged when a checkpoint holds what they became, and come again if none does: at least once. See
    ``Leases`` for when that is. Reports are deduplicated by their ids, so what comes again costs time only.

    The runner must take checkpoints. Without, nothing is acknowledged, and reading stops at 500,000 messages.

    Attributes:
        subscription: Which.
        delay_ms: How long after a message one may come that was published before it.
        timestamp_attribute: The attribute that holds the publish time, where a gateway or a simulation stamps it; see
            ``publish_time``. Without a valid one, a message has Pub/Sub's.
        simulated_clock: Whether publish times are a simulation's. Then an idle subscription says nothing about the
            time, and only its messages advance the watermark.
        pullers: How many readers pull at once.
        index: Which of them this is.
    """

    subscription: Subscription
    delay_ms: int = 10_000
    timestamp_attribute: str | None = None
    simulated_clock: bool = False
    pullers: int = 2
    index: int = 0

    def split(self, desired_num_splits: int, options: Any = None) -> Sequence["PubSubSource"]:
        """Make readers of the same subscription, among which Pub/Sub divides the messages.

        Of a simulation there is one, which sees all messages: one that got none would know no time at all.
        """
        n = 1 if self.simulated_clock else max(1, min(desired_num_splits, self.pullers))
        return [replace(self, index=index) for index in range(n)]

    def create_reader(self, options: Any, checkpoint_mark: CheckpointMark | None) -> "PubSubReader":
        """Begin, or go on behind a mark: with its leases if this process has them, which costs nothing."""
        mark = checkpoint_mark if isinstance(checkpoint_mark, AckMark) else None
        leases = None if mark is None else Leases.of(mark)
        recovering = mark is not None and leases is None
        if leases is None:
            leases = Leases(Puller(self.subscription, self.timestamp_attribute), mark)
        return PubSubReader(self, leases, mark, recovering=recovering)

    def get_checkpoint_mark_coder(self) -> Coder:
        """25 bytes."""
        return AckMarkCoder()

    def default_output_coder(self) -> Coder:
        """Chunks as bytes."""
        return ChunkCoder()


class PubSubReader(UnboundedReader):
    """Pulls from a subscription: one request, one chunk.

    The watermark is the publish time of the oldest message that is not acknowledged, less the delay. So what comes
    again after a failure is not late. Where all is acknowledged and the subscription has nothing to give, it is the
    present, less the delay. It never goes back.

    Pub/Sub does not order messages, and does not tell a reader how old the oldest one is that it still holds. So what
    waits there may be older than the watermark: in a long backlog, after a seek, or where another reader died. It is
    late where the allowed lateness has passed too, and is then counted as late.

    A reader that goes on in another process stands still until what the one before it had has come again.

    It may be set aside at a mark and taken up again later, when others that went on from there have come to nothing.
    """

    def __init__(
        self,
        source: PubSubSource,
        leases: Leases,
        mark: AckMark | None = None,
        *,
        recovering: bool = False,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._source, self._leases, self._mark = source, leases, mark
        self._clock, self._pause = clock, pause
        self._recovered = clock() + EXTENSION_SECONDS + POLL_SECONDS if recovering else 0.0
        stamped = source.timestamp_attribute is not None
        self._watermark = None if stamped else int(clock() * 1000) - RETENTION_MS
        self._idle_at: int | None = None
        self._chunk = Chunk(())

    def start(self) -> bool:
        """Pull the first chunk."""
        return self.advance()

    def advance(self) -> bool:
        """Pull the next chunk; wait for a second at the most.

        Raises:
            PubSubError: if there will never be one.
        """
        self._chunk, self._idle_at = Chunk(()), None
        if self._mark is not None:
            self._leases.roll_back(self._mark.number)
            self._mark = None
        if len(self._leases) >= MOST_OUTSTANDING:
            return self._wait("no checkpoint has covered %s messages, so no more are taken", f"{MOST_OUTSTANDING:,}")
        asked = int(self._clock() * 1000)
        try:
            ack_ids, messages = self._leases.queue.pull()
        except Unavailable as error:
            return self._wait("%s; asking again", error)
        if not messages:
            self._idle_at = asked
            return False
        self._leases.take(ack_ids, [message.publish_time for message in messages])
        self._leases.keep_tending()
        self._chunk = Chunk(messages)
        return True

    def _wait(self, why: str, detail: object) -> bool:
        """Say from time to time what is waited for. A runner may ask again at once: Flink's does."""
        if self._clock() - self._leases.logged >= LOG_EVERY_SECONDS:
            self._leases.logged = self._clock()
            LOGGER.warning(why, detail)
        self._pause(POLL_SECONDS)
        return False

    def get_current(self) -> Chunk:
        """Return the chunk."""
        return self._chunk

    def get_current_timestamp(self) -> Timestamp:
        """Return when the oldest of its messages was published."""
        return Timestamp(micros=min(message.publish_time for message in self._chunk.messages) * 1000)

    def get_watermark(self) -> Timestamp:
        """Return the time before which, as far as can be known, nothing will come."""
        reached = self._leases.oldest()
        if reached is None and self._idle_at is not None:
            reached = self._leases.newest if self._source.simulated_clock else self._idle_at
        if reached is not None and self._clock() >= self._recovered:
            reached -= self._source.delay_ms
            self._watermark = reached if self._watermark is None else max(self._watermark, reached)
        return MIN_TIMESTAMP if self._watermark is None else Timestamp(micros=self._watermark * 1000)

    def get_checkpoint_mark(self) -> AckMark:
        """Cover what was pulled since the last mark."""
        self._mark = self._leases.make_mark()
        return self._mark


@dataclass
class ReadSubscription(beam.PTransform[PBegin, PCollection[Message | Chunk]]):
    """Read the messages of a subscription: many at a time, dealt out to all workers, or one by one if ``native``.

    Attributes:
        source: The subscription.
        native: Whether the runner reads it with what it has itself, as Dataflow does. It knows how old the backlog is,
            and takes of ``source`` the subscription and ``timestamp_attribute`` alone.
        id_label: The attribute by which the runner drops what was published twice; native only.
    """

    source: PubSubSource
    native: bool = False
    id_label: str | None = None

    def expand(self, pbegin: PBegin) -> PCollection[Message | Chunk]:
        """Read, or let the runner read."""
        messages: PCollection[Message | Chunk]
        if self.native:
            read = beam.io.ReadFromPubSub(
                subscription=self.source.subscription.path,
                id_label=self.id_label,
                with_attributes=True,
                timestamp_attribute=self.source.timestamp_attribute,
            )
            convert = beam.Map(to_message, name=self.source.subscription.name).with_output_types(Message)
            messages = pbegin | "ReadMessages" >> read | "ToMessage" >> convert
            return messages
        read_chunks = ReadFromUnboundedSource(self.source, POLL_SECONDS, MAX_CHUNKS_OF_BUNDLE, MAX_SECONDS_OF_BUNDLE)
        messages = pbegin | "ReadChunks" >> read_chunks.with_output_types(Chunk) | "SpreadChunks" >> beam.Reshuffle()
        return messages


def to_message(message: PubsubMessage, name: str, published: Any = beam.DoFn.TimestampParam) -> Message:
    """Make our message of Beam's, whose element time is its publish time."""
    attributes = dict(message.attributes) if message.attributes else NO_ATTRIBUTES
    return Message(message.data or b"", published.micros // 1000, attributes, f"{name}:{message.message_id}")


@dataclass
class PublishTo(beam.PTransform[PCollection[tuple[bytes, Mapping[str, str]]], None]):
    """Publish bodies with their attributes; a bundle is done when Pub/Sub has accepted all of it.

    Attributes:
        topic: Where to.
        native: Whether the runner publishes with what it has itself, as Dataflow does.
    """

    topic: Topic
    native: bool = False

    def expand(self, records: PCollection[tuple[bytes, Mapping[str, str]]]) -> None:
        """One step of our own, or the runner's."""
        if self.native:
            messages = records | "ToPubsubMessage" >> beam.MapTuple(to_pubsub).with_output_types(PubsubMessage)
            _ = messages | "WriteMessages" >> beam.io.WriteToPubSub(self.topic.path, with_attributes=True)
        else:
            _ = records | "PublishRecords" >> beam.ParDo(_PublishFn(self.topic))


def to_pubsub(data: bytes, attributes: Mapping[str, str]) -> PubsubMessage:
    """Make Beam's message of a body and its attributes."""
    return PubsubMessage(data, dict(attributes))


class _PublishFn(beam.DoFn):
    def __init__(self, topic: Topic) -> None:
        self._topic = topic

    def setup(self) -> None:
        self._publisher = Publisher(self._topic)

    def process(self, record: tuple[bytes, Mapping[str, str]]) -> None:
        self._publisher.publish(*record)

    def finish_bundle(self) -> None:
        self._publisher.flush()

"""Google Cloud Pub/Sub: one transform reads a subscription as messages, another publishes bytes to a topic."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import apache_beam as beam
from apache_beam.coders import Coder
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.pvalue import PBegin, PCollection

from uldp.schemas.records import NO_ATTRIBUTES, Message, known_attributes
from uldp.transforms.internals import CheckpointMark, Given, Timestamp
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.io.publish_times import LATEST, bounded_messages
from uldp.transforms.io.pubsub.checkpoint import EXTENSION_SECONDS, UNKNOWN, AckMark, AckMarkCoder, Leases, Unavailable
from uldp.transforms.io.pubsub.client import Publisher, Puller
from uldp.transforms.io.pubsub.subscription import Subscription, Topic
from uldp.transforms.io.reader import POLL_SECONDS, ChunkReader, ChunkSource, read_chunks

LOGGER = logging.getLogger(__name__)

#: A reader takes no more messages when it has this many unacknowledged; their ack ids alone are some 100 MB.
MOST_OUTSTANDING = 500_000
#: Milliseconds for which Pub/Sub keeps a message at the most.
RETENTION_MS = 31 * 24 * 3600 * 1000
#: Seconds between log lines that say why a reader waits.
LOG_EVERY_SECONDS = 30.0


@dataclass(frozen=True)
class PubSubSource(ChunkSource):
    """A subscription read as chunks of messages.

    A reader acknowledges messages when a checkpoint holds their results; otherwise they come again: at least once. See
    ``Leases`` for the time of the acknowledgement. The job deduplicates reports by their ids, so a message that comes
    again costs only time.

    The runner must take checkpoints. Without them, a reader acknowledges nothing, and stops at 500,000 messages.

    Attributes:
        delay_ms: How far out of order messages may come: one may follow a message that was published this much later.
        timestamp_attribute: The attribute that holds the publish time, if a gateway or a simulation stamps it; see
            ``publish_time``. A message without a valid one has Pub/Sub's publish time.
        simulated_clock: Whether publish times come from a simulation. Then an idle subscription says nothing about the
            time, and only its messages advance the watermark.
        pullers: How many readers pull at once.
        index: The number of this one among them.
    """

    subscription: Subscription
    delay_ms: int = 10_000
    timestamp_attribute: str | None = None
    simulated_clock: bool = False
    pullers: int = 2
    index: int = 0

    def of_readers(self) -> Sequence["PubSubSource"]:
        """Divide the messages among readers; a simulation has one, because others could not know the time."""
        return [replace(self, index=index) for index in range(1 if self.simulated_clock else self.pullers)]

    def create_reader(self, options: Any, checkpoint_mark: CheckpointMark | None) -> "PubSubReader":
        """Create a reader, at a mark if there is one. It costs nothing if this process has the mark's leases."""
        mark = checkpoint_mark if isinstance(checkpoint_mark, AckMark) else None
        leases = None if mark is None else Leases.of(mark)
        recovering = mark is not None and leases is None
        if leases is None:
            leases = Leases(Puller(self.subscription, self.timestamp_attribute), mark)
        return PubSubReader(self, leases, mark, recovering=recovering)

    def get_checkpoint_mark_coder(self) -> Coder:
        return AckMarkCoder()


class PubSubReader(ChunkReader):
    """Pulls from a subscription: one request, one chunk.

    The watermark is the publish time of the oldest unacknowledged message, less the delay. So a message that comes
    again after a failure is not late. If all messages are acknowledged and the subscription answers that it has none,
    the watermark is the present, less the delay. The watermark never goes back, and each mark holds it.

    Pub/Sub does not order messages, and does not tell a reader the age of its oldest message. So a message in the
    subscription may be older than the watermark: in a long backlog, after a seek, or after another reader's death. The
    reader gives it the watermark as its publish time (see ``publish_times``). If the allowed lateness has passed too,
    its reports are late, and the job counts and keeps them as late.

    A reader that continues in another process holds its watermark until the messages of the reader before it have come
    again.

    A runner may set a reader aside at a mark, and use it again later, after the readers that continued from that mark
    have produced nothing lasting.
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
        earliest = UNKNOWN if stamped else int(clock() * 1000) - RETENTION_MS
        self._watermark = earliest if mark is None else max(earliest, mark.watermark)
        self._idle_at: int | None = None

    def advance(self) -> bool:
        """Pull the next chunk for a second at the most; EndpointError if no chunk can ever come."""
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
        latest = LATEST if self._source.simulated_clock else int(self._clock() * 1000)
        packed = bounded_messages(messages, self._watermark, latest)
        self._chunk = Chunk(packed)
        self._leases.take(ack_ids, packed.publish_times.tolist())
        self._leases.keep_tending()
        return True

    def _wait(self, why: str, detail: object) -> bool:
        """Log from time to time why the reader waits. Then pause: a runner may ask again at once, as Flink's does."""
        if self._clock() - self._leases.logged >= LOG_EVERY_SECONDS:
            self._leases.logged = self._clock()
            LOGGER.warning(why, detail)
        self._pause(POLL_SECONDS)
        return False

    def get_watermark(self) -> Timestamp:
        """Return the time before which no message will come, as far as the reader can know."""
        reached = self._leases.oldest()
        if reached is None and self._idle_at is not None:
            reached = self._leases.newest if self._source.simulated_clock else self._idle_at
        if reached is not None and self._clock() >= self._recovered:
            self._watermark = max(self._watermark, reached - self._source.delay_ms)
        return Timestamp(micros=self._watermark * 1000)

    def get_checkpoint_mark(self) -> AckMark:
        """Make a mark that covers the messages pulled since the last mark, and holds the watermark."""
        self._mark = self._leases.make_mark(self._watermark)
        return self._mark


@dataclass
class ReadSubscription(beam.PTransform[PBegin, PCollection[Message | Chunk]]):
    """Read the messages of a subscription: in chunks spread over all workers, or one by one if ``native``.

    Attributes:
        native: Whether the runner reads with its own source, as Dataflow does. That source knows how old the backlog
            is, and uses only the subscription and ``timestamp_attribute`` from ``source``.
        id_label: The attribute by which the runner drops messages that were published twice; native only.
    """

    source: PubSubSource
    native: bool = False
    id_label: str | None = None

    def expand(self, pbegin: PBegin) -> PCollection[Message | Chunk]:
        """Read, or let the runner read."""
        if self.native:
            read = beam.io.ReadFromPubSub(
                subscription=self.source.subscription.path,
                id_label=self.id_label,
                with_attributes=True,
                timestamp_attribute=self.source.timestamp_attribute,
            )
            convert = beam.Map(to_message, self.source.subscription.name).with_output_types(Message)
            messages: PCollection[Message | Chunk] = pbegin | "ReadMessages" >> read | "ToMessage" >> convert
            return messages
        # Pub/Sub gives any reader any message, so that a few readers suffice; but all workers are to decode.
        spread = read_chunks(pbegin, self.source) | "SpreadChunks" >> beam.Reshuffle()
        return cast(PCollection[Message | Chunk], spread)


def to_message(message: PubsubMessage, name: str, published: Given = beam.DoFn.TimestampParam) -> Message:
    """Make our message from Beam's; the element time is the publish time."""
    attributes = known_attributes(message.attributes or NO_ATTRIBUTES)
    return Message(message.data or b"", published.micros // 1000, attributes, f"{name}:{message.message_id}")


@dataclass
class PublishTo(beam.PTransform[PCollection[tuple[bytes, Mapping[str, str]]], None]):
    """Publish bodies with their attributes; a bundle ends when Pub/Sub has accepted all its messages."""

    topic: Topic
    native: bool = False  # whether the runner publishes with its own sink, as Dataflow does

    def expand(self, records: PCollection[tuple[bytes, Mapping[str, str]]]) -> None:
        """Publish in a step of ours, or let the runner publish."""
        if self.native:
            messages = records | "ToPubsubMessage" >> beam.MapTuple(to_pubsub).with_output_types(PubsubMessage)
            _ = messages | "WriteMessages" >> beam.io.WriteToPubSub(self.topic.path, with_attributes=True)
        else:
            _ = records | "PublishRecords" >> beam.ParDo(_PublishFn(self.topic))


def to_pubsub(data: bytes, attributes: Mapping[str, str]) -> PubsubMessage:
    """Make Beam's message from a body and its attributes."""
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

"""Kafka: a topic read as messages, and bytes written to one.

Where a reader stands is in Beam's checkpoints and nowhere else: a consumer group that the config names is told of it,
for the tools that show lag, and never asked.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import apache_beam as beam
from apache_beam.coders import Coder
from apache_beam.io.unbounded_source import CheckpointMark, ReadFromUnboundedSource, UnboundedReader, UnboundedSource
from apache_beam.pvalue import PBegin, PCollection
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp

from uldp.schemas.records import NO_ATTRIBUTES, Message
from uldp.transforms.io.chunks import Chunk, ChunkCoder
from uldp.transforms.io.kafka.checkpoint import KafkaMark, KafkaMarkCoder, Position
from uldp.transforms.io.kafka.consumers import CONSUMERS, SharedConsumer
from uldp.transforms.io.kafka.producer import KafkaProducer
from uldp.transforms.io.kafka.topic import KafkaTopic, is_permanent, library

LOGGER = logging.getLogger(__name__)

#: The most messages of a chunk, the seconds it is waited for, and those that a broker has to answer a question.
MAX_MESSAGES = 2000
FETCH_SECONDS = 0.1
ASK_SECONDS = 0.25
#: Seconds between looks where there is nothing.
POLL_SECONDS = 0.5
#: A runner gets results, and the mark is kept, at the end of a bundle; each bundle has its cost.
MAX_CHUNKS_OF_BUNDLE = 64
MAX_SECONDS_OF_BUNDLE = 1.0
#: Seconds without a message of a partition that has more, after which a connection is given up. Since librdkafka 2.1 a
#: partition may wait for good for its leader, once that was away (its issue 4492, its change 5593).
STUCK_SECONDS = 30.0
#: librdkafka's code for an event that is no error.
_END_OF_PARTITION = -191
#: The offsets that mean the first message there is, and the one behind the last.
_BEGINNING, _END = -2, -1
#: An offset beyond all that there can be.
_LAST = 1 << 63
_LATEST_MS = GlobalWindow().max_timestamp().micros // 1000


@dataclass(frozen=True)
class KafkaSource(UnboundedSource):
    """A topic from its first message on, or some partitions of it, as chunks.

    Attributes:
        topic: The topic.
        delay_ms: How long after a message one may come that was published before it.
        simulated_clock: Whether publish times are a simulation's. Then the latest of them is the present, and there is
            one reader, which sees them all.
        stop_at_end: Whether to end where the topic ended when reading began.
        partitions: Which; none for all.
    """

    topic: KafkaTopic
    delay_ms: int = 0
    simulated_clock: bool = False
    stop_at_end: bool = False
    partitions: tuple[int, ...] = ()

    def split(self, desired_num_splits: int, options: Any = None) -> Sequence["KafkaSource"]:
        """Give each partition a reader, or each reader some."""
        if self.partitions or self.simulated_clock:
            return [self]
        found = self.topic.check()
        n = min(desired_num_splits, len(found))
        return [replace(self, partitions=tuple(found[first::n])) for first in range(n)]

    def create_reader(self, options: Any, checkpoint_mark: CheckpointMark | None) -> "KafkaReader":
        """Begin, or go on behind a mark. That costs nothing: some runners do it for each bundle."""
        positions = {partition: Position() for partition in self.partitions}
        if isinstance(checkpoint_mark, KafkaMark):
            positions |= {partition: replace(at) for partition, at in checkpoint_mark.positions.items()}
        return KafkaReader(self, positions)

    def get_checkpoint_mark_coder(self) -> Coder:
        """Positions as bytes."""
        return KafkaMarkCoder(self.topic)

    def default_output_coder(self) -> Coder:
        """Chunks as bytes."""
        return ChunkCoder()


class KafkaReader(UnboundedReader):
    """Reads some partitions of a topic.

    The watermark is that of the partition that is furthest behind. In a partition that is read to its end, whatever is
    published next is published later than the question where its end is: an idle partition holds nothing back, and one
    whose broker does not answer does.

    It has no connection of its own: while it looks, that of the source is where it stands.
    """

    def __init__(
        self, source: KafkaSource, positions: dict[int, Position], clock: Callable[[], float] = time.time
    ) -> None:
        self._source, self._topic, self._positions, self._clock = source, source.topic, positions, clock
        self._chunk = Chunk(())

    def start(self) -> bool:
        """Look for the first chunk."""
        return self.advance()

    def advance(self) -> bool:
        """Look for the next chunk, for a fraction of a second.

        Raises:
            KafkaError: if there will never be one.
        """
        self._chunk = Chunk(())
        with CONSUMERS.lend(self._source, self._topic) as consumer:
            try:
                if self._take(consumer):
                    self._chunk = Chunk(self._fetch(consumer))
                    if consumer.drained and self._clock() - consumer.looked >= STUCK_SECONDS:
                        self._look_after(consumer)
                    if consumer.at_end and self._clock() - consumer.asked >= ASK_SECONDS:
                        self._ask(consumer)
            except library().KafkaException as error:
                if is_permanent(error.args[0]):
                    raise self._topic.error(error.args[0]) from None
                if consumer.stands is None:
                    consumer.client.poll(0)  # which gives nothing, but tells what it met
            for refusal in consumer.refusals:
                raise self._topic.error(refusal)
        return len(self._chunk) > 0

    def _take(self, consumer: SharedConsumer) -> bool:
        """Let the consumer stand here, as soon as a broker has answered all that must be known for it."""
        if not self._positions:
            self._positions = {each: Position() for each in self._topic.partitions(consumer.client, ASK_SECONDS)}
        if self._source.stop_at_end:
            unknown = [each for each, at in self._positions.items() if at.end < 0]
            for partition, end in self._ends(consumer, unknown):
                self._positions[partition].end = end
            if any(self._positions[each].end < 0 for each in unknown):
                return False
        consumer.stand_at(self._offsets())
        return True

    def _offsets(self) -> dict[int, int]:
        return {each: at.next if at.next >= 0 else _BEGINNING for each, at in self._positions.items()}

    def _ends(self, consumer: SharedConsumer, partitions: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Ask which offset the next message of each partition will have; where a broker does not know, leave it out."""
        asked = [library().TopicPartition(self._topic.name, each, _END) for each in partitions]
        for answer in consumer.client.offsets_for_times(asked, ASK_SECONDS) if asked else ():
            if answer.error is None and answer.offset >= 0:
                yield answer.partition, answer.offset

    def _fetch(self, consumer: SharedConsumer) -> list[Message]:
        most = consumer.chunk_size.messages(MAX_MESSAGES)
        fetched = consumer.client.consume(most, FETCH_SECONDS)
        consumer.drained = len(fetched) < most
        # A sender may choose the time. One that is yet to come is not when it was published.
        latest = _LATEST_MS if self._source.simulated_clock else self._now()
        name, messages = self._topic.name, []
        for raw in fetched:  # runs for each message: comparisons, where a call would cost as much as all else
            if raw.error() is not None:
                self._take_event(consumer, raw)
                continue
            partition, offset, published = raw.partition(), raw.offset(), raw.timestamp()[1]
            at = self._positions[partition]
            at.next = offset + 1
            if consumer.at_end:
                consumer.at_end.discard(partition)
            if 0 <= at.end <= offset:
                continue
            if not 0 <= published <= latest:
                published = min(max(published, 0), latest)
            if published > at.clear:
                at.clear = published
            messages.append(Message(raw.value() or b"", published, attributes(raw), f"{name}/{partition}/{offset}"))
        consumer.stands = self._offsets()
        consumer.chunk_size.learn(messages)
        return messages

    def _take_event(self, consumer: SharedConsumer, event: Any) -> None:
        if event.error().code() == _END_OF_PARTITION:
            # Beyond the last message, where what follows it is no message: the end of a transaction.
            self._positions[event.partition()].next = event.offset()
            consumer.at_end.add(event.partition())
        elif is_permanent(event.error()):
            raise self._topic.error(event.error())

    def _ask(self, consumer: SharedConsumer) -> None:
        """Ask whether partitions that were read to their end still are. The client does not know when it last knew."""
        consumer.asked, now = self._clock(), self._now()
        try:
            for partition, end in self._ends(consumer, sorted(consumer.at_end)):
                at = self._positions[partition]
                if end <= at.next:
                    at.clear = max(at.clear, now)
        except library().KafkaException:
            # Nobody answers, or somebody says that there is no such topic any more, which nothing else tells.
            self._topic.partitions(consumer.client, ASK_SECONDS)

    def _look_after(self, consumer: SharedConsumer) -> None:
        """Connect anew where nothing has come of a partition since the last look, and both times it had more.

        So it does where nobody told: a connection that is made when brokers are back has nothing to recover from.
        """
        consumer.looked = self._clock()
        try:
            ends = dict(self._ends(consumer, sorted(self._positions)))
        except library().KafkaException as error:
            if is_permanent(error.args[0]):
                raise
            ends = {}
        behind = {each: at.next for each, at in self._positions.items() if at.next < ends.get(each, _LAST)}
        if stuck := sorted(behind.items() & consumer.behind.items()):
            LOGGER.warning("%s: nothing comes of partition %d; connecting anew", self._topic, stuck[0][0])
            consumer.close()
        else:
            consumer.behind = behind

    def _now(self) -> int:
        if self._source.simulated_clock:
            return max(at.clear for at in self._positions.values())
        return int(self._clock() * 1000)

    def get_current(self) -> Chunk:
        """Return the chunk."""
        return self._chunk

    def get_current_timestamp(self) -> Timestamp:
        """Return when its first message was published."""
        return Timestamp(micros=min(message.publish_time for message in self._chunk.messages) * 1000)

    def get_watermark(self) -> Timestamp:
        """Return the time before which all was read, less the delay."""
        clear = [at.clear for at in self._positions.values() if not at.finished]
        if self._positions and not clear:
            return MAX_TIMESTAMP
        if min(clear, default=-1) < 0:
            return MIN_TIMESTAMP
        return Timestamp(micros=(min(clear) - self._source.delay_ms) * 1000)

    def get_checkpoint_mark(self) -> KafkaMark:
        """Return where the next chunk begins."""
        positions = {partition: replace(at) for partition, at in self._positions.items()}
        return KafkaMark(positions, self._topic)


def attributes(raw: Any) -> Mapping[str, str]:
    """Return the headers of a client's message as attributes; of several of one name, the last.

    What is no text is escaped. Where a name is none, which the client cannot read, there are no attributes.
    """
    try:
        headers = raw.headers()
    except (UnicodeDecodeError, SystemError):
        return NO_ATTRIBUTES
    if not headers:
        return NO_ATTRIBUTES
    return {name: (value or b"").decode("utf-8", "backslashreplace") for name, value in headers}


@dataclass
class ReadFromKafka(beam.PTransform[PBegin, PCollection[Chunk]]):
    """Read the messages of a topic.

    All workers share what follows, but for a job that ends: Flink keys what a source is split into by the source, so
    that one worker reads it all.
    """

    source: KafkaSource

    def expand(self, pbegin: PBegin) -> PCollection[Chunk]:
        """Read, and deal the chunks out."""
        read = ReadFromUnboundedSource(self.source, POLL_SECONDS, MAX_CHUNKS_OF_BUNDLE, MAX_SECONDS_OF_BUNDLE)
        chunks: PCollection[Chunk] = pbegin | "ReadChunks" >> read.with_output_types(Chunk)
        return chunks if self.source.stop_at_end else chunks | "SpreadChunks" >> beam.Reshuffle()


@dataclass
class WriteToKafka(beam.PTransform[PCollection[tuple[bytes, bytes]], None]):
    """Write keys and values to a topic; a bundle is done when the brokers have all of it."""

    topic: KafkaTopic

    def expand(self, records: PCollection[tuple[bytes, bytes]]) -> None:
        """One step."""
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

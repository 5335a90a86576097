"""A reader of partitions of a Kafka topic: where it stands, what it knows of the topic, and its watermark."""

import functools
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from uldp.schemas.codec.packed import Bodies, NumberedRuns, PackedMessages
from uldp.schemas.records import Missing
from uldp.transforms.internals import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.io.kafka.checkpoint import KafkaMark, Position
from uldp.transforms.io.kafka.consumers import CONSUMERS, SharedConsumer, attributes
from uldp.transforms.io.kafka.topic import KafkaTopic, is_permanent, library
from uldp.transforms.io.kafka.withheld import BEGINNING, END, Uncommitted, offsets
from uldp.transforms.io.publish_times import LATEST, bounded_times
from uldp.transforms.io.reader import ChunkReader

if TYPE_CHECKING:
    from uldp.transforms.io.kafka.source import KafkaSource

LOGGER = logging.getLogger(__name__)

#: The maximum number of messages in a chunk, the seconds to wait for a chunk, and the seconds in which a broker must
#: answer a question.
MAX_MESSAGES = 2000
FETCH_SECONDS = 0.1
ASK_SECONDS = 0.25
#: Seconds between two questions of a reader which partitions the topic has. The watermark waits for the answer, so that
#: no report of a new partition is late: windows fire later by this much at the most.
LOOK_SECONDS = 1.0
#: Seconds after which a reader gives up a connection if a partition with a backlog delivers nothing. Since librdkafka
#: 2.1 a partition may wait forever for its leader after the leader was away (its issue 4492, its change 5593).
STUCK_SECONDS = 30.0
#: Seconds after which the log says that a transaction holds back messages, and the watermark.
OPEN_SECONDS = 60.0
#: librdkafka's codes for the end of a partition, and for an offset that a partition does not have: events, no errors.
_END_OF_PARTITION, _OUT_OF_RANGE = -191, -140
#: An offset higher than any possible one.
_LAST = 1 << 63
#: The kind of a timestamp that the sender wrote.
_CREATE_TIME = 1


class KafkaReader(ChunkReader):
    """Reads some partitions of a topic.

    If a partition no longer has the message at which the reader goes on, the reader goes on at the first that there is:
    the topic has removed those between the two. The next chunk with a message of the partition names them, or the chunk
    with which the partition ends. A gap in the offsets alone proves nothing: transactions and compaction leave gaps.

    A partition that is added to the topic is read from its first message. None of its messages was published before
    the reader last knew all partitions, so the watermark waits there.

    The partition that is furthest behind sets the watermark. When the reader has read a partition to its end, it asks
    the broker for the end of all messages, of open transactions too: if it is the same, every message to come is
    published after the question. So an idle partition does not hold the watermark back, but a partition does if its
    broker does not answer. If a transaction is open, the watermark waits at the first message that is withheld.

    A broker's clock may be behind, and a sender may choose the time. A message that comes out of order by more than the
    delay therefore has the watermark as its publish time; see ``publish_times``.

    A reader has no connection of its own: for each poll, it moves the source's shared consumer to its own positions.
    """

    def __init__(
        self,
        source: "KafkaSource",
        positions: dict[int, Position],
        known_until: int = -1,
        clock: Callable[[], float] = time.time,
        say: Callable[[str], None] = LOGGER.warning,
    ) -> None:
        self._source, self._topic, self._clock, self._say = source, source.topic, clock, say
        self._positions, self._known_until = positions, known_until

    def advance(self) -> bool:
        """Poll for the next chunk, for a fraction of a second; EndpointError if no chunk can ever come."""
        self._chunk = Chunk(())
        with CONSUMERS.acquire(self._source, self._topic) as consumer:
            try:
                if self._take(consumer):
                    self._chunk = self._fetch(consumer)
                    if consumer.out_of_range:
                        self._find_again(consumer)
                    if consumer.drained and self._clock() - consumer.checked >= STUCK_SECONDS:
                        self._reconnect_if_stuck(consumer)
                    if consumer.at_end and self._clock() - consumer.asked >= ASK_SECONDS:
                        self._ask(consumer)
                    if self._must_look(consumer):
                        self._look(consumer)
            except library().KafkaException as error:
                if is_permanent(error.args[0]):
                    raise self._topic.error(error.args[0]) from None
                if consumer.positions is None:
                    consumer.client.poll(0)  # returns no message, but reports the client's errors
            for refusal in consumer.refusals:
                raise self._topic.error(refusal)
        return len(self._chunk) > 0 or len(self._chunk.missing) > 0

    def _take(self, consumer: SharedConsumer) -> bool:
        """Move the consumer to this reader's positions; return false if brokers have not yet answered all questions."""
        if not self._positions:
            self._look(consumer)
        self._find_first(consumer)
        if self._source.stop_at_end:
            unknown = [each for each, at in self._positions.items() if at.end < 0]
            if unknown:
                self._find_ends(consumer, unknown)
            if any(self._positions[each].end < 0 for each in unknown):
                return False
        consumer.seek(self._offsets())
        return True

    def _find_ends(self, consumer: SharedConsumer, partitions: list[int]) -> None:
        """Ask where reading stops, and say what is behind that and cannot be read yet."""
        uncommitted, behind = consumer.uncommitted, dict[int, int]()
        ends = uncommitted.ends(partitions, ASK_SECONDS)
        for partition, end in self._ask_offsets(consumer, ends, END):
            self._positions[partition].end = end
            if end < ends[partition]:
                behind[partition] = ends[partition] - end
                uncommitted.hold(partition, end, int(self._clock() * 1000)).said = True
        uncommitted.date(behind, ASK_SECONDS)
        for partition, messages in behind.items():
            self._say(uncommitted.withheld[partition].left(self._topic, partition, messages))

    def _must_look(self, consumer: SharedConsumer) -> bool:
        """Say whether to ask again which partitions the topic has; one that stops at the end has asked for all."""
        if self._source.stop_at_end or consumer.client is None:
            return False
        began = self._known_until < 0 <= self._now()  # a simulated clock does not go before the first message
        return began or not 0 <= self._clock() - consumer.looked < LOOK_SECONDS

    def _look(self, consumer: SharedConsumer) -> None:
        """Ask which partitions the topic has, and read those that were added from their first message."""
        consumer.looked, now, (reader, readers) = self._clock(), self._now(), self._source.share
        new = Position() if not self._positions else Position(next=0, read_until=self._known_until)
        for partition in self._topic.partitions(consumer.client, ASK_SECONDS):
            if partition % readers == reader and partition not in self._positions:
                self._positions[partition] = replace(new)
        self._known_until = max(self._known_until, now)

    def _find_first(self, consumer: SharedConsumer) -> None:
        """Ask for the first message of partitions of which nothing was read; without an answer, the client does."""
        unknown = [each for each, at in self._positions.items() if at.next < 0]
        removed = 0
        for partition, first in self._ask_offsets(consumer, unknown, BEGINNING):
            self._positions[partition].next = first
            removed += first
        if removed and self._source.stop_at_end:
            self._say(f"{self._topic}: {removed} messages were removed from the topic before this job began")

    def _find_again(self, consumer: SharedConsumer) -> None:
        """Go on in partitions that do not have the next message, at the first message that they have."""
        out = sorted(consumer.out_of_range)
        ends = dict(self._ask_offsets(consumer, out, END))
        for partition, first in self._ask_offsets(consumer, out, BEGINNING):
            at = self._positions[partition]
            if at.next < 0:
                at.next = first
            elif at.next < first:
                begin = at.next
                if lost := at.go_on_at(first):
                    LOGGER.warning(
                        "%s: partition %d lost %d messages from offset %d on before this job read them; raise the"
                        " retention of the topic",
                        *(self._topic, partition, lost, begin),
                    )
            elif ends.get(partition, _LAST) < at.next:
                LOGGER.warning(
                    "%s: partition %d ends before offset %d, which was read: it was cut, and is read again from %d on",
                    *(self._topic, partition, at.next, first),
                )
                at.next = first
            consumer.out_of_range.discard(partition)
            if consumer.positions is not None:
                consumer.positions.pop(partition, None)  # so that the client is told where to go on

    def _offsets(self) -> dict[int, int]:
        return {each: at.next if at.next >= 0 else BEGINNING for each, at in self._positions.items()}

    def _ask_offsets(
        self, consumer: SharedConsumer, partitions: Iterable[int], which: int
    ) -> Iterator[tuple[int, int]]:
        return offsets(consumer.client, self._topic, partitions, which, ASK_SECONDS)

    def _fetch(self, consumer: SharedConsumer) -> Chunk:
        most = consumer.chunk_size.messages(MAX_MESSAGES)
        fetched = consumer.client.consume(most, FETCH_SECONDS)
        consumer.drained = len(fetched) < most
        watermark, latest = self._watermark(), LATEST if self._source.simulated_clock else self._now()
        parts: list[PackedMessages] = []
        missing: list[Missing] = []
        first = 0
        events = [row for row, raw in enumerate(fetched) if raw.error() is not None]
        for row in (*events, len(fetched)):
            if first < row:
                parts.append(self._take_messages(consumer, fetched[first:row], watermark, latest, missing))
            if row < len(fetched):
                self._take_event(consumer, fetched[row])
            first = row + 1
        consumer.positions = self._offsets()
        for partition, at in self._positions.items():
            if at.lost_to and (at.ended or partition in consumer.at_end):
                found = max(self._now(), watermark, 0)
                missing.append(at.take_lost(self._place(partition), found, self._source.delay_ms))
        messages = PackedMessages.join(parts)
        consumer.chunk_size.learn(messages)
        return Chunk(messages, tuple(missing))

    def _place(self, partition: int) -> str:
        return f"{self._topic.name}/{partition}"

    def _take_messages(
        self, consumer: SharedConsumer, raws: Sequence[Any], watermark: int, latest: int, missing: list[Missing]
    ) -> PackedMessages:
        """Pack messages, by columns for speed, and name in ``missing`` those that were lost right before them."""
        for partition, offset in {raw.partition(): raw.offset() for raw in raws}.items():  # the last of each
            self._positions[partition].next = offset + 1
            consumer.at_end.discard(partition)
        if self._source.stop_at_end:
            raws = [raw for raw in raws if not 0 <= self._positions[raw.partition()].end <= raw.offset()]
        if not raws:
            return PackedMessages.of([])
        kinds, stamps = zip(*[raw.timestamp() for raw in raws], strict=True)
        if kinds[-1] == _CREATE_TIME and not (self._source.simulated_clock or self._source.stop_at_end):
            _warn_of_senders_times(self._topic)
        published = bounded_times(np.array(stamps), watermark, latest)
        partitions, firsts, rows = np.unique([raw.partition() for raw in raws], return_index=True, return_inverse=True)
        for partition, before in zip(partitions.tolist(), published[firsts].tolist(), strict=True):
            if self._positions[partition].lost_to:
                lost = self._positions[partition].take_lost(self._place(partition), before, self._source.delay_ms)
                missing.append(lost)
        newest = np.full(len(partitions), -1)
        np.maximum.at(newest, rows, published)
        for partition, read_until in zip(partitions.tolist(), newest.tolist(), strict=True):
            at = self._positions[partition]
            at.read_until = max(at.read_until, read_until)
        offsets = np.array([raw.offset() for raw in raws])
        return PackedMessages(
            Bodies.of([raw.value() or b"" for raw in raws]),
            published,
            {row: each for row, raw in enumerate(raws) if (each := attributes(raw))},
            NumberedRuns.of([f"{self._place(each)}/" for each in partitions], rows, offsets),
        )

    def _take_event(self, consumer: SharedConsumer, event: Any) -> None:
        if event.error().code() == _END_OF_PARTITION:
            # This offset may be more than one behind the last message, because the end of a transaction has an offset.
            self._positions[event.partition()].next = event.offset()
            consumer.at_end.add(event.partition())
        elif event.error().code() == _OUT_OF_RANGE:
            consumer.at_end.discard(event.partition())
            consumer.out_of_range.add(event.partition())
        elif is_permanent(event.error()):
            raise self._topic.error(event.error())

    def _ask(self, consumer: SharedConsumer) -> None:
        """Ask until when partitions are read. The client does not say when it last learned that they end there."""
        consumer.asked, now = self._clock(), self._now()
        try:
            ends = consumer.uncommitted.ends(sorted(consumer.at_end), ASK_SECONDS)
            more = [each for each, end in ends.items() if end > self._positions[each].next]
            for partition in ends.keys() - more:
                consumer.uncommitted.withheld.pop(partition, None)
                at = self._positions[partition]
                at.read_until = max(at.read_until, now)
            readable = self._ask_offsets(consumer, more, END)
            self._wait_for([each for each, end in readable if end <= self._positions[each].next], consumer.uncommitted)
        except library().KafkaException:
            # No broker answers, or the topic no longer exists; only the request below reports a missing topic.
            self._topic.partitions(consumer.client, ASK_SECONDS)

    def _wait_for(self, partitions: list[int], uncommitted: Uncommitted) -> None:
        """Take the watermark of partitions to their first messages that are withheld."""
        now, clock = self._now(), int(self._clock() * 1000)
        held = {each: uncommitted.hold(each, self._positions[each].next, clock) for each in partitions}
        # Most transactions are short, so only a second question is worth a fetch.
        uncommitted.date([each for each in partitions if held[each].noticed < clock], ASK_SECONDS)
        for partition, messages in held.items():
            at = self._positions[partition]
            at.read_until = max(at.read_until, min(messages.since, now))
            if not messages.said and clock - messages.noticed >= OPEN_SECONDS * 1000:
                messages.said = True
                self._say(messages.waiting(self._topic, partition))

    def _reconnect_if_stuck(self, consumer: SharedConsumer) -> None:
        """Reconnect if a partition with a backlog, or without a known end, gave nothing since the last check."""
        consumer.checked = self._clock()
        try:
            ends = dict(self._ask_offsets(consumer, sorted(self._positions), END))
        except library().KafkaException as error:
            if is_permanent(error.args[0]):
                raise
            ends = {}
        behind = {each: at.next for each, at in self._positions.items() if at.next < ends.get(each, _LAST)}
        if stuck := sorted(behind.items() & consumer.behind.items()):
            LOGGER.warning("%s: partition %d has messages but delivers none; reconnecting", self._topic, stuck[0][0])
            consumer.close()
        else:
            consumer.behind = behind

    def _now(self) -> int:
        if self._source.simulated_clock:
            return max((at.read_until for at in self._positions.values()), default=-1)
        return int(self._clock() * 1000)

    def get_watermark(self) -> Timestamp:
        """Return the time before which all messages are read, less the delay; no time before a wanted end."""
        return Timestamp(micros=self._watermark() * 1000)

    def _watermark(self) -> int:
        reached = [at.read_until for at in self._positions.values() if not at.finished]
        if self._positions and not reached:
            return MAX_TIMESTAMP.micros // 1000
        read_until = min([self._known_until, *reached])
        if self._source.stop_at_end or read_until < 0:
            return MIN_TIMESTAMP.micros // 1000
        return read_until - self._source.delay_ms

    def get_checkpoint_mark(self) -> KafkaMark:
        positions = {partition: replace(at) for partition, at in self._positions.items()}
        return KafkaMark(positions, self._topic, self._known_until)


@functools.cache
def _warn_of_senders_times(topic: KafkaTopic) -> None:
    """Log it once in a process."""
    LOGGER.warning(
        "%s: senders write the publish times of messages, so their clocks decide which reports are late; to let the "
        "brokers' clocks decide, set message.timestamp.type=LogAppendTime on the topic",
        topic,
    )

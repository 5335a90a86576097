"""The positions of a Kafka reader, as Beam's checkpoints hold them."""

import functools
import struct
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from uldp.schemas.records import Missing
from uldp.transforms.coders import DeterministicCoder, StateLayoutError
from uldp.transforms.internals import CheckpointMark
from uldp.transforms.io.kafka.topic import KafkaTopic, library


@dataclass(slots=True)
class Position:
    """A reader's position in one partition."""

    next: int = -1  # offset of the next message; -1 means the first message that the partition has
    end: int = -1  # offset at which reading stops; -1 means that it never stops
    #: The reader has read all messages published before this time in ms, except for messages that come out of order; -1
    #: means unknown.
    read_until: int = -1
    lost_from: int = 0  # offset of the first message before ``next`` that was lost, and that no chunk has named yet
    lost_to: int = 0  # the offset behind the last of these messages; 0 if there are none

    @property
    def finished(self) -> bool:
        """Whether the reader has reached the end, and nothing is left to say."""
        return self.ended and not self.lost_to

    @property
    def ended(self) -> bool:
        """Whether the reader has reached the end."""
        return 0 <= self.end <= self.next

    def go_on_at(self, first: int) -> int:
        """Go on at the first message that the partition still has; return how many are lost before the end."""
        lost_to = first if self.end < 0 else min(first, self.end)
        lost = max(lost_to - self.next, 0)
        if lost:
            self.lost_from, self.lost_to = self.lost_from if self.lost_to else self.next, lost_to
        self.next = first
        return lost

    def take_lost(self, source: str, before: int, delay_ms: int) -> Missing:
        """Return a record of the lost messages, and forget them; they were published before a time in ms."""
        after = before if self.read_until < 0 else self.read_until - delay_ms
        lost = Missing(source, self.lost_from, self.lost_to - 1, min(after, before), before)
        self.lost_from = self.lost_to = 0
        return lost


@dataclass(frozen=True)
class KafkaMark(CheckpointMark):
    """A checkpoint mark: a reader's position in each of its partitions."""

    positions: Mapping[int, Position]  # the positions by partition
    topic: KafkaTopic
    known_until: int = -1  # the reader knows all partitions that were there at this time in ms; -1 if it knows none

    def finalize_checkpoint(self) -> None:
        """Commit the offsets to the topic's consumer group, if it has one, and wait for no answer: no job needs it."""
        begun = {partition: at.next for partition, at in self.positions.items() if at.next >= 0}
        if begun and self.topic.group is not None:
            offsets = [library().TopicPartition(self.topic.name, *each) for each in begun.items()]
            _committer(self.topic).commit(offsets=offsets, asynchronous=True)


@functools.cache
def _committer(topic: KafkaTopic) -> Any:
    """Return this process's connection for commits. A reader's own may be closed before its last mark is final."""
    return topic.consumer(refused=lambda refusal: None)  # the readers get it too


@dataclass(unsafe_hash=True)  # not frozen, because Beam assigns attributes
class KafkaMarkCoder(DeterministicCoder):
    """Encodes a version, ``known_until``, then the positions in order of partition. The topic comes from the source."""

    topic: KafkaTopic

    _VERSION = 2
    _HEAD = struct.Struct("<Bq")
    _ENTRY = struct.Struct("<iqqqqq")

    def encode(self, value: KafkaMark) -> bytes:
        entries = (self._ENTRY.pack(each, *astuple(at)) for each, at in sorted(value.positions.items()))
        return self._HEAD.pack(self._VERSION, value.known_until) + b"".join(entries)

    def decode(self, encoded: bytes) -> KafkaMark:
        """Read positions; StateLayoutError if another version wrote the bytes, ValueError if they are no mark."""
        if encoded[:1] != bytes([self._VERSION]):
            raise StateLayoutError(
                f"another version of uldp wrote this Kafka checkpoint mark: layout {encoded[:1].hex()}, expected 02"
            )
        if len(encoded) < self._HEAD.size or (len(encoded) - self._HEAD.size) % self._ENTRY.size:
            raise ValueError(f"not a Kafka checkpoint mark: {len(encoded)} bytes")
        _, known_until = self._HEAD.unpack_from(encoded)
        entries = self._ENTRY.iter_unpack(encoded[self._HEAD.size :])
        return KafkaMark({partition: Position(*at) for partition, *at in entries}, self.topic, known_until)

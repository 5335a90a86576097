"""The positions of a Kafka reader, as Beam's checkpoints hold them."""

import functools
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apache_beam.coders import Coder

from uldp.transforms.coders import StateLayoutError
from uldp.transforms.internals import CheckpointMark
from uldp.transforms.io.kafka.topic import KafkaTopic, library


@dataclass(slots=True)
class Position:
    """A reader's position in one partition.

    Attributes:
        next: Offset of the next message; -1 means the first message that the partition has.
        end: Offset at which reading stops; -1 means that it never stops.
        read_until: The reader has read all messages published before this time in ms, except for messages that come out
            of order; -1 means unknown.
    """

    next: int = -1
    end: int = -1
    read_until: int = -1

    @property
    def finished(self) -> bool:
        """Whether the reader has reached the end."""
        return 0 <= self.end <= self.next


@dataclass(frozen=True)
class KafkaMark(CheckpointMark):
    """A checkpoint mark: a reader's position in each of its partitions."""

    positions: Mapping[int, Position]
    topic: KafkaTopic

    def finalize_checkpoint(self) -> None:
        """Commit the offsets to the consumer group, if the topic's config names one.

        Nothing depends on this commit, so this method does not wait for the answer.
        """
        begun = {partition: at.next for partition, at in self.positions.items() if at.next >= 0}
        if begun and self.topic.group is not None:
            offsets = [library().TopicPartition(self.topic.name, *each) for each in begun.items()]
            _committer(self.topic).commit(offsets=offsets, asynchronous=True)


@functools.cache
def _committer(topic: KafkaTopic) -> Any:
    """Return this process's connection for commits. A reader's own may be closed before its last mark is final."""
    return topic.consumer(refused=_pass)


def _pass(refusal: Any) -> None:
    """Ignore the error, because the readers get it too."""


@dataclass(unsafe_hash=True)  # not frozen, because Beam assigns attributes
class KafkaMarkCoder(Coder):
    """Encodes a version, then the positions in order of partition. The topic comes from the source.

    A mark is state: an updated job reads the marks of the job before it. A changed layout needs a new version.
    """

    topic: KafkaTopic

    _VERSION = 1
    _ENTRY = struct.Struct("<iqqq")

    def encode(self, value: KafkaMark) -> bytes:
        """Write all positions."""
        entries = (
            self._ENTRY.pack(each, at.next, at.end, at.read_until) for each, at in sorted(value.positions.items())
        )
        return bytes([self._VERSION]) + b"".join(entries)

    def decode(self, encoded: bytes) -> KafkaMark:
        """Read the positions back.

        Raises:
            StateLayoutError: if another version of this software wrote the bytes.
            ValueError: if the bytes are not a mark.
        """
        if encoded[:1] != bytes([self._VERSION]):
            raise StateLayoutError(
                f"another version of uldp wrote this Kafka checkpoint mark: layout {encoded[:1].hex()}, expected 01"
            )
        if (len(encoded) - 1) % self._ENTRY.size:
            raise ValueError(f"not a Kafka checkpoint mark: {len(encoded)} bytes")
        entries = self._ENTRY.iter_unpack(encoded[1:])
        return KafkaMark({partition: Position(*at) for partition, *at in entries}, self.topic)

    def is_deterministic(self) -> bool:
        """Return true: equal marks have equal bytes."""
        return True

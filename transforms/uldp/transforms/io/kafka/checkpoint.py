"""Where a reader of Kafka stands: what Beam's checkpoints hold of it."""

import functools
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apache_beam.coders import Coder
from apache_beam.io.unbounded_source import CheckpointMark

from uldp.transforms.coders import StateLayoutError
from uldp.transforms.io.kafka.topic import KafkaTopic, library


@dataclass(slots=True)
class Position:
    """Where a reader stands in a partition.

    Attributes:
        next: Offset of the next message; -1 is the first that there is.
        end: Offset at which to stop; -1 is never.
        clear: All that was published before was read, out-of-orderness aside, in ms; -1 is unknown.
    """

    next: int = -1
    end: int = -1
    clear: int = -1

    @property
    def finished(self) -> bool:
        """Whether nothing is left that is to be read."""
        return 0 <= self.end <= self.next


@dataclass(frozen=True)
class KafkaMark(CheckpointMark):
    """Where a reader stands in its partitions."""

    positions: Mapping[int, Position]
    topic: KafkaTopic

    def finalize_checkpoint(self) -> None:
        """Tell the group, if the topic's config names one. Nothing depends on it, so nobody waits for the answer."""
        begun = {partition: at.next for partition, at in self.positions.items() if at.next >= 0}
        if begun and self.topic.group is not None:
            offsets = [library().TopicPartition(self.topic.name, *each) for each in begun.items()]
            _committer(self.topic).commit(offsets=offsets, asynchronous=True)


@functools.cache
def _committer(topic: KafkaTopic) -> Any:
    """One connection of this process. A reader's own may be closed by the time its last mark is final."""
    return topic.consumer(refused=_pass)


def _pass(refusal: Any) -> None:
    """Leave it to readers, who are told too."""


@dataclass(unsafe_hash=True)  # not frozen, because Beam assigns attributes
class KafkaMarkCoder(Coder):
    """A version, then the positions in order of partition. The topic is the source's.

    It is state: a job that is updated reads what the one before wrote. Another layout takes another version.
    """

    topic: KafkaTopic

    _VERSION = 1
    _ENTRY = struct.Struct("<iqqq")

    def encode(self, value: KafkaMark) -> bytes:
        """Write all positions."""
        entries = (self._ENTRY.pack(each, at.next, at.end, at.clear) for each, at in sorted(value.positions.items()))
        return bytes([self._VERSION]) + b"".join(entries)

    def decode(self, encoded: bytes) -> KafkaMark:
        """Read them back.

        Raises:
            StateLayoutError: if another version of this software wrote it.
            ValueError: if nothing of ours did.
        """
        if encoded[:1] != bytes([self._VERSION]):
            raise StateLayoutError(f"a Kafka position of layout {encoded[:1].hex()}, this is 01")
        if (len(encoded) - 1) % self._ENTRY.size:
            raise ValueError(f"a Kafka position of {len(encoded)} bytes, which cannot be")
        entries = self._ENTRY.iter_unpack(encoded[1:])
        return KafkaMark({partition: Position(*at) for partition, *at in entries}, self.topic)

    def is_deterministic(self) -> bool:
        """Equal marks have equal bytes."""
        return True

"""Chunks: messages that a source fetched together are one element, so that a runner's cost is paid once for many.

Importing this module registers the coders of chunks and of messages.
"""

import io
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, cast

import fastavro
import numpy as np
from apache_beam.coders import Coder, registry

import uldp.transforms.coders  # noqa: F401 (registers the coder of messages)
from uldp.schemas.codec.packed import Bodies, PackedMessages, grouped, message_bytes
from uldp.schemas.framing import Schema
from uldp.schemas.records import NO_ATTRIBUTES, Message


@dataclass(frozen=True, slots=True)
class Chunk:
    """Messages in the order in which they were fetched.

    The element time of a chunk is not its messages' time: each message has its own publish time.
    """

    messages: Sequence[Message]

    def __len__(self) -> int:
        return len(self.messages)


@dataclass(slots=True)
class ChunkSize:
    """How many messages to request, so that the bytes of a chunk are bounded too.

    Flink's runner keeps the output of a bundle on its heap until the bundle ends.

    Attributes:
        message_bytes: The mean size of the last messages that came; before the first, a guess that is rather too high.
    """

    BYTES: ClassVar[int] = 256 << 10

    message_bytes: int = 4096

    def messages(self, most: int) -> int:
        """Return how many messages of that size make a chunk: at least one, and no more than ``most``."""
        return max(1, min(most, self.BYTES // self.message_bytes))

    def learn(self, messages: Sequence[Message]) -> None:
        """Assume that the next messages have the mean size of these; an empty sequence changes nothing."""
        if messages:
            self.message_bytes = 1 + sum(map(message_bytes, messages)) // len(messages)


@cache
def _attributes_schema() -> Schema:
    return cast(Schema, fastavro.parse_schema({"type": "array", "items": {"type": "map", "values": "string"}}))


class ChunkCoder(Coder):
    """Encodes columns, because both ends are this job: times, lengths, attributes if there are any, data and positions.

    Messages as Avro records would take several times as long.
    """

    _HEADER = struct.Struct("<IQ")

    def encode(self, value: Chunk) -> bytes:
        """Write all messages."""
        messages = PackedMessages.of(value.messages)
        attributes = io.BytesIO()
        if messages.attributes:
            # The writer accepts an array as a record, although its annotation does not.
            maps = cast(Any, [dict(messages.attributes.get(row, NO_ATTRIBUTES)) for row in range(len(messages))])
            fastavro.schemaless_writer(attributes, _attributes_schema(), maps)
        bodies = messages.bodies
        sources = [messages.source(row).encode() for row in range(len(messages))]
        return b"".join(
            (
                self._HEADER.pack(len(messages), attributes.tell()),
                messages.publish_times.tobytes(),
                (bodies.ends - bodies.starts).astype(np.uint32).tobytes(),
                np.array([len(source) for source in sources], np.uint32).tobytes(),
                attributes.getvalue(),
                bodies.concatenated(),
                *sources,
            )
        )

    def decode(self, encoded: bytes) -> Chunk:
        """Read the messages back.

        Raises:
            ValueError: if the bytes are not a chunk, or more bytes follow it.
        """
        try:
            return Chunk(self._messages(encoded))
        except Exception as error:  # NumPy and fastavro raise many kinds on other bytes
            raise ValueError(f"not a chunk of messages: {error!r}") from error

    def _messages(self, encoded: bytes) -> PackedMessages:
        n, width = self._HEADER.unpack_from(encoded)
        at = self._HEADER.size
        if not n:
            times, lengths = np.empty(0, np.int64), np.empty(0, np.uint32)
        else:
            times = np.frombuffer(encoded, np.int64, n, at)
            lengths = np.frombuffer(encoded, np.uint32, 2 * n, at + 8 * n)
        body = at + 16 * n + width
        bounds = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        if body + bounds[-1] != len(encoded):
            raise ValueError(f"a chunk has {len(encoded)} bytes, but {body + bounds[-1]} were written")
        attributes: dict[int, dict[str, str]] = {}
        if width:
            read = fastavro.schemaless_reader(io.BytesIO(encoded[body - width : body]), _attributes_schema(), None)
            maps = cast(list[dict[str, str]], read)
            if len(maps) != n:
                raise ValueError(f"a chunk has {n} messages, but attributes of {len(maps)}")
            attributes = {row: each for row, each in enumerate(maps) if each}
        ends = bounds[: n + 1]
        sources = Bodies(encoded[body + int(ends[n]) :], bounds[n:-1] - ends[n], bounds[n + 1 :] - ends[n])
        bodies = Bodies(encoded[body : body + int(ends[n])], ends[:-1], ends[1:])
        return PackedMessages(bodies, times, attributes, lambda row: sources[row].decode())

    def estimate_size(self, value: Chunk) -> int:
        """Return about the encoded size without encoding; Beam would encode the value to sample its size."""
        return 16 * len(value) + PackedMessages.of(value.messages).nbytes

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


registry.register_coder(Chunk, ChunkCoder)


def chunked(messages: Iterable[Message]) -> Iterator[Chunk]:
    """Join single messages into chunks, in their order."""
    return map(Chunk, grouped(messages, ChunkSize.BYTES))


def joined(parts: Iterable[PackedMessages]) -> Iterator[Chunk]:
    """Join parts of packed messages into chunks, in their order. A chunk of several parts is of bounded size."""
    held: list[PackedMessages] = []
    room = ChunkSize.BYTES
    for part in parts:
        if held and room < part.nbytes:
            yield Chunk(PackedMessages.join(held))
            held, room = [], ChunkSize.BYTES
        held.append(part)
        room -= part.nbytes
    if held:
        yield Chunk(PackedMessages.join(held))

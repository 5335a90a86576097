"""Chunks: messages that a source fetched together are one element, so that a runner's cost is paid once for many.

Importing this module registers the coders of chunks and of messages.
"""

import io
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, repeat
from typing import Any, ClassVar, cast

import fastavro
import numpy as np
from apache_beam.coders import Coder, registry

import uldp.transforms.coders  # noqa: F401 (registers the coder of messages)
from uldp.schemas.framing import Schema
from uldp.schemas.records import NO_ATTRIBUTES, Message

#: The bytes that a message is assumed to need besides its data, when messages are joined into chunks.
_MESSAGE_OVERHEAD = 1 << 7


@dataclass(frozen=True, slots=True)
class Chunk:
    """Messages in the order in which they were fetched.

    The element time of a chunk is not its messages' time: each message has its own publish time.
    """

    messages: Sequence[Message]

    def __len__(self) -> int:
        return len(self.messages)


def message_bytes(message: Message) -> int:
    """Return the size of a message: of its data, and of its attributes, whose characters count as one byte each.

    >>> message_bytes(Message(b"body", 0, {"name": "value"}))
    13
    """
    size = len(message.data)
    if message.attributes:
        size += sum(len(name) + len(value) for name, value in message.attributes.items())
    return size


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
        messages = value.messages
        attributes = io.BytesIO()
        if any(message.attributes for message in messages):
            # The writer accepts an array as a record, although its annotation does not.
            maps = cast(Any, [dict(message.attributes) for message in messages])
            fastavro.schemaless_writer(attributes, _attributes_schema(), maps)
        pieces = [*(message.data for message in messages), *(message.source.encode() for message in messages)]
        return b"".join(
            (
                self._HEADER.pack(len(messages), attributes.tell()),
                np.array([message.publish_time for message in messages], np.int64).tobytes(),
                np.array([len(piece) for piece in pieces], np.uint32).tobytes(),
                attributes.getvalue(),
                *pieces,
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

    def _messages(self, encoded: bytes) -> list[Message]:
        n, width = self._HEADER.unpack_from(encoded)
        at = self._HEADER.size
        times = np.frombuffer(encoded, np.int64, n, at).tolist() if n else []
        lengths = np.frombuffer(encoded, np.uint32, 2 * n, at + 8 * n) if n else np.empty(0, np.uint32)
        body = at + 16 * n + width
        bounds = [body, *(body + np.cumsum(lengths, dtype=np.int64)).tolist()]
        if bounds[-1] != len(encoded):
            raise ValueError(f"a chunk has {len(encoded)} bytes, but {bounds[-1]} were written")
        attributes: Iterable[Mapping[str, str]] = repeat(NO_ATTRIBUTES, n)
        if width:
            maps = fastavro.schemaless_reader(io.BytesIO(encoded[body - width : body]), _attributes_schema(), None)
            attributes = cast(list[dict[str, str]], maps)
        pieces = [encoded[start:end] for start, end in pairwise(bounds)]
        sources = map(bytes.decode, pieces[n:])
        return [Message(*fields) for fields in zip(pieces[:n], times, attributes, sources, strict=True)]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


registry.register_coder(Chunk, ChunkCoder)


def chunked(messages: Iterable[Message]) -> Iterator[Chunk]:
    """Join single messages into chunks, in their order."""
    held: list[Message] = []
    room = ChunkSize.BYTES
    for message in messages:
        held.append(message)
        room -= _MESSAGE_OVERHEAD + message_bytes(message)
        if room <= 0:
            yield Chunk(held)
            held, room = [], ChunkSize.BYTES
    if held:
        yield Chunk(held)

"""Chunks: messages that a source fetched together are one element, so that a runner's cost is paid once for many."""

import io
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, cast

import fastavro
import numpy as np
import numpy.typing as npt
from apache_beam.coders import Coder, registry

import uldp.transforms.coders  # noqa: F401 (registers the coder of messages)
from uldp.schemas.codec.packed import Bodies, NumberedRuns, PackedMessages
from uldp.schemas.framing import Schema, load_schema
from uldp.schemas.records import NO_ATTRIBUTES, Message, Missing


@dataclass(frozen=True, slots=True)
class Chunk:
    """Messages in the order in which they were fetched, and messages that were lost before they could be fetched.

    The element time of a chunk is not its messages' time: each message has its own publish time.

    Attributes:
        messages: The messages; a chunk may hold none.
        missing: What the reader knows to have existed, and cannot read any more. A gap in the numbers of messages is no
            such proof.
    """

    messages: Sequence[Message]
    missing: Sequence[Missing] = ()

    def __len__(self) -> int:
        return len(self.messages)


@dataclass(slots=True)
class ChunkSize:
    """How many messages to request, so that a chunk's bytes are bounded: Flink keeps a bundle's output on its heap."""

    BYTES: ClassVar[int] = 256 << 10

    #: The mean size of the last messages that came; before the first, a guess that is rather too high.
    message_bytes: int = 4096

    def messages(self, most: int) -> int:
        """Return how many messages of that size make a chunk: at least one, and no more than ``most``."""
        return max(1, min(most, self.BYTES // self.message_bytes))

    def learn(self, messages: Sequence[Message]) -> None:
        """Assume that the next messages have the mean size of these; an empty sequence changes nothing."""
        if messages:
            self.message_bytes = 1 + PackedMessages.of(messages).nbytes // len(messages)


@cache
def _missing_schema() -> Schema:
    return cast(Schema, fastavro.parse_schema({"type": "array", "items": load_schema("missing")}))


@cache
def _attributes_schema() -> Schema:
    return cast(Schema, fastavro.parse_schema({"type": "array", "items": {"type": "map", "values": "string"}}))


class ChunkCoder(Coder):
    """Encodes columns, because both ends are this job: times, lengths, attributes if any, data, positions, missing.

    Avro records would take several times as long. Positions are runs if the source numbers its messages: a text for
    each message would be a quarter of all bytes.
    """

    _HEADER = struct.Struct("<IQIII")

    def encode(self, value: Chunk) -> bytes:
        messages = PackedMessages.of(value.messages)
        attributes = io.BytesIO()
        if messages.attributes:
            # The writer accepts an array as a record, although its annotation does not.
            maps = cast(Any, [dict(messages.attributes.get(row, NO_ATTRIBUTES)) for row in range(len(messages))])
            fastavro.schemaless_writer(attributes, _attributes_schema(), maps)
        missing = io.BytesIO()
        if value.missing:
            fastavro.schemaless_writer(
                missing, _missing_schema(), cast(Any, [each.to_avro() for each in value.missing])
            )
        bodies, source = messages.bodies, messages.source
        if isinstance(source, NumberedRuns) and len(messages):
            texts, runs = source.texts, np.array([source.firsts, source.text_rows, source.numbers])
        else:
            texts, runs = [source(row) for row in range(len(messages))], np.empty((3, 0), np.int64)
        sources = [text.encode() for text in texts]
        return b"".join(
            (
                self._HEADER.pack(len(messages), attributes.tell(), runs.shape[1], len(sources), missing.tell()),
                messages.publish_times.tobytes(),
                (bodies.ends - bodies.starts).astype(np.uint32).tobytes(),
                attributes.getvalue(),
                bodies.concatenated(),
                runs.tobytes(),
                np.array([len(each) for each in sources], np.uint32).tobytes(),
                *sources,
                missing.getvalue(),
            )
        )

    def decode(self, encoded: bytes) -> Chunk:
        try:
            at = len(encoded) - self._HEADER.unpack_from(encoded)[-1]
            return Chunk(self._messages(encoded, at), self._missing(encoded[at:]))
        except Exception as error:  # NumPy and fastavro raise many kinds on other bytes
            raise ValueError(f"not a chunk of messages: {error!r}") from error

    def _missing(self, encoded: bytes) -> tuple[Missing, ...]:
        read = fastavro.schemaless_reader(io.BytesIO(encoded), _missing_schema(), None) if encoded else []
        return tuple(map(Missing.from_avro, cast(list[dict[str, Any]], read)))

    def _messages(self, encoded: bytes, end: int) -> PackedMessages:
        """Read the messages, which end before a position."""
        n, width, k, texts, _ = self._HEADER.unpack_from(encoded)
        at = self._HEADER.size
        times, lengths = _array(encoded, np.int64, n, at), _array(encoded, np.uint32, n, at + 8 * n)
        maps_at = at + 12 * n
        bodies, at = _slices(encoded, lengths, maps_at + width)
        attributes: dict[int, dict[str, str]] = {}
        if width:
            written = io.BytesIO(encoded[maps_at : maps_at + width])
            read = fastavro.schemaless_reader(written, _attributes_schema(), None)
            maps = cast(list[dict[str, str]], read)
            if len(maps) != n:
                raise ValueError(f"a chunk has {n} messages, but attributes of {len(maps)}")
            attributes = {row: each for row, each in enumerate(maps) if each}
        firsts, text_rows, numbers = _array(encoded, np.int64, 3 * k, at).reshape(3, k)
        at += 24 * k
        sources, at = _slices(encoded, _array(encoded, np.uint32, texts, at), at + 4 * texts)
        if at != end:
            raise ValueError(f"the messages of a chunk have {end} bytes, but {at} were written")
        if not k:
            if texts != n:
                raise ValueError(f"a chunk has {n} messages, but positions of {texts}")
            return PackedMessages(bodies, times, attributes, lambda row: sources[row].decode())
        if firsts[0] or (np.diff(firsts, append=n) <= 0).any() or not ((text_rows >= 0) & (text_rows < texts)).all():
            raise ValueError(f"these are no runs of {n} positions with {texts} texts")
        decoded = [sources[row].decode() for row in range(texts)]
        return PackedMessages(bodies, times, attributes, NumberedRuns(decoded, firsts, text_rows, numbers))

    def estimate_size(self, value: Chunk) -> int:
        return 16 * len(value) + PackedMessages.of(value.messages).nbytes


def _array(encoded: bytes, dtype: npt.DTypeLike, n: int, at: int) -> npt.NDArray[Any]:
    """Return n numbers that are encoded from ``at``."""
    return np.frombuffer(encoded, dtype, n, at) if n else np.empty(0, dtype)


def _slices(encoded: bytes, lengths: npt.NDArray[np.uint32], at: int) -> tuple[Bodies, int]:
    """Return the slices of these lengths that are encoded from ``at``, and the offset at which the last one ends."""
    ends = np.cumsum(lengths, dtype=np.int64)
    end = at + int(ends[-1]) if len(ends) else at
    if end > len(encoded):
        raise ValueError(f"a chunk has {len(encoded)} bytes, but {end} were written")
    return Bodies(encoded[at:end], ends - lengths, ends), end


registry.register_coder(Chunk, ChunkCoder)


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

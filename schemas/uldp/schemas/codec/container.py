"""Messages as encoded records of an Avro container file, in memory, before a writer creates the file.

In Avro, a record is the concatenation of its fields, and a block of a container file is the concatenation of records
(Avro specification 1.11, "Binary Encoding" and "Object Container Files"). So a process can cut, join and write encoded
messages as bytes, and millions of messages do not need a Python object each.
"""

import io
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import IO, Any, cast

import fastavro
import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Rows, Times
from uldp.schemas.codec.blocks import MAX_BLOCK_BYTES, SYNC_SIZE
from uldp.schemas.codec.columnar import write_varint
from uldp.schemas.framing import Schema, load_schema, parse_schema
from uldp.schemas.records import Message

#: Size of a block in bytes; its last record may exceed this size. A reader holds a whole block in memory.
BLOCK_SIZE = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class EncodedMessages:
    """Messages as concatenated records of ``message.avsc``."""

    buffer: npt.NDArray[np.uint8]
    ends: Rows  # shape (n,): the offset at which each record ends
    publish_times: Times  # shape (n,): the publish time of each message, which its record holds too

    @classmethod
    def of(cls, messages: Iterable[Message]) -> "EncodedMessages":
        """Encode messages one by one."""
        out, ends, times = io.BytesIO(), [], []
        for message in messages:
            fastavro.schemaless_writer(out, load_schema("message"), message.to_avro())
            ends.append(out.tell())
            times.append(message.publish_time)
        buffer = np.frombuffer(out.getbuffer(), dtype=np.uint8)
        return cls(buffer, np.array(ends, dtype=np.intp), np.array(times, dtype=np.int64))

    @classmethod
    def join(cls, parts: Sequence["EncodedMessages"]) -> "EncodedMessages":
        """Concatenate the messages of several parts."""
        return cls(
            np.concatenate([part.buffer for part in parts]),
            np.cumsum(np.concatenate([part.lengths for part in parts])),
            np.concatenate([part.publish_times for part in parts]),
        )

    def decode(self) -> Iterator[Message]:
        """Decode messages one by one."""
        records = io.BytesIO(self.buffer.tobytes())
        for _ in range(len(self)):
            record = cast(dict[str, Any], fastavro.schemaless_reader(records, load_schema("message"), None))
            yield Message(record["data"], record["publish_time"], record["attributes"])

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def lengths(self) -> Rows:
        """Shape (n,): the length of each record in bytes."""
        return np.diff(self.ends, prepend=0)

    def cut(self, first: int, end: int) -> "EncodedMessages":
        """Return the messages from ``first`` to before ``end``, without copying the bytes."""
        start, stop = (int(self.ends[index - 1]) if index else 0 for index in (first, end))
        return EncodedMessages(self.buffer[start:stop], self.ends[first:end] - start, self.publish_times[first:end])

    def replace(self, rows: Rows, others: "EncodedMessages") -> "EncodedMessages":
        """Replace the messages at ``rows``, which ascend, by ``others``, which have the same publish times."""
        lengths = self.lengths
        pieces = np.split(self.buffer, np.column_stack([self.ends[rows] - lengths[rows], self.ends[rows]]).ravel())
        pieces[1::2] = np.split(others.buffer, others.ends)[:-1]
        lengths[rows] = others.lengths
        return EncodedMessages(np.concatenate(pieces), np.cumsum(lengths), self.publish_times)

    def write(self, file: IO[bytes], metadata: Mapping[str, str]) -> None:
        """Write a container file, uncompressed; ValueError if a message has more bytes than readers accept."""
        if len(self) and (largest := int(self.lengths.max())) > MAX_BLOCK_BYTES - BLOCK_SIZE:
            raise ValueError(
                f"a message takes {largest:,} bytes, the limit is {MAX_BLOCK_BYTES - BLOCK_SIZE:,}; leave it out"
            )
        sync_marker = secrets.token_bytes(SYNC_SIZE)
        write_header(file, "message", sync_marker, metadata)
        starts = self.ends - self.lengths
        firsts = np.flatnonzero(np.diff(starts // BLOCK_SIZE, prepend=-1))
        for first, end in pairwise([*firsts.tolist(), len(self)]):
            block = self.cut(first, end)
            file.write(write_varint(len(block)) + write_varint(len(block.buffer)))
            file.write(block.buffer.data)
            file.write(sync_marker)


def write_header(
    file: IO[bytes], schema: str, sync_marker: bytes, metadata: Mapping[str, str], codec: str = "null"
) -> None:
    """Write the header of a container file of records of ``schema``, without docs, which took 85 % of small panes."""
    file.write(_header(schema, tuple(metadata.items()), codec)[:-SYNC_SIZE] + sync_marker)


@lru_cache(maxsize=64)
def _header(schema: str, metadata: tuple[tuple[str, str], ...], codec: str) -> bytes:
    """Return a header, with zeros in place of the sync marker: to write the schema takes longer than a small pane."""
    file = io.BytesIO()
    fastavro.writer(file, _without_docs(schema), [], metadata=dict(metadata), sync_marker=bytes(SYNC_SIZE), codec=codec)
    return file.getvalue()


@cache
def _without_docs(name: str) -> Schema:
    return parse_schema(cast(Schema, _bare(load_schema(name))))


def _bare(node: Any) -> Any:
    """Return a schema without docs, and without what fastavro adds to it."""
    if isinstance(node, dict):
        return {key: _bare(inner) for key, inner in node.items() if key != "doc" and not key.startswith("__")}
    return [_bare(inner) for inner in node] if isinstance(node, list) else node


def sync_marker(file: IO[bytes]) -> bytes:
    """Return the last bytes of a container file: the sync marker, which its writer drew at random or hashed."""
    file.seek(max(file.seek(0, io.SEEK_END) - SYNC_SIZE, 0))
    return file.read()

"""Messages in the form that an Avro container file has, made before there is a file.

A record is its fields one after the other, and a block of a container file is records one after the other (Avro
specification 1.11, "Binary Encoding" and "Object Container Files"). So encoded messages can be cut, joined and written
as bytes, and millions of them need no object each.
"""

import io
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, cast

import fastavro
import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Rows, Times
from uldp.schemas.codec.columnar import write_varint
from uldp.schemas.framing import load_schema
from uldp.schemas.records import Message

#: Bytes of a block, to which its last record may add. A reader holds a block at once.
BLOCK_SIZE = 1 << 16
_SYNC_SIZE = 16


@dataclass(frozen=True, slots=True, eq=False)
class EncodedMessages:
    """Messages as records of ``message.avsc``, one after the other.

    Attributes:
        buffer: The bytes of all records, uint8.
        ends: Shape (n,): where each record ends.
        publish_times: Shape (n,): when each was published. The records hold it too.
    """

    buffer: npt.NDArray[np.uint8]
    ends: Rows
    publish_times: Times

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
        """Join messages, one part after the other."""
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
        """Shape (n,): bytes of each record."""
        return np.diff(self.ends, prepend=0)

    def cut(self, first: int, end: int) -> "EncodedMessages":
        """Return the messages from ``first`` on and before ``end``, without a copy."""
        start, stop = (int(self.ends[index - 1]) if index else 0 for index in (first, end))
        return EncodedMessages(self.buffer[start:stop], self.ends[first:end] - start, self.publish_times[first:end])

    def replace(self, rows: Rows, others: "EncodedMessages") -> "EncodedMessages":
        """Put ``others``, of the same publish times, in the place of the messages at ``rows``, which rise."""
        lengths = self.lengths
        pieces = np.split(self.buffer, np.column_stack([self.ends[rows] - lengths[rows], self.ends[rows]]).ravel())
        pieces[1::2] = np.split(others.buffer, others.ends)[:-1]
        lengths[rows] = others.lengths
        return EncodedMessages(np.concatenate(pieces), np.cumsum(lengths), self.publish_times)

    def write(self, file: IO[bytes], metadata: Mapping[str, str]) -> None:
        """Write a container file, uncompressed, with ``metadata`` in its header."""
        sync_marker = secrets.token_bytes(_SYNC_SIZE)
        # A copy, because fastavro adds to it.
        fastavro.writer(file, load_schema("message"), [], metadata=dict(metadata), sync_marker=sync_marker)
        starts = self.ends - self.lengths
        firsts = np.flatnonzero(np.diff(starts // BLOCK_SIZE, prepend=-1))
        for first, end in pairwise([*firsts.tolist(), len(self)]):
            block = self.cut(first, end)
            file.write(write_varint(len(block)) + write_varint(len(block.buffer)))
            file.write(block.buffer.data)
            file.write(sync_marker)


def sync_marker(path: Path) -> bytes:
    """Return the end of a container file: the marker that its writer drew at random, or made of what it wrote."""
    with path.open("rb") as file:
        file.seek(max(file.seek(0, io.SEEK_END) - _SYNC_SIZE, 0))
        return file.read()

"""Batches read in place: the columns of a ``ReportBatch`` as views of its message, where the plain decoder copies them.

Which bytes stand before the first column (header, collection, version) is known for each collection and version that
is served. Whatever does not fit is left to the plain decoder, which is the reference.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from uldp.schemas.codec.columnar import Layout
from uldp.schemas.collection import CollectionKey
from uldp.schemas.framing import load_schema

#: A length of four bytes counts to 2^27, which is more than any message has.
_LENGTH_SHIFTS = (0, 7, 14, 21)
_MORE, _SEPTET = 0x80, 0x7F
#: The branches of the payload's union, as the byte that each begins with.
_BRANCHES = {0: "symbols", 2: "bits"}


@dataclass(frozen=True)
class BatchViews:
    """Reads batches of the collections and versions that are served.

    Attributes:
        keys: By every byte before the report ids, the collection and version that it stands for.
        sizes: The sizes of those prefixes. None is the beginning of another.
    """

    keys: dict[bytes, CollectionKey]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, keys: Iterable[CollectionKey]) -> "BatchViews":
        """Build the prefixes of batches that were written with the schema of today."""
        schema = load_schema("report_batch")
        prefixes = {Layout.of(schema, *key, None).prefix: key for key in keys}
        return cls(prefixes, tuple(sorted(set(map(len, prefixes)))))

    def read(self, message: bytes) -> tuple[CollectionKey, dict[str, Any]] | None:
        """Return a batch's collection and version, and its columns by the names of the schema.

        The columns are of any length, as in what the plain decoder returns, and as true: they are the message's.

        Returns:
            None for whatever the plain decoder has to judge.
        """
        for size in self.sizes:
            key = self.keys.get(message[:size])
            if key is not None:
                columns = _read_columns(message, size)
                return None if columns is None else (key, columns)
        return None


def _read_columns(message: bytes, at: int) -> dict[str, Any] | None:
    """Read three fields of bytes, of which the last is in a branch of a union, and then the end of the message."""
    view = memoryview(message)
    try:
        ids, at = _read_bytes(message, at)
        times, at = _read_bytes(message, at)
        branch = _BRANCHES.get(message[at])
        payload, at = _read_bytes(message, at + 1)
    except IndexError:
        return None
    if branch is None or at != len(message):
        return None
    return {"report_ids": view[ids], "event_times": view[times], "payload": {branch: view[payload]}}


def _read_bytes(message: bytes, at: int) -> tuple[slice, int]:
    """Read the length of a field of bytes; returns where its bytes are, and what follows them.

    Raises:
        IndexError: if the message ends before that, or the length is none that a field of a message can have.
    """
    value = 0
    for shift in _LENGTH_SHIFTS:
        byte = message[at]
        at += 1
        value |= (byte & _SEPTET) << shift
        if byte < _MORE:
            if value & 1:  # zigzag: odd is negative
                break
            end = at + (value >> 1)
            return slice(at, end), end
    raise IndexError("no length")

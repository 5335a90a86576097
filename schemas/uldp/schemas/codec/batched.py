"""Batches read in place: the columns of a ``ReportBatch`` are views of its message; the plain decoder copies them.

For each served collection and version, the reader knows the bytes before the first column (header, collection,
version). It leaves all other messages to the plain decoder, which is the reference.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from uldp.schemas.codec.columnar import Layout
from uldp.schemas.framing import load_schema
from uldp.schemas.specs.collection import CollectionKey

#: A length of four bytes can express up to 2^27 bytes, which is more than any message has.
_LENGTH_SHIFTS = (0, 7, 14, 21)
_MORE, _SEPTET = 0x80, 0x7F
#: The branches of the payload's union, by their first byte.
_BRANCHES = {0: "symbols", 2: "bits"}


@dataclass(frozen=True)
class BatchViews:
    """Reads batches of the served collections and versions."""

    #: The collection and version of each prefix, where a prefix is all bytes before the report ids.
    keys: dict[bytes, CollectionKey]
    sizes: tuple[int, ...]  # the sizes of the prefixes. No prefix is the beginning of another prefix.

    @classmethod
    def of(cls, keys: Iterable[CollectionKey]) -> "BatchViews":
        """Build the prefixes of batches that are written with the current schema."""
        schema = load_schema("report_batch")
        prefixes = {Layout.of(schema, *key, None).prefix: key for key in keys}
        return cls(prefixes, tuple(sorted(set(map(len, prefixes)))))

    def read(self, message: bytes) -> tuple[CollectionKey, dict[str, Any]] | None:
        """Return a batch's collection and version, and its columns; None if the plain decoder must decode it."""
        for size in self.sizes:
            key = self.keys.get(message[:size])
            if key is not None:
                columns = _read_columns(message, size)
                return None if columns is None else (key, columns)
        return None


def _read_columns(message: bytes, at: int) -> dict[str, Any] | None:
    """Read two fields of bytes, a third in a branch of a union, and check that the message ends there."""
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
    """Read a length; return the slice of so many bytes and the offset behind; IndexError if they are not there."""
    value = 0
    for shift in _LENGTH_SHIFTS:
        byte = message[at]
        at += 1
        value |= (byte & _SEPTET) << shift
        if byte < _MORE:
            if value & 1 or (shift and not byte):  # negative by zigzag, or longer than it has to be
                break
            end = at + (value >> 1)
            return slice(at, end), end
    raise IndexError("no length")

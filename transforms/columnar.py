"""Columnar decoding: the fields of thousands of Avro ``Report`` messages at once, without a Python object for each.

Messages of one length and one prefix (header, collection, version) are rows of a byte matrix in which every field
stands at a fixed column. Whatever does not fit that layout is left to the plain decoder, which is the reference.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from mechanisms.mechanism import Mask, Payloads
from schemas.framing import Schema, header, report_store
from transforms.columns import ReportIds, Times

Rows = npt.NDArray[np.intp]
Bytes = npt.NDArray[np.uint8]

#: Fewer messages of one length than this cost less through the plain decoder than through a matrix.
MIN_ROWS = 24
#: A time takes 6 bytes as a varint from 1971 to 2039, and 7 until 6429.
_TIME_WIDTHS = (6, 7)
_MAX_SYMBOL_WIDTH = 4
_ID_SIZE = 16


def write_varint(value: int) -> bytes:
    """Encode a non-negative int or long as Avro does: zigzag, then 7 bits a byte, low bits first."""
    rest = value << 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


@dataclass(frozen=True)
class Layout:
    """What the messages of one collection and version look like.

    Attributes:
        prefix: Every byte before the report id.
        bits_width: Bytes of a bit payload, or None where the payload is a symbol.
    """

    prefix: bytes
    bits_width: int | None

    @classmethod
    def of(cls, schema: Schema, collection: str, version: int, bits_width: int | None) -> "Layout":
        """Build the layout of reports that were written with ``schema``."""
        name = collection.encode()
        return cls(header(schema) + write_varint(len(name)) + name + write_varint(version), bits_width)

    @property
    def payload_prefix(self) -> bytes:
        """The union's branch, and for bits their length."""
        return b"\x00" if self.bits_width is None else b"\x02" + write_varint(self.bits_width)


def report_schema() -> Schema:
    """Return the writer schema whose layout this module knows."""
    return report_store().readers["uldp.Report"]


@dataclass(frozen=True, slots=True, eq=False)
class FastRows:
    """Reports that the columnar decoder took: of which layout, from which messages, and their fields."""

    layout: int
    rows: Rows
    report_ids: ReportIds
    event_times: Times
    payloads: Payloads


def decode_columns(messages: Sequence[bytes], layouts: Sequence[Layout]) -> tuple[list[FastRows], Rows]:
    """Decode the messages that fit one of ``layouts``.

    Returns:
        The decoded rows by layout, and the indices of the messages that were left to the plain decoder.
    """
    lengths = np.fromiter(map(len, messages), dtype=np.intp, count=len(messages))
    order = np.argsort(lengths, kind="stable")
    taken = np.zeros(len(messages), dtype=np.bool_)
    found: list[FastRows] = []
    sorted_lengths = lengths[order]
    bounds = [0, *(np.flatnonzero(np.diff(sorted_lengths)) + 1).tolist(), len(messages)]
    for start, end in pairwise(bounds):
        if end - start < MIN_ROWS or sorted_lengths[start] == 0:
            continue
        rows = order[start:end]
        joined = b"".join([messages[row] for row in rows.tolist()])
        matrix = np.frombuffer(joined, dtype=np.uint8).reshape(len(rows), -1)
        for decoded in _decode_matrix(matrix, rows, layouts):
            taken[decoded.rows] = True
            found.append(decoded)
    return found, np.flatnonzero(~taken)


def _decode_matrix(matrix: Bytes, rows: Rows, layouts: Sequence[Layout]) -> Iterator[FastRows]:
    """Decode messages of one length."""
    length = matrix.shape[1]
    for index, layout in enumerate(layouts):
        start = len(layout.prefix)
        rest = length - start - _ID_SIZE - len(layout.payload_prefix)
        payload_widths = range(1, _MAX_SYMBOL_WIDTH + 1) if layout.bits_width is None else (layout.bits_width,)
        widths = [width for width in _TIME_WIDTHS if rest - width in payload_widths]
        if not widths:
            continue
        mine = _rows_equal(matrix, 0, layout.prefix)
        for width in widths:
            at = start + _ID_SIZE + width
            fits = mine[_is_varint(matrix[mine], at - width, width)]
            fits = fits[_equal_at(matrix[fits], at, layout.payload_prefix)]
            at += len(layout.payload_prefix)
            if layout.bits_width is None:
                fits = fits[_is_varint(matrix[fits], at, length - at)]
            if not fits.size:
                continue
            block = matrix[fits]
            times = _zigzag(_varint(block, at - len(layout.payload_prefix) - width, width))
            payloads: Payloads
            if layout.bits_width is None:
                symbols = _varint(block, at, length - at)
                even = symbols % 2 == 0  # odd is a negative int: the plain decoder says so
                block, times, fits, symbols = block[even], times[even], fits[even], symbols[even]
                payloads = (symbols >> 1).astype(np.uint32)
            else:
                payloads = np.ascontiguousarray(block[:, at:])
            ids = np.ascontiguousarray(block[:, start : start + _ID_SIZE]).view(np.uint64)
            yield FastRows(index, rows[fits], ids, times, payloads)


def _rows_equal(matrix: Bytes, at: int, expected: bytes) -> Rows:
    """Indices of the rows with ``expected`` at a column; the last 8 bytes decide for most before the rest is read."""
    end = at + len(expected)
    tail = np.ascontiguousarray(matrix[:, end - 8 : end]).view(np.uint64)[:, 0]
    candidates = np.flatnonzero(tail == np.frombuffer(expected[-8:], np.uint64)[0])
    return candidates[_equal_at(matrix[candidates], at, expected)]


def _equal_at(matrix: Bytes, at: int, expected: bytes) -> Mask:
    equal: Mask = np.all(matrix[:, at : at + len(expected)] == np.frombuffer(expected, np.uint8), axis=1)
    return equal


def _is_varint(matrix: Bytes, at: int, width: int) -> Mask:
    """Which rows hold a varint of exactly ``width`` bytes at a column."""
    more = matrix[:, at : at + width] >= 0x80
    fits: Mask = np.all(more[:, :-1], axis=1) & ~more[:, -1]
    return fits


def _varint(matrix: Bytes, at: int, width: int) -> Times:
    value = np.zeros(len(matrix), dtype=np.int64)
    for index in range(width):
        value |= (matrix[:, at + index].astype(np.int64) & 0x7F) << (7 * index)
    return value


def _zigzag(value: Times) -> Times:
    return (value >> 1) ^ -(value & 1)

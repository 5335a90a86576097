"""Columnar decoding: the fields of thousands of Avro ``Report`` messages at once, without a Python object for each.

Messages are joined, and each field of theirs is read at one offset per message. Which bytes stand before the first
field (header, collection, version) is known for each collection and version that is served. Whatever does not fit such
a layout is left to the plain decoder, which is the reference.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Mask, Payloads, ReportIds, Rows, Times, Words
from uldp.schemas.framing import HEADER_SIZE, Schema, header, report_store

#: Fewer messages than this cost less through the plain decoder than as columns.
MIN_ROWS = 96
#: A time takes 6 bytes as a varint from 1971 to 2039, and 7 until 10889. The sixth says whether there is a seventh.
_TIME_WIDTHS = (6, 7)
_SEVENTH_BYTE = np.uint64(0x80 << 40)
_MAX_SYMBOL_WIDTH = 4
_ID_SIZE = 16
_WORD_SIZE = 8

#: The bits of the first 0 to 8 bytes of a word, and those by which a byte of a varint says that another follows.
_FIRST_BYTES = np.array([(1 << 8 * width) - 1 for width in range(_WORD_SIZE + 1)], dtype=np.uint64)
_MORE = np.uint64(0x8080808080808080)
#: From 8 lanes of 7 bits to 4 of 14, to 2 of 28, to one of 56: the lower lane of each pair, and the gap above it.
_LANES = tuple(
    (np.uint64(lower), np.uint64(gap))
    for lower, gap in ((0x007F007F007F007F, 1), (0x00003FFF00003FFF, 2), (0x0FFFFFFF, 4))
)


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

    @property
    def longest(self) -> int:
        """Bytes of the longest message that fits."""
        payload = _MAX_SYMBOL_WIDTH if self.bits_width is None else self.bits_width
        return len(self.prefix) + _ID_SIZE + max(_TIME_WIDTHS) + len(self.payload_prefix) + payload


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
    longest = max(layout.longest for layout in layouts)
    short = np.flatnonzero(lengths <= longest)
    if len(short) < MIN_ROWS:
        return [], np.arange(len(messages))
    if len(short) < len(messages):
        messages = [messages[row] for row in short.tolist()]
    joined = _Joined.of(messages, lengths[short], longest)
    taken = np.zeros(len(lengths), dtype=np.bool_)
    found = []
    for decoded in _decode_joined(joined, layouts):
        rows = short[decoded.rows]
        taken[rows] = True
        found.append(replace(decoded, rows=rows))
    return found, np.flatnonzero(~taken)


@dataclass(frozen=True, slots=True, eq=False)
class _Joined:
    """Messages one after the other, each from its start to its end, and zeros behind the last.

    Offsets are relative to where a message starts, so what is read of a short one may be the next one's. That the
    last field ends where its message does shows that all were inside.
    """

    buffer: bytes
    starts: Rows
    ends: Rows

    @classmethod
    def of(cls, messages: Sequence[bytes], lengths: Rows, longest: int) -> "_Joined":
        ends = np.cumsum(lengths)
        return cls(b"".join((*messages, bytes(longest + _WORD_SIZE))), ends - lengths, ends)

    def fields(self, at: Rows, width: int) -> npt.NDArray[np.void]:
        """Return the ``width`` bytes at each of the offsets ``at``."""
        everywhere: npt.NDArray[np.void] = np.ndarray(
            len(self.buffer) - width + 1, f"V{width}", self.buffer, strides=(1,)
        )
        return everywhere[at]

    def words(self, at: Rows) -> Words:
        """Return the 8 bytes at each of the offsets ``at`` as a little-endian word."""
        return self.fields(at, _WORD_SIZE).view(np.uint64)

    def rows_of(self, layouts: Sequence[Layout]) -> list[Rows]:
        """Return the messages that begin with the prefix of each layout."""
        # The first byte behind the header is the length of the collection's name, which few layouts share.
        first = self.fields(self.starts + HEADER_SIZE, 1).view(np.uint8)
        order = np.argsort(first, kind="stable")
        ends = np.cumsum(np.bincount(first, minlength=256))
        found = []
        for layout in layouts:
            byte = layout.prefix[HEADER_SIZE]
            rows = order[ends[byte - 1] : ends[byte]]
            found.append(rows[self.fields(self.starts[rows], len(layout.prefix)) == np.void(layout.prefix)])
        return found


def _decode_joined(joined: _Joined, layouts: Sequence[Layout]) -> Iterator[FastRows]:
    """Decode the layouts of one kind of payload together: they differ in their prefix alone."""
    rows_of = joined.rows_of(layouts)
    for kind in {layout.bits_width: layout for layout in layouts}.values():
        members = [index for index, layout in enumerate(layouts) if layout.bits_width == kind.bits_width]
        counts = [len(rows_of[index]) for index in members]
        rows = np.concatenate([rows_of[index] for index in members])
        ids_at = joined.starts[rows] + np.repeat([len(layouts[index].prefix) for index in members], counts)
        kept, times, payloads = _decode_fields(joined, ids_at + _ID_SIZE, joined.ends[rows], kind)
        ids = joined.fields(ids_at[kept], _ID_SIZE).view(np.uint64).reshape(-1, 2)
        rows = rows[kept]
        for index, (start, end) in zip(members, pairwise([0, *np.searchsorted(kept, np.cumsum(counts))]), strict=True):
            if start < end:
                yield FastRows(index, rows[start:end], ids[start:end], times[start:end], payloads[start:end])


def _decode_fields(joined: _Joined, at: Rows, ends: Rows, kind: Layout) -> tuple[Rows, Times, Payloads]:
    """Decode what stands behind the ids: which of the offsets hold a time and a payload of ``kind``, and both."""
    words = joined.words(at)
    widths = np.where(words & _SEVENTH_BYTE, *reversed(_TIME_WIDTHS))
    times, fits = _read_varints(words, widths)
    at = at + widths
    fits &= joined.fields(at, len(kind.payload_prefix)) == np.void(kind.payload_prefix)
    at = at + len(kind.payload_prefix)
    widths = ends - at
    if kind.bits_width is not None:
        kept = np.flatnonzero(fits & (widths == kind.bits_width))
        bits = joined.fields(at[kept], kind.bits_width).view(np.uint8).reshape(-1, kind.bits_width)
        return kept, _zigzag(times[kept]), bits
    fits &= (widths >= 1) & (widths <= _MAX_SYMBOL_WIDTH)
    symbols, whole = _read_varints(joined.words(at), np.clip(widths, 1, _MAX_SYMBOL_WIDTH))
    fits &= whole & (symbols & np.uint64(1) == 0)  # odd is a negative int: the plain decoder says so
    kept = np.flatnonzero(fits)
    return kept, _zigzag(times[kept]), (symbols[kept] >> np.uint64(1)).astype(np.uint32)


def _read_varints(words: Words, widths: Rows) -> tuple[Words, Mask]:
    """Read a varint of ``widths`` bytes, 1 to 8, from the start of each word, and say which are of that width."""
    words = words & _FIRST_BYTES[widths]
    fits: Mask = words & _MORE == _MORE & _FIRST_BYTES[widths - 1]
    values = words & ~_MORE
    for lower, gap in _LANES:
        values = values & lower | (values & ~lower) >> gap
    return values, fits


def _zigzag(values: Words) -> Times:
    signed: Times = values.view(np.int64)
    return (signed >> 1) ^ -(signed & 1)

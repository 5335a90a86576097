"""Columnar decoding: decode the fields of thousands of Avro ``Report`` messages at once, without an object for each.

The decoder joins the messages and reads each field at one offset per message. For each served collection and version,
it knows the bytes before the first field (header, collection, version). It leaves messages that fit no such layout to
the plain decoder, which is the reference.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Bytes, Mask, Payloads, ReportIds, Rows, Times, Words
from uldp.schemas.codec.packed import Bodies
from uldp.schemas.framing import HEADER_SIZE, Schema, header, report_store

#: For fewer messages than this, the plain decoder is faster.
MIN_ROWS = 96
#: As a varint, a time from 1971 to 2039 takes 6 bytes, and a later time until 10889 takes 7. The high bit of the sixth
#: byte says whether a seventh follows.
_TIME_WIDTHS = (6, 7)
_SEVENTH_BYTE = np.uint64(0x80 << 40)
_MAX_SYMBOL_WIDTH = 4
#: Compare up to this many layouts with the messages one by one; hashes are faster for more.
MOST_COMPARED = 12
#: An odd number without a pattern: multiplication by it spreads the bits of a hash, and loses none.
_ODD = np.uint64(0x9E3779B97F4A7C15)
ID_SIZE = 16
WORD_SIZE = 8

#: Masks of the first 0 to 8 bytes of a word, and of the bits that mark a following byte in a varint.
_FIRST_BYTES = np.array([(1 << 8 * width) - 1 for width in range(WORD_SIZE + 1)], dtype=np.uint64)
_MORE = np.uint64(0x8080808080808080)
#: The smallest number that needs a varint of 0 to 8 bytes.
_SMALLEST = np.array([0, 0, *(1 << 7 * width for width in range(1, WORD_SIZE))], dtype=np.uint64)
#: Steps that join 8 lanes of 7 bits to 4 lanes of 14, 2 of 28, and 1 of 56: a mask of the lower lane of each pair, and
#: the gap above that lane.
_LANES = tuple(
    (np.uint64(lower), np.uint64(gap))
    for lower, gap in ((0x007F007F007F007F, 1), (0x00003FFF00003FFF, 2), (0x0FFFFFFF, 4))
)


def write_varint(value: int) -> bytes:
    """Encode a non-negative int or long as Avro does: zigzag, then 7 bits per byte, low bits first."""
    rest = value << 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


@dataclass(frozen=True)
class Layout:
    """The layout of the messages of one collection and version."""

    prefix: bytes  # all bytes before the report id
    width: int | None  # length of a bit payload in bytes, or None if the payload is a symbol

    @classmethod
    def of(cls, schema: Schema, collection: str, version: int, width: int | None) -> "Layout":
        """Build the layout of reports that are written with ``schema``."""
        name = collection.encode()
        return cls(header(schema) + write_varint(len(name)) + name + write_varint(version), width)

    @property
    def payload_prefix(self) -> bytes:
        """The branch of the payload's union, and the length of a bit payload."""
        return b"\x00" if self.width is None else b"\x02" + write_varint(self.width)

    @property
    def longest(self) -> int:
        """Length of the longest message of this layout in bytes."""
        payload = _MAX_SYMBOL_WIDTH if self.width is None else self.width
        return len(self.prefix) + ID_SIZE + WORD_SIZE + 1 + len(self.payload_prefix) + payload


def report_schema() -> Schema:
    """Return the writer schema whose layout this module knows."""
    return report_store().readers["uldp.Report"]


@dataclass(frozen=True, slots=True, eq=False)
class FastRows:
    """Reports that the columnar decoder decoded, of all layouts with one kind of payload, sorted by their layout."""

    layouts: Sequence[int]  # the indices of k layouts, ascending, each with one or more reports
    ends: Sequence[int]  # where the reports of each of these layouts end
    rows: Rows  # shape (n,): the messages of the reports, those of a layout ascending
    #: Their fields, as in ``uldp.collector.columns.ReportColumns``.
    report_ids: ReportIds
    event_times: Times
    payloads: Payloads


def decode_columns(messages: Bodies, layouts: Sequence[Layout]) -> tuple[list[FastRows], Rows]:
    """Return the rows of messages that fit ``layouts``, by kind of payload, and the indices of all others."""
    if not layouts:
        return [], np.arange(len(messages))
    longest = max(layout.longest for layout in layouts)
    short = np.flatnonzero(messages.ends - messages.starts <= longest)
    if len(short) < MIN_ROWS:
        return [], np.arange(len(messages))
    found = list(_decode_joined(PaddedMessages.of(messages, short, longest), short, layouts))
    rest = np.ones(len(messages), dtype=np.bool_)
    for decoded in found:
        rest[decoded.rows] = False
    return found, np.flatnonzero(rest)


@dataclass(frozen=True, slots=True, eq=False)
class PaddedMessages:
    """Messages in a buffer, each with its start and end, and zeros behind the last message.

    Offsets are relative to the start of a message, so a read from a short message may take bytes of the next message.
    If the last field ends at the end of its message, all fields were inside the message.
    """

    buffer: bytes
    starts: Rows
    ends: Rows

    @classmethod
    def of(cls, messages: Bodies, rows: Rows, longest: int) -> "PaddedMessages":
        """Take the messages in ``rows``, of whose layouts the longest has so many bytes."""
        return cls(messages.buffer + bytes(longest + 2 * WORD_SIZE), messages.starts[rows], messages.ends[rows])

    def fields(self, at: Rows, width: int) -> npt.NDArray[np.void]:
        """Return the ``width`` bytes at each of the offsets ``at``."""
        return fields_at(self.buffer, at, width)

    def words(self, at: Rows) -> Words:
        """Return the 8 bytes at each of the offsets ``at`` as a little-endian word."""
        return words_at(self.buffer, at)

    def layouts_of(self, layouts: Sequence[Layout]) -> Rows:
        """Return the index of the layout with whose prefix each message begins; -1 if there is none."""
        found = np.full(len(self.starts), -1)
        if len(layouts) > MOST_COMPARED:
            self._look_up(layouts, found)
        else:
            self._compare(layouts, found)
        return found

    def _by_length(self) -> Callable[[int], Rows]:
        """Return a function from the byte of a name's length, the first behind the header, to its messages."""
        first = self.fields(self.starts + HEADER_SIZE, 1).view(np.uint8)
        order = np.argsort(first, kind="stable")
        ends = [0, *np.cumsum(np.bincount(first, minlength=256)).tolist()]
        return lambda byte: order[ends[byte] : ends[byte + 1]]

    def _compare(self, layouts: Sequence[Layout], found: Rows) -> None:
        """Compare each layout with the messages whose names of collections have its length."""
        rows_of = self._by_length()
        for index, layout in enumerate(layouts):
            rows = rows_of(layout.prefix[HEADER_SIZE])
            found[rows[self.fields(self.starts[rows], len(layout.prefix)) == np.void(layout.prefix)]] = index

    def _look_up(self, layouts: Sequence[Layout], found: Rows) -> None:
        """Look up the prefix of each message by its hash among the prefixes whose names have its length."""
        rows_of = self._by_length()
        alike: dict[tuple[int, int], list[int]] = defaultdict(list)
        for index, layout in enumerate(layouts):
            alike[layout.prefix[HEADER_SIZE], len(layout.prefix)].append(index)
        for (byte, length), members in alike.items():
            rows = rows_of(byte)
            messages = replace(self, starts=self.starts[rows], ends=self.ends[rows])
            prefixes = [layouts[member].prefix for member in members]
            known = PaddedMessages.of(Bodies.of(prefixes), np.arange(len(members)), length)
            hashes = known.hashes(length)
            by_hash = np.argsort(hashes)
            candidates = by_hash[_places(hashes[by_hash], messages.hashes(length))]
            prefix = known.fields(known.starts, length)[candidates]
            same = messages.fields(messages.starts, length) == prefix
            found[rows[same]] = np.array(members)[candidates[same]]

    def hashes(self, length: int) -> Words:
        """Hash the first ``length`` bytes of each message, behind the header, which all layouts share."""
        hashed = np.zeros(len(self.starts), dtype=np.uint64)
        for offset in range(HEADER_SIZE, length, WORD_SIZE):
            hashed ^= self.words(self.starts + offset) & _FIRST_BYTES[min(length - offset, WORD_SIZE)]
            hashed *= _ODD
            hashed ^= hashed >> np.uint64(32)
        return hashed


def _places(ordered: Words, hashes: Words) -> Rows:
    """Return where each hash is among one or more in ascending order, or belongs, but not behind the last.

    The bits of hashes are random, so the first of them say where to begin, and few hashes need a second step. A binary
    search takes five times as long.
    """
    last = len(ordered) - 1
    bits = (4 * len(ordered)).bit_length()
    shift = np.uint64(64 - bits)
    ends = np.bincount((ordered >> shift).view(np.int64), minlength=1 << bits).cumsum()
    at: Rows = np.concatenate([[0], ends[:-1]]).clip(max=last).take((hashes >> shift).view(np.int64))
    behind = np.flatnonzero((ordered.take(at) < hashes) & (at < last))
    while len(behind):
        at[behind] += 1
        behind = behind[(ordered.take(at[behind]) < hashes[behind]) & (at[behind] < last)]
    return at


def _decode_joined(joined: PaddedMessages, origins: Rows, layouts: Sequence[Layout]) -> Iterator[FastRows]:
    """Decode all layouts with the same kind of payload together, because they differ only in their prefix."""
    of = joined.layouts_of(layouts)
    prefixes = np.array([len(layout.prefix) for layout in layouts])
    for kind in {layout.width: layout for layout in layouts}.values():
        of_kind = np.array([layout.width == kind.width for layout in layouts])
        rows = np.flatnonzero((of >= 0) & of_kind.take(of))
        numbers = of.take(rows)
        ids_at = joined.starts.take(rows) + prefixes.take(numbers)
        # Fields are decoded in the order of the buffer, and sorted by layout when they are columns: of a thousand
        # layouts, each has a message here and there, and a buffer of messages does not fit into the caches.
        kept, times, payloads = _decode_kind(joined, ids_at + ID_SIZE, joined.ends.take(rows), kind)
        if not len(kept):
            continue
        ids = joined.fields(ids_at.take(kept), ID_SIZE).view(np.complex128)  # one item of 16 bytes is taken faster
        # NumPy uses a radix sort for integers of 8 or 16 bits.
        numbers = numbers.take(kept).astype(np.min_scalar_type(len(layouts)))
        order = np.argsort(numbers, kind="stable")
        found = np.bincount(numbers, minlength=len(layouts))
        filled = np.flatnonzero(found)
        yield FastRows(
            filled.tolist(),
            np.cumsum(found[filled]).tolist(),
            origins.take(rows.take(kept.take(order))),
            ids.take(order).view(np.uint64).reshape(-1, 2),
            times.take(order),
            payloads.take(order, axis=0),
        )


def _decode_kind(joined: PaddedMessages, at: Rows, ends: Rows, kind: Layout) -> tuple[Rows, Times, Payloads]:
    """Decode times and payloads of ``kind`` at the offsets behind the ids; also return the rows that hold both."""
    usual = _decode_fields(joined, at, ends, kind, _usual_times)
    if len(at) - len(usual[0]) < MIN_ROWS:
        return usual
    # Times of another unit, or of a device without a clock.
    others = np.delete(np.arange(len(at)), usual[0])
    kept, times, payloads = _decode_fields(joined, at[others], ends[others], kind, _any_times)
    rows = np.concatenate([usual[0], others[kept]])
    order = np.argsort(rows, kind="stable")
    return rows[order], np.concatenate([usual[1], times])[order], np.concatenate([usual[2], payloads])[order]


def _usual_times(joined: PaddedMessages, at: Rows) -> tuple[Words, Mask, Rows]:
    """Read times that take 6 or 7 bytes; also return which are such, and their widths."""
    words = joined.words(at)
    widths = np.where(words & _SEVENTH_BYTE, *reversed(_TIME_WIDTHS))
    return *read_varints(words, widths), widths


def _any_times(joined: PaddedMessages, at: Rows) -> tuple[Words, Mask, Rows]:
    """Read times that take up to 9 bytes; also return which are such, and their widths."""
    words = joined.words(at)
    widths = varint_widths(words)
    times, fits = read_varints(words, np.minimum(widths, WORD_SIZE))
    ninth = joined.words(at + WORD_SIZE) & _FIRST_BYTES[1]
    long = widths > WORD_SIZE
    lower, _ = read_varints(words, WORD_SIZE)
    times = np.where(long, lower | ninth << np.uint64(7 * WORD_SIZE), times)
    return times, np.where(long, (ninth > 0) & (ninth < 0x80), fits), widths


#: Reads the times at offsets; also returns which are such, and their widths.
_ReadTimes = Callable[[PaddedMessages, Rows], tuple[Words, Mask, Rows]]


def _decode_fields(
    joined: PaddedMessages, at: Rows, ends: Rows, kind: Layout, read_times: _ReadTimes
) -> tuple[Rows, Times, Payloads]:
    """Do as ``_decode_kind``, of times that ``read_times`` can read."""
    times, fits, widths = read_times(joined, at)
    at = at + widths
    fits &= joined.fields(at, len(kind.payload_prefix)) == np.void(kind.payload_prefix)
    at = at + len(kind.payload_prefix)
    widths = ends - at
    if kind.width is not None:
        kept = np.flatnonzero(fits & (widths == kind.width))
        bits = joined.fields(at[kept], kind.width).view(np.uint8).reshape(-1, kind.width)
        return kept, unzigzag(times[kept]), bits
    fits &= (widths >= 1) & (widths <= _MAX_SYMBOL_WIDTH)
    symbols, whole = read_varints(joined.words(at), np.clip(widths, 1, _MAX_SYMBOL_WIDTH))
    fits &= whole & (symbols & np.uint64(1) == 0)  # an odd number is a negative int, for the plain decoder
    kept = np.flatnonzero(fits)
    return kept, unzigzag(times[kept]), (symbols[kept] >> np.uint64(1)).astype(np.uint32)


def words_at(buffer: bytes | Bytes, at: Rows) -> Words:
    """Return the 8 bytes at each of the offsets ``at`` as a little-endian word."""
    return fields_at(buffer, at, WORD_SIZE).view(np.uint64)


def fields_at(buffer: bytes | Bytes, at: Rows, width: int) -> npt.NDArray[np.void]:
    """Return the ``width`` bytes at each of the offsets ``at``."""
    everywhere: npt.NDArray[np.void] = np.ndarray(len(buffer) - width + 1, f"V{width}", buffer, strides=(1,))
    return everywhere[at]


def read_varints(words: Words, widths: Rows | int) -> tuple[Words, Mask]:
    """Read a varint of ``widths`` bytes, 1 to 8, from the start of each word; also return which need that width."""
    words = words & _FIRST_BYTES[widths]
    fits: Mask = words & _MORE == _MORE & _FIRST_BYTES[widths - 1]
    values = words & ~_MORE
    for lower, gap in _LANES:
        values = values & lower | (values & ~lower) >> gap
    return values, fits & (values >= _SMALLEST[widths])


def varint_widths(words: Words) -> Rows:
    """Return the width of the varint with which each word begins; 9 if it is longer than the word."""
    ends = ~words & _MORE
    lowest = (ends & -ends).astype(np.float64)  # a power of 2, so that the exponent is exact
    widths: Rows = np.where(ends > 0, np.frexp(lowest)[1] // WORD_SIZE, WORD_SIZE + 1)
    return widths


def unzigzag(values: Words) -> Times:
    """Return the signed numbers that Avro writes as ``values``."""
    signed: Times = values.view(np.int64)
    return (signed >> 1) ^ -(signed & 1)

"""Fast decoding of stored messages: the records of ``message.avsc`` in a block of a container file, as columns.

Where a record begins follows from the record before it. So the reader looks for all places at which a usual record may
end, reads what begins behind each, all at once, and then follows the records from the first one. It reads any other
record alone. fastavro is the reference; it takes eighteen times as long.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Rows
from uldp.schemas.codec.blocks import ContainerError, check_end
from uldp.schemas.codec.columnar import fields_at, read_varints, unzigzag, words_at
from uldp.schemas.codec.packed import Bodies, NumberedRuns, PackedMessages
from uldp.schemas.records import KNOWN_ATTRIBUTES, known_attributes

_MAX_LONG_BITS = 64


def read_long(block: bytes, at: int) -> tuple[int, int]:
    """Read a long; return it and the offset behind; IndexError or ValueError if it is cut or has over 64 bits."""
    value = block[at]
    if value < 0x80:
        return (value >> 1) ^ -(value & 1), at + 1
    value = shift = 0
    while shift < _MAX_LONG_BITS:
        byte = block[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> _MAX_LONG_BITS:
                break
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    raise ValueError("a number has more than 64 bits")


def read_bytes(block: bytes, at: int) -> tuple[int, int]:
    """Read a length; return where so many bytes start and end; IndexError or ValueError if they are cut."""
    size = block[at]
    at += 1
    if size < 0x80 and not size & 1:
        size >>= 1
    else:
        size, at = read_long(block, at - 1)
    end = at + size
    if not at <= end <= len(block):
        raise ValueError(f"a field cannot take {size:,} bytes")
    return at, end


def read_text(block: bytes, at: int) -> tuple[str, int]:
    """Read a string; return it and the offset behind; IndexError or ValueError if it is cut, or no UTF-8."""
    start, end = read_bytes(block, at)
    return block[start:end].decode(), end


def read_map(block: bytes, at: int, read: Callable[[bytes, int], tuple[Any, int]]) -> tuple[dict[str, Any], int]:
    """Read a map, whose values ``read`` reads, and keep the entries of known names: there may be millions of others."""
    found: dict[str, Any] = {}
    while True:
        entries, at = read_long(block, at)
        if not entries:
            return found, at
        if entries < 0:  # then the size of the block follows
            entries = -entries
            _, at = read_long(block, at)
        for _ in range(entries):
            name, at = read_text(block, at)
            value, at = read(block, at)
            if name in KNOWN_ATTRIBUTES:
                found[name] = value


#: Bytes of a block to look at together, so that the intermediate arrays of a large block stay in the processor's cache.
WINDOW = 1 << 18
#: If records are larger on average, reading one by one takes less time than looking at all bytes.
_LARGE = 1 << 10
#: The fewest bytes of a record: of a length, of no attributes, and of a time.
_SMALLEST = 3
#: As a varint, a time from 1971 to 2039 takes 6 bytes: the first five have the high bit, and the sixth has not.
_TIME_WIDTH = 6
_TAIL_WIDTH = 1 + _TIME_WIDTH
#: The byte of no attributes and a time, as the first seven bytes of a word: the bits to look at, and what they are.
_TAIL_MASK, _TAIL = np.uint64(0x80_8080_8080_80FF), np.uint64(0x8080_8080_8000)
#: A usual length takes one byte or two, and is even, because an odd number is negative.
_MORE, _SEPTET, _THREE_BYTES = 0x80, 0x7F, 0x8080
_FIRST = np.zeros(1, dtype=np.int64)


def decode_messages(records: int, block: bytes, file: str, first: int) -> Iterator[PackedMessages]:
    """Yield parts of a block's messages, with known attributes; ContainerError behind those before a damage."""
    at = 0
    while records:
        part = _Part(block, at, records)
        try:
            part.read()
        except (IndexError, ValueError) as error:
            if part.rows:
                yield part.messages(file, first)
            raise ContainerError(f"a record is no message: {error}") from error
        yield part.messages(file, first)
        at, records, first = part.at, records - part.rows, first + part.rows
    check_end(at, block)


class _Part:
    """The records of a block that begin in a window of it: ``rows`` were read, and ``at`` is the offset behind them."""

    def __init__(self, block: bytes, at: int, records: int) -> None:
        self._block, self._begin, self.at = block, at, at
        self._stop = min(at + WINDOW, len(block))
        self._most = min(records, (self._stop - at) // _SMALLEST + 1)
        #: For each record: start and end of its body, from the beginning of this part, and its time.
        self._columns = np.empty((3, self._most), dtype=np.int64)
        self._attributes: dict[int, Mapping[str, str]] = {}
        self._large = len(block) - at > _LARGE * records
        self.rows = 0

    def read(self) -> None:
        """Read all records; IndexError or ValueError if the next one is no record."""
        usual = _NO_RECORDS if self._large else _usual_records(self._block, self._begin, self._stop)
        # At least one, which is refused if the block ends before it.
        while self.rows < self._most and (self.at < self._stop or not self.rows):
            if chain := usual.chain(self.at - self._begin, self._most - self.rows):
                rows = slice(self.rows, self.rows + chain.stop - chain.start)
                self._columns[:, rows] = usual.columns[:, chain]
                self.at, self.rows = self._begin + int(usual.ends[chain.stop - 1]), rows.stop
            else:
                self._read_one()

    def _read_one(self) -> None:
        """Read a record that is not usual."""
        start, end = read_bytes(self._block, self.at)
        attributes, at = read_map(self._block, end, read_text)
        time, self.at = read_long(self._block, at)
        if attributes and (known := known_attributes(attributes)):
            self._attributes[self.rows] = known
        self._columns[:, self.rows] = start - self._begin, end - self._begin, time
        self.rows += 1

    def messages(self, file: str, first: int) -> PackedMessages:
        """Return what was read."""
        starts, ends, times = self._columns[:, : self.rows]
        bodies = Bodies(self._block[self._begin : self.at], starts, ends)
        source = NumberedRuns([f"{file}:"], _FIRST, _FIRST, np.array([first]))
        return PackedMessages(bodies, times, self._attributes, source)


@dataclass(frozen=True, slots=True, eq=False)
class _UsualRecords:
    """What begins in a window behind each place at which a usual record may end, if it looks like one. Ascending."""

    starts: memoryview  # the offset of each
    columns: npt.NDArray[np.int64]  # start and end of its body, and its time
    ends: Rows  # the offset behind it
    breaks: list[int]  # the index of each behind which the next one does not begin

    @classmethod
    def of(cls, starts: Rows, columns: npt.NDArray[np.int64]) -> Self:
        ends = columns[1] + _TAIL_WIDTH
        breaks = np.flatnonzero(ends[:-1] != starts[1:]).tolist()
        return cls(starts.data, columns, ends, [*breaks, len(starts) - 1])

    def chain(self, at: int, most: int) -> slice | None:
        """Return up to ``most`` usual records behind each other, the first at ``at``; None if none begins there."""
        first = bisect_left(self.starts, at)
        if first == len(self.starts) or self.starts[first] != at:
            return None
        return slice(first, min(self.breaks[bisect_left(self.breaks, first)] + 1, first + most))


_NO_RECORDS = _UsualRecords.of(np.empty(0, dtype=np.int64), np.empty((3, 0), dtype=np.int64))


def _usual_records(block: bytes, begin: int, stop: int) -> _UsualRecords:
    """Read all usual records that may lie between ``begin``, where one may begin, and ``stop``."""
    window = np.frombuffer(block, np.uint8, stop - begin, begin)
    last = len(window) - _TAIL_WIDTH  # where the last tail may be
    if last < 1:
        return _NO_RECORDS
    tails = np.flatnonzero((window[:last] == 0) & (window[1 : last + 1] >= _MORE))
    tails = tails.compress(words_at(window, tails) & _TAIL_MASK == _TAIL)
    starts = np.concatenate([_FIRST, tails + _TAIL_WIDTH])
    starts = starts[: np.searchsorted(starts, last)]
    lengths = fields_at(window, starts, 2).view("<u2").astype(np.int64)
    more = lengths >> 7 & 1
    bodies = starts + more + 1
    ends = bodies + ((lengths & _SEPTET | (lengths >> 1 & _SEPTET << 7) * more) >> 1)
    fits = (ends <= last) & (lengths & 1 == 0) & (lengths & _THREE_BYTES != _THREE_BYTES)
    # This word ends with the tail, and so within the window.
    words = words_at(window, np.minimum(ends, last) - 1) >> np.uint64(8)
    times, shortest = read_varints(words >> np.uint64(8), _TIME_WIDTH)
    fits &= (words & _TAIL_MASK == _TAIL) & shortest
    kept = np.flatnonzero(fits)
    return _UsualRecords.of(starts.take(kept), np.stack([bodies, ends, unzigzag(times)]).take(kept, axis=1))

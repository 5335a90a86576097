"""Kernels for packed bits: how many reports of a group set each bit, and how many bits each report sets.

A row is the packed bits of one report, shape (width,), uint8, most significant bit first, padded with zeros to whole
bytes.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from uldp.mechanisms.protocol.cells import Cells
from uldp.schemas.arrays import Counts, Packed, Symbols

# The kernels read the same bytes many times; this many bytes fit a core's cache.
_BYTES_AT_ONCE = 1 << 20

# The system clears new pages for larger arrays, and the allocator keeps smaller ones.
_SMALL_BYTES = 1 << 18

# With more levels, count_bits unpacks fewer rows but adds rows in smaller pieces; with 6 levels it unpacks a tenth.
_MOST_LEVELS = 6

# The sum of fewer bits fits a byte, and a tree of adders for so few rows would cost more than it saves.
_FEW = 256

# Groups with fewer bytes, on average, are counted all at once, unless their rows have so many; for others, a call for
# each costs less.
_MANY_BYTES, _WIDE = 1 << 16, 64

# If runs of payloads of one group have at least this average length, tally_bits counts them without copying.
_RUN = 64


def describe_bits(row: bytes, size: int) -> str:
    """Return the number of set bits of a row, and the first of them.

    >>> describe_bits(bytes([0b10010000]), 5)
    '2 of 5 bits are 1: 0, 3'
    """
    found = np.flatnonzero(np.unpackbits(np.frombuffer(row, np.uint8), count=size))
    return f"{len(found):,} of {size:,} bits are 1{': ' if len(found) else ''}{named(found)}"


def tally_bits(parts: Sequence[Packed], groups: Symbols, k: int, size: int) -> list[Cells]:
    """Count the rows with each of the first ``size`` bits set in k groups, without sorting if rows come in runs."""
    joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
    changes = np.flatnonzero(groups[1:] != groups[:-1]) + 1
    if len(changes) * _RUN >= len(groups):
        # Sort the payloads by group. NumPy uses a radix sort for integers of 8 or 16 bits.
        groups = groups.astype(np.min_scalar_type(k))
        order = np.argsort(groups, kind="stable")
        if joined.shape[1] < _WIDE and joined.size < _MANY_BYTES * k:
            return list(_count_groups(joined, order, np.bincount(groups, minlength=k), size))
        ends = np.searchsorted(groups[order], np.arange(1, k))
        return [count_bits([joined.take(of_group, axis=0)], size) for of_group in np.split(order, ends)]
    runs: list[list[Packed]] = [[] for _ in range(k)]
    for start, end in pairwise([0, *changes.tolist(), len(groups)]):
        runs[groups[start]].append(joined[start:end])
    return [count_bits(of_group, size) for of_group in runs]


def _count_groups(rows: Packed, order: Symbols, numbers: Counts, size: int) -> Counts:
    """Count the bits of all groups at once, (k, size), a lane of adders for each; ``order`` sorts the rows."""
    counts = np.zeros((len(numbers), size), dtype=np.int64)
    groups = np.flatnonzero(numbers)
    if not len(groups):
        return counts
    numbers = numbers[groups]
    levels = min(_MOST_LEVELS, (len(order) // len(groups)).bit_length())
    in_lane = 2**levels - 1
    # Each group begins a lane. A row of zeros fills the last lane of each group.
    of_group = -(-numbers // in_lane)
    first_lanes, ends = np.cumsum(of_group) - of_group, np.cumsum(numbers)
    lanes = int(of_group.sum())
    starts = np.repeat(ends - numbers - in_lane * first_lanes, of_group) + in_lane * np.arange(lanes)
    lengths = np.minimum(np.repeat(ends, of_group) - starts, in_lane)
    places = np.arange(in_lane)[:, np.newaxis]
    at_once = max(1, _SMALL_BYTES // (in_lane * max(rows.shape[1], order.itemsize)))
    sums = np.empty((min(lanes, at_once), size), dtype=np.uint8)
    for lane in range(0, lanes, at_once):
        own = slice(lane, lane + at_once)
        taken = rows.take(order.take(starts[own] + places, mode="clip"), axis=0)
        taken[places >= lengths[own]] = 0
        planes = _add_up(taken.reshape(-1, rows.shape[1]), levels, taken.shape[1])
        of_lanes = sums[: taken.shape[1]]
        of_lanes[:] = 0
        for j, plane in enumerate(planes):
            of_lanes += np.unpackbits(plane, axis=1, count=size) << j
        first = np.searchsorted(first_lanes, lane, side="right") - 1
        last = np.searchsorted(first_lanes, lane + taken.shape[1])
        at = np.maximum(first_lanes[first:last] - lane, 0)
        counts[groups[first:last]] += np.add.reduceat(of_lanes, at, axis=0, dtype=np.int64)
    return counts


def count_bits(parts: Sequence[Packed], size: int) -> Counts:
    """Return the number of rows with each bit set, shape (size,): the positional population count of n rows in pieces.

    A bitwise operation on two rows works on all their columns at once. A tree of carry-save adders uses this: it adds
    2^b - 1 rows of bits to b rows, the bit-planes, where plane j holds the bits of weight 2^j of each column's count. A
    plane again consists of rows of packed bits, and the function counts it in the same way. It unpacks only the rows
    that remain at the end, a tenth if there are many. Unpacking a row takes several times as long as adding it.

    Sources: Warren, "Hacker's Delight" (2nd edition, 2012), section 5-1, for the counter of Harley and Seal; Mula, Kurz
    & Lemire, "Faster Population Counts Using AVX2 Instructions" (2016), for carry-save adders over wide registers.
    """
    n = sum(map(len, parts))
    if not n:
        return np.zeros(size, dtype=np.int64)
    rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if n < _FEW:
        return _sum_few(rows, size)
    planes = _bit_planes(rows, levels := min(_MOST_LEVELS, n.bit_length() - 6))
    few = planes.shape[1] < _FEW
    counts: Counts = (1 << np.arange(levels)) @ (
        _sum_few(planes, size) if few else np.array([count_bits([plane], size) for plane in planes])
    )
    return counts


def _sum_few(rows: Packed, size: int) -> Counts:
    """Unpack rows of shape (..., n, width) and return their sums, which must fit a byte, of shape (..., size)."""
    sums: Packed = np.unpackbits(rows, axis=-1, count=size).sum(axis=-2, dtype=np.uint8)
    return sums.astype(np.int64)


def _bit_planes(rows: Packed, levels: int) -> Packed:
    """Add n rows of bits, 2^levels - 1 in a lane; plane j, shape (lanes, width), has the bits of weight 2^j."""
    n, width = rows.shape
    in_lane = 2**levels - 1
    lanes = -(-n // in_lane)
    at_once = min(lanes, max(1, _BYTES_AT_ONCE // (in_lane * width)))
    planes = np.empty((levels, lanes, width), dtype=np.uint8)
    # The adders work in place on a copy in the cache. Rows of zeros fill the last lanes.
    copy = np.empty((at_once * in_lane, width), dtype=np.uint8)
    for lane in range(0, lanes, at_once):
        block, end = rows[lane * in_lane : (lane + at_once) * in_lane], min(lane + at_once, lanes)
        copy[: len(block)], copy[len(block) :] = block, 0
        for plane, total in zip(planes, _add_up(copy, levels, end - lane), strict=True):
            plane[lane:end] = total
    return planes


def _add_up(rows: Packed, levels: int, lanes: int) -> list[Packed]:
    """Add the first (2^levels - 1) * lanes rows of bits to one number for each lane, and return its bit-planes.

    At first, 2^(levels-1) rows for each lane are numbers of one bit. Each step adds one half of the numbers to the
    other half, which makes the numbers one bit longer, and uses unused rows as carries into the lowest bit. So each
    adder has three inputs, and the steps use exactly 2^levels - 1 rows per lane. The function overwrites the rows.
    """
    half = 2 ** (levels - 1) * lanes
    numbers, used = [rows[:half]], half
    while half > lanes:
        half //= 2
        carry = rows[used : used + half]
        used += half
        for j, bits in enumerate(numbers):
            a, b = bits[:half], bits[half:]
            _full_add(a, b, carry)
            numbers[j], carry = carry, a
        numbers.append(carry)
    return numbers


def _full_add(a: Packed, b: Packed, c: Packed) -> None:
    """Add three bits in every position, in place: c becomes the sum, a the carry, and b is overwritten."""
    a ^= b
    b ^= c
    c ^= a
    a |= b
    a ^= c  # the majority of three bits is their sum, flipped if they are not all equal


def row_totals(rows: Packed) -> Counts:
    """Return the number of set bits in each of n rows, padding included; shape (n,)."""
    totals = np.empty(len(rows), dtype=np.int64)
    at_once = max(1, _SMALL_BYTES // rows.shape[1])
    fitting = np.min_scalar_type(8 * rows.shape[1])
    for start in range(0, len(rows), at_once):
        block = slice(start, start + at_once)
        # einsum adds up short rows several times as fast as sum, but in the type that it is given.
        totals[block] = np.einsum("ij->i", np.bitwise_count(rows[block]).astype(fitting, copy=False))
    return totals


# A line names up to this many symbols.
_NAMED = 20


def named(symbols: Symbols) -> str:
    """Return the numbers of symbols in ascending order, or the first of them."""
    return ", ".join(map(str, symbols[:_NAMED].tolist())) + (", ..." if len(symbols) > _NAMED else "")


def supports_text(symbols: Symbols, size: int, what: str = "symbols") -> str:
    """Return how many of the symbols a report supports, and the first of them.

    >>> import numpy as np
    >>> supports_text(np.array([0, 3]), 5)
    'supports 2 of 5 symbols: 0, 3'
    """
    return f"supports {len(symbols):,} of {size:,} {what}{': ' if len(symbols) else ''}{named(symbols)}"

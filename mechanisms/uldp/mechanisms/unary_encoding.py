"""Mechanisms that report one bit per symbol: all forms of unary encoding, and the counting of packed bits.

Sources: Murakami & Kawamoto, "Utility-Optimized Local Differential Privacy Mechanisms for Distribution Estimation"
(USENIX Security 2019), section 2.4 for the generalized RAPPOR, Definition 5 for uRAP; Wang et al., "Locally
Differentially Private Protocols for Frequency Estimation" (USENIX Security 2017), section 4 for SUE and OUE.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import cast

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.cells import Cells
from uldp.mechanisms.channel import Channel
from uldp.mechanisms.mechanism import IMPROBABLE_TAIL, Guarantee, PayloadForm, PureMechanism, Randomness
from uldp.schemas.arrays import Counts, Floats, Mask, Packed, Payloads, Symbols, Values

#: theta of OUE, which minimizes the variance of the estimate of a rare symbol (Wang et al., section 4.3).
OUE_THETA = 0.5

# perturb holds up to a float and a byte for each bit until it packs the bits; those for this many bits fit a core's
# cache.
_BITS_AT_ONCE = 1 << 17

# The counting kernels read the same bytes many times; this many bytes fit a core's cache.
_BYTES_AT_ONCE = 1 << 20

# With more levels, count_bits unpacks fewer rows but adds rows in smaller pieces; with 6 levels it unpacks a tenth.
_MOST_LEVELS = 6

# The sum of fewer bits fits a byte, and a tree of adders for so few rows would cost more than it saves.
_FEW = 256

# If runs of payloads of one group have at least this average length, support_by_group counts them without copying.
_RUN = 64


def sue_theta(epsilon: float) -> float:
    """Return the theta of SUE (basic one-time RAPPOR), the default for uRAP: sqrt(E)/(sqrt(E)+1), E = e^epsilon."""
    return 1 / (1 + math.exp(-epsilon / 2))


class UnaryEncoding(PureMechanism):
    """The utility-optimized RAPPOR, uRAP (Definition 5), with the cases generalized RAPPOR, SUE and OUE.

    The mechanism reports a bit y_j for each symbol j. With true symbol z and E = e^epsilon, it draws each bit
    independently:

                Pr(y_j = 1 | z = j)         Pr(y_j = 1 | z != j)
    j in Z_S    theta                       d1 = theta / ((1-theta)E + theta)
    j in Z_N    1 - d2 = theta (1 - 1/E)    0

    If all symbols are sensitive, this is the generalized RAPPOR: SUE with ``sue_theta``, OUE with ``OUE_THETA``. If
    some symbols are not sensitive, ``sue_theta`` gives uRAP as the paper evaluates it, and ``OUE_THETA`` gives uOUE.

    Guarantee: one report is (Z_S, Y_P, epsilon)-ULDP, where Y_P are the reports with no bit of Z_N set (Proposition
    5). For every report in Y_P, its likelihoods under any two true symbols differ by at most a factor E. A report with
    a bit of Z_N set reveals its true symbol, which is in Z_N too. If all symbols are sensitive, this is epsilon-LDP.

    Attributes:
        theta: Probability that the device sets the own bit of a sensitive true symbol.
        cleared_probability: Shape (|Z|,): probability that the device clears a true symbol's own bit, 1 - theta on Z_S
            and d2 on Z_N.
    """

    theta: float
    cleared_probability: Floats
    partitions = False

    def __init__(self, sensitive: Mask, epsilon: float, theta: float) -> None:
        """Build the mechanism over Z.

        Args:
            sensitive: Shape (|Z|,): whether each symbol is in Z_S.
            epsilon: Budget of one report in nats.
            theta: Between 0 and 1; see the class docstring.

        Raises:
            ValueError: if epsilon is not positive, theta is not inside (0, 1), or no symbol is sensitive.
        """
        if not np.any(sensitive):
            raise ValueError("no symbol is sensitive, so epsilon would protect nothing")
        if not 0 < theta < 1:
            raise ValueError(f"theta must be inside (0, 1), got {theta}")
        self.theta = theta
        self.sensitive = np.array(sensitive, dtype=np.bool_)
        self.size = self.statistic_size = len(self.sensitive)
        self.form = PayloadForm(width=-(-self.size // 8))
        self.guarantee = Guarantee.of(self.sensitive, epsilon)
        self._sensitive_symbols = np.flatnonzero(self.sensitive)
        d1 = theta / ((1 - theta) * math.exp(epsilon) + theta)
        d2 = (1 - theta) + theta * math.exp(-epsilon)
        # Keep this beside p = 1 - cleared_probability, because a float p close to 1 lacks the digits that the guarantee
        # needs.
        self.cleared_probability = np.where(self.sensitive, 1 - theta, d2)
        self.channel = Channel(
            p=1 - self.cleared_probability,
            q=np.where(self.sensitive, d1, 0.0),
            independent_bits=True,
        )
        self._non_sensitive_words = _word_columns(np.packbits(~self.sensitive)[np.newaxis])
        self._padding_bits = ~np.packbits(np.ones(self.size, dtype=np.bool_))[-1]

    def perturb(self, symbols: Values, randomness: Randomness) -> Packed:
        """Perturb true symbols of shape (n,) into packed bits of shape (n, ceil(|Z|/8)).

        A payload is one bit per symbol, most significant bit first, padded with zeros to whole bytes.

        Raises:
            ValueError: if a symbol is outside of Z.
        """
        self.check_symbols(symbols)
        assert self.form.width is not None
        payloads = np.empty((len(symbols), self.form.width), dtype=np.uint8)
        rows = max(1, _BITS_AT_ONCE // self.size)
        for start in range(0, len(symbols), rows):
            payloads[start : start + rows] = np.packbits(self._bits(symbols[start : start + rows], randomness), axis=1)
        return payloads

    def _bits(self, symbols: Values, randomness: Randomness) -> Mask:
        """Draw the bits of the reports, shape (n, |Z|)."""
        n = len(symbols)
        bits = np.zeros((n, self.size), dtype=np.bool_)
        # q is 0 on Z_N, so only the sensitive columns need noise. The true symbol's own bit then replaces its noise.
        noise = randomness.random((n, len(self._sensitive_symbols)))
        bits[:, self._sensitive_symbols] = noise < self.channel.q[self._sensitive_symbols]
        bits[np.arange(n), symbols] = randomness.random(n) >= self.cleared_probability[symbols]
        return bits

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        """Count the reports with each bit set, without copying if payloads come in runs of a group."""
        rows = cast(Sequence[Packed], parts)
        if np.count_nonzero(groups[1:] != groups[:-1]) * _RUN >= len(groups):
            # Sort the payloads by group. NumPy uses a radix sort for integers of 8 or 16 bits.
            groups = groups.astype(np.min_scalar_type(k))
            order = np.argsort(groups, kind="stable")
            joined = np.concatenate(rows)
            ends = np.searchsorted(groups[order], np.arange(1, k))
            return [count_bits([joined.take(of_group, axis=0)], self.size) for of_group in np.split(order, ends)]
        runs: list[list[Packed]] = [[] for _ in range(k)]
        ends = np.cumsum([len(part) for part in rows])
        for part, numbers in zip(rows, np.split(groups, ends[:-1]), strict=True):
            changes = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
            for start, end in pairwise([0, *changes.tolist(), len(part)] if len(part) else []):
                runs[numbers[start]].append(part[start:end])
        return [count_bits(of_group, self.size) for of_group in runs]

    def possible(self, payloads: Payloads) -> Mask:
        """Return which payloads have zero padding and at most one bit of Z_N set."""
        return self.possible_totals(payloads)[0]

    def inspect(self, payloads: Payloads) -> tuple[Mask, Mask]:
        """Return which payloads are ``possible``, and which have an improbable number of set bits, in one pass."""
        possible, totals = self.possible_totals(payloads)
        fewest, most = self._plausible_totals
        return possible, (totals < fewest) | (totals > most)

    @cached_property
    def _plausible_totals(self) -> tuple[int, int]:
        # Imported here because SciPy takes a quarter of a second to import, and devices and simulations need none.
        from uldp.mechanisms.plausibility import plausible_bit_totals

        return plausible_bit_totals(self, IMPROBABLE_TAIL)

    def possible_totals(self, payloads: Payloads) -> tuple[Mask, Counts]:
        """Return which payloads are ``possible``, and the number of set bits in each, in one pass over the bits.

        Returns:
            Two arrays of shape (n,). If a payload is not possible, its number of set bits may include padding.
        """
        bits = cast(Packed, payloads)
        possible: Mask = bits[:, -1] & self._padding_bits == 0
        totals = np.empty(len(bits), dtype=np.int64)
        rows = max(1, _BYTES_AT_ONCE // bits.shape[1])
        for start in range(0, len(bits), rows):
            block = slice(start, start + rows)
            words = _word_columns(bits[block])
            totals[block] = _column_bits(words)
            if not self.sensitive.all():
                words &= self._non_sensitive_words
                possible[block] &= _column_bits(words) <= 1
        return possible, totals


def count_bits(parts: Sequence[Packed], size: int) -> Counts:
    """Sum packed bits by column: the positional population count.

    A bitwise operation on two rows works on all their columns at once. A tree of carry-save adders uses this: it adds
    2^b - 1 rows of bits to b rows, the bit-planes, where plane j holds the bits of weight 2^j of each column's count. A
    plane again consists of rows of packed bits, and the function counts it in the same way. It unpacks only the rows
    that remain at the end, a tenth if there are many. Unpacking a row takes several times as long as adding it.

    Sources: Warren, "Hacker's Delight" (2nd edition, 2012), section 5-1, for the counter of Harley and Seal; Mula, Kurz
    & Lemire, "Faster Population Counts Using AVX2 Instructions" (2016), for carry-save adders over wide registers.

    Args:
        parts: n rows in pieces, each of shape (m, ceil(size/8)), uint8, most significant bit first.
        size: Number of columns to count; the bits behind them are padding.

    Returns:
        Shape (size,): the number of rows with each bit set.
    """
    n = sum(map(len, parts))
    if n < _FEW:
        return _sum_few(np.concatenate(parts), size) if n else np.zeros(size, dtype=np.int64)
    levels = min(_MOST_LEVELS, n.bit_length() - 6)
    planes = _bit_planes(parts, n, levels)
    few = planes.shape[1] < _FEW
    counts: Counts = (1 << np.arange(levels)) @ (
        _sum_few(planes, size) if few else np.array([count_bits([plane], size) for plane in planes])
    )
    return counts


def _sum_few(rows: Packed, size: int) -> Counts:
    """Unpack rows of shape (..., n, width) and return their sums, which must fit a byte, of shape (..., size)."""
    sums: Packed = np.unpackbits(rows, axis=-1, count=size).sum(axis=-2, dtype=np.uint8)
    return sums.astype(np.int64)


def _bit_planes(parts: Sequence[Packed], n: int, levels: int) -> Packed:
    """Add n rows of bits, 2^levels - 1 at a time.

    Returns:
        Shape (levels, lanes, width), lanes = ceil(n / (2^levels - 1)). A lane is the sum of 2^levels - 1 rows, in
        binary: plane j holds the bits of weight 2^j.
    """
    width = parts[0].shape[1]
    rows = 2**levels - 1
    lanes = -(-n // rows)
    lanes_at_once = min(lanes, max(1, _BYTES_AT_ONCE // (rows * width)))
    planes = np.empty((levels, lanes, width), dtype=np.uint8)
    # The adders work in place on a copy in the cache. Rows of zeros fill the last lanes.
    copy = np.empty((lanes_at_once * rows, width), dtype=np.uint8)
    lane = 0
    for filled in _fill(copy, parts):
        copy[filled:] = 0
        end = min(lane + lanes_at_once, lanes)
        for plane, total in zip(planes, _add_up(copy, levels, end - lane), strict=True):
            plane[lane:end] = total
        lane = end
    return planes


def _fill(block: Packed, parts: Iterable[Packed]) -> Iterator[int]:
    """Copy the rows of all parts into one block, and yield its number of rows each time it is full, and at the end."""
    at = 0
    for part in parts:
        start = 0
        while start < len(part):
            taken = min(len(part) - start, len(block) - at)
            block[at : at + taken] = part[start : start + taken]
            at, start = at + taken, start + taken
            if at == len(block):
                yield at
                at = 0
    if at:
        yield at


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
    """Add three bits in every position of three arrays: c becomes the sum, a becomes the carry, and b is overwritten.

    The function works in place because memory limits its speed: with a separate array for the result, each operation
    would take half as long again.
    """
    a ^= b
    b ^= c
    c ^= a
    a |= b
    a ^= c  # the majority of three bits is their sum, flipped if they are not all equal


def _column_bits(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    """Count the set bits in each column of words, shape (n,)."""
    bits: npt.NDArray[np.uint32] = np.bitwise_count(words).sum(axis=0, dtype=np.uint32)
    return bits


def _word_columns(packed: Packed) -> npt.NDArray[np.uint64]:
    """Copy rows of bytes to columns of words, shape (ceil(width/8), n).

    Along a column, NumPy processes many rows in one instruction; along a row, it restarts after every few words.
    """
    n, width = packed.shape
    if width < 8:
        packed = np.concatenate([packed, np.zeros((n, 8 - width), dtype=np.uint8)], axis=1)
    packed = np.ascontiguousarray(packed)
    whole, rest = divmod(packed.shape[1], 8)
    columns = np.empty((whole + (rest > 0), n), dtype=np.uint64)
    columns[:whole] = packed[:, : 8 * whole].view("<u8").T
    if rest:  # the last word reads the end of the previous word too, and shifts it out
        np.right_shift(packed[:, -8:].view("<u8")[:, 0], 64 - 8 * rest, out=columns[whole])
    return columns

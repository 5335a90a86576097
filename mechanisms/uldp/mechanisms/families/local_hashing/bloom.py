"""RAPPOR with Bloom filters and cohorts: bits about a string that nobody lists beforehand.

Sources: Erlingsson, Pihur & Korolova, "RAPPOR: Randomized Aggregatable Privacy-Preserving Ordinal Response" (CCS 2014);
equations (30) to (32) of the survey of Wang et al. (Sensors 20, 2020).
"""

import math
from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np

from uldp.mechanisms.families.unary_encoding.randomizer import sue_theta
from uldp.mechanisms.inference.goodness_of_fit import Check, binomial
from uldp.mechanisms.protocol.cells import Cells, SparseCells, smallest
from uldp.mechanisms.protocol.device_form import DeviceForm, threshold
from uldp.mechanisms.protocol.mechanism import Guarantee, PayloadForm, Privacy, Randomness
from uldp.mechanisms.protocol.noise import BitNoise, pack_rows
from uldp.mechanisms.randomizers.packed_bits import describe_bits, row_totals, tally_bits
from uldp.mechanisms.randomizers.reports import AlikeBits, BitTotals
from uldp.mechanisms.strings.cohort_channel import CohortChannel
from uldp.mechanisms.strings.cohorts import STRING_SYMBOLS, hash_positions
from uldp.mechanisms.strings.string_mechanism import StringMechanism
from uldp.schemas.arrays import Counts, Floats, Mask, Packed, Payloads, Symbols, Values

_COHORT_BYTES = 2
# perturb holds a float and a byte for each bit; those for this many bits fit a core's cache.
_BITS_AT_ONCE = 1 << 17


class BloomFilter(StringMechanism, BitNoise):
    """Bits of a Bloom filter of the string, each with noise of its own; devices of a cohort share hash functions.

    With M cohorts of H hash functions into h bits, the device draws a cohort, uniform and independent of its string.
    The string's filter has the bits set to which the H functions of this cohort hash the string (32). With
    E' = e^(epsilon/H), the device draws each bit of the report independently:

        Pr(bit = 1) = theta                             if the bit of the filter is set
        Pr(bit = 1) = q = theta / ((1-theta)E' + theta)   if it is not

    By default, theta = 1 - f/2 is that of RAPPOR, where q = f/2 and epsilon = 2H ln((1 - f/2) / (f/2)).

    Guarantee: one report is epsilon-LDP for every user and every two strings. The filters of two strings differ in at
    most H bits that the first alone sets, and H that the second alone sets. Each pair of these changes the likelihood
    of a report by at most a factor theta (1-q) / (q (1-theta)) = E'. Strings without a common bit reach the bound, so
    epsilon is exact. The cohort is public; it says nothing about the string, because it is drawn independently of it.

    A payload is the cohort in 2 bytes, little-endian, and then the bits, most significant bit first. The cells of each
    cohort follow each other: the number of its reports, and of these the number with each bit set.
    """

    partitions = False

    def __init__(self, epsilon: float, bits: int, hashes: int, cohorts: int, theta: float | None = None) -> None:
        if bits % 8 or not 2 <= 2 * hashes <= bits:
            raise ValueError(f"a filter has a multiple of 8 bits, and half as many hashes or fewer: {bits}, {hashes}")
        if not 1 <= cohorts <= 1 << 16:
            raise ValueError(f"there are 1 to 65,536 cohorts, got {cohorts}")
        self.guarantee = Guarantee(Privacy.LDP, epsilon)
        self.theta = sue_theta(epsilon / hashes) if theta is None else theta
        if not 0 < self.theta < 1:
            raise ValueError(f"theta must be inside (0, 1), got {theta}")
        self.q = self.theta / ((1 - self.theta) * math.exp(epsilon / hashes) + self.theta)
        self.bits, self.hashes, self.cohorts = bits, hashes, cohorts
        self.size, self.statistic_size = STRING_SYMBOLS, cohorts * (bits + 1)
        self.form = PayloadForm(width=_COHORT_BYTES + bits // 8)
        self.structure = cohorts, bits, hashes
        # Two functions may give one position, so a filter has 1 to H set bits.
        of_filter = range(1, hashes + 1)
        self.bit_totals = BitTotals([[AlikeBits(j, self.theta), AlikeBits(bits - j, self.q)] for j in of_filter])

    @property
    def cohort_channel(self) -> CohortChannel:
        return CohortChannel(self.cohorts, self.bits, self.hashes, self.theta, self.q, one_position=False)

    @property
    def bit_law(self) -> tuple[Floats, Floats]:
        return np.full(self.bits, 1 - self.theta), np.full(self.bits, self.q)

    def perturb(self, symbols: Values, randomness: Randomness) -> Packed:
        self.check_symbols(symbols)
        n = len(symbols)
        cohorts = randomness.integers(0, self.cohorts, n)
        positions = hash_positions(cohorts, symbols, self.hashes, self.bits)
        packed = pack_rows(n, self.bits, lambda block: self._bits(positions[block], randomness), _BITS_AT_ONCE)
        head = cohorts.astype("<u2")[:, np.newaxis].view(np.uint8)
        return np.concatenate([head, packed], axis=1)

    def _bits(self, positions: Symbols, randomness: Randomness) -> Mask:
        n = len(positions)
        bits = randomness.random((n, self.bits)) < self.q
        # Where two functions give one position, the second draw replaces the first.
        kept = randomness.random((n, self.hashes)) >= 1 - self.theta
        bits[np.arange(n)[:, np.newaxis], positions] = kept
        return bits

    def device_form(self) -> DeviceForm:
        return {
            "form": "bloom",
            "cohorts": self.cohorts,
            "hashes": self.hashes,
            "size": self.bits,
            "set": threshold(self.q),
            "clear": threshold(1 - self.theta),
        }

    def possible(self, payloads: Payloads) -> Mask:
        return self.inspect(payloads)[0]

    def inspect(self, payloads: Payloads) -> tuple[Mask, Mask]:
        rows = cast(Packed, payloads)
        possible, improbable = self.bit_totals.judge(row_totals(rows[:, _COHORT_BYTES:]))
        return possible & (self.cohorts_of(rows) < self.cohorts), improbable

    def describe(self, payload: int | bytes) -> str:
        row = cast(bytes, payload)
        cohort = int.from_bytes(row[:_COHORT_BYTES], "little")
        return f"cohort {cohort:,} of {self.cohorts:,}, {describe_bits(row[_COHORT_BYTES:], self.bits)}"

    def cohorts_of(self, payloads: Packed) -> Symbols:
        """Return the cohort of each of n payloads, shape (n,)."""
        return np.ascontiguousarray(payloads[:, :_COHORT_BYTES]).view("<u2")[:, 0].astype(np.int64)

    def bits_of(self, payloads: Packed) -> Packed:
        """Return the bits of n payloads, shape (n, h), a byte each."""
        return np.unpackbits(payloads[:, _COHORT_BYTES:], axis=1)

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        payloads = cast(Packed, np.concatenate(parts))
        of_cohort = groups * self.cohorts + self.cohorts_of(payloads)
        found, which, reports = np.unique(of_cohort, return_inverse=True, return_counts=True)
        # Without payloads, there is a count nevertheless.
        counts = tally_bits([payloads[:, _COHORT_BYTES:]], which, len(found), self.bits)[: len(found)]
        supports = np.array(counts, dtype=np.int64).reshape(len(found), self.bits)
        cells = np.column_stack([reports, supports])
        first = found % self.cohorts * (self.bits + 1)
        ends = np.searchsorted(found, np.arange(1, k) * self.cohorts)
        return [
            self._cells(of_group, values)
            for of_group, values in zip(np.split(first, ends), np.split(cells, ends), strict=True)
        ]

    def _cells(self, first: Symbols, values: Counts) -> Cells:
        """Return the cells of a statistic, given the first cell of some cohorts and the cells of each."""
        indices = (first[:, np.newaxis] + np.arange(self.bits + 1)).ravel()
        differ = values.ravel() != 0
        return smallest(SparseCells(self.statistic_size, indices[differ], values.ravel()[differ]))

    def positions_supported(self, symbol: int | Symbols, payloads: Payloads) -> Counts:
        rows = cast(Packed, payloads)
        positions = hash_positions(self.cohorts_of(rows), np.array(symbol), self.hashes, self.bits)
        supported: Counts = np.take_along_axis(self.bits_of(rows), positions, axis=1).sum(axis=1, dtype=np.int64)
        return supported

    def string_checks(self, symbol: int | Symbols, payloads: Payloads) -> Iterator[Check]:
        """Test the bits of the string, and each bit in the cohorts where it is not one of them; see the base class."""
        rows = cast(Packed, payloads)
        cohorts = self.cohorts_of(rows)
        yield self.check_of_cohorts(cohorts)
        bits = self.bits_of(rows)
        positions = hash_positions(cohorts, np.array(symbol), self.hashes, self.bits)
        yield binomial(
            "bits of the string",
            lambda function: f"the bit of function {function} is set",
            np.take_along_axis(bits, positions, axis=1).sum(axis=0, dtype=np.int64),
            len(rows),
            np.full(self.hashes, self.theta),
        )
        others = np.ones_like(bits)
        np.put_along_axis(others, positions, 0, axis=1)
        yield binomial(
            "other bits",
            lambda bit: f"bit {bit} is set, where it is none of the string,",
            (bits & others).sum(axis=0, dtype=np.int64),
            others.sum(axis=0, dtype=np.int64),
            np.full(self.bits, self.q),
        )

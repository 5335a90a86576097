"""What mechanisms have in common whose report is one symbol that a cell counts, or bits that are each drawn alone."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.laws.held_laws import binomial
from uldp.mechanisms.protocol.cells import Cells, count_symbols
from uldp.mechanisms.protocol.mechanism import IMPOSSIBLE_TAIL, IMPROBABLE_TAIL, Mechanism, PayloadForm, Randomness
from uldp.mechanisms.protocol.noise import UniformNoise, pack_rows
from uldp.mechanisms.randomizers.packed_bits import describe_bits, row_totals, tally_bits
from uldp.schemas.arrays import Counts, Floats, Mask, Packed, Payloads, Symbols, Values


class AlikeBits(NamedTuple):
    """So many bits of a report, which the device draws alike, each set with this probability."""

    number: int
    probability: float


@dataclass(frozen=True)
class BitTotals:
    """The numbers of set bits of honest reports, whose bits are given for each kind of true symbol."""

    kinds: Sequence[Sequence[AlikeBits]]

    @classmethod
    def of_symbols(cls, cleared: Floats, q: Floats) -> Self:
        """Return those of a bit for each symbol, by how probably it is cleared if true, and set if not."""
        laws, numbers = np.unique(np.stack([cleared, q], axis=1), axis=0, return_counts=True)
        kinds = []
        for true, (own, _) in enumerate(laws.tolist()):
            others = numbers - (np.arange(len(laws)) == true)
            kinds.append([AlikeBits(1, 1 - own), *map(AlikeBits, others.tolist(), laws[:, 1].tolist())])
        return cls(kinds)

    def within(self, tail: float) -> tuple[int, int]:
        """Return the tightest (low, high) beyond which any true symbol has totals with ``tail`` / 2, inside (0, 1)."""
        if not 0 < tail < 1:
            raise ValueError(f"tail must be inside (0, 1), got {tail}")
        lows, highs = [], []
        for bits in self.kinds:
            law = reduce(
                np.convolve,
                [
                    binomial(number, np.arange(number + 1.0), probability)
                    for number, probability in bits
                    if number and probability
                ],
            )
            lows.append(int(np.count_nonzero(np.cumsum(law) <= tail / 2)))
            highs.append(int(np.count_nonzero(np.cumsum(law[::-1]) > tail / 2)) - 1)
        return min(lows), max(highs)

    def judge(self, totals: Counts) -> tuple[Mask, Mask]:
        """Return which numbers of set bits are possible, and which are improbable, shape (n,) each."""
        (fewest, most), (low, high) = self._bounds
        return (totals >= fewest) & (totals <= most), (totals < low) | (totals > high)

    @cached_property
    def _bounds(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return self.within(IMPOSSIBLE_TAIL), self.within(IMPROBABLE_TAIL)


class CountedReports(Mechanism):
    """A mechanism whose payload is the number of the cell that counts it."""

    partitions = True
    counts_payloads = True

    def _of_payloads(self, number: int) -> None:
        """Set the form and the size of the statistic."""
        self.form, self.statistic_size = PayloadForm(symbols=number), number

    def possible(self, payloads: Payloads) -> Mask:
        return payloads < self.statistic_size

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        return count_symbols(np.concatenate(parts), groups, k, self.statistic_size)


class UniformReports(CountedReports, UniformNoise):
    """A mechanism whose noise is uniform over all its payloads, each with a cell of its own."""

    def uniform(self, n: int, randomness: Randomness) -> npt.NDArray[np.uint32]:
        return randomness.integers(0, self.statistic_size, n).astype(np.uint32)


class BitReports(Mechanism):
    """A mechanism whose report is a bit for each cell, most significant bit first, padded with zeros to whole bytes."""

    partitions = False
    # perturb holds up to a float and two bytes for each bit; those for this many bits fit a core's cache.
    bits_at_once = 1 << 17

    def _of_bits(self, number: int) -> None:
        """Set the form and the size of the statistic."""
        self.form, self.statistic_size = PayloadForm(width=-(-number // 8)), number
        self._padding_bits = ~np.packbits(np.ones(number, dtype=np.bool_))[-1]

    @abstractmethod
    def _drawn(self, symbols: Values, randomness: Randomness) -> Mask:
        """Draw the bits of the reports, shape (n, statistic_size); the draws are the same for all symbols."""

    def perturb(self, symbols: Values, randomness: Randomness) -> Packed:
        self.check_symbols(symbols)
        n, bits = len(symbols), self.statistic_size
        return pack_rows(n, bits, lambda block: self._drawn(symbols[block], randomness), self.bits_at_once)

    def padded(self, payloads: Packed) -> Mask:
        """Return which payloads have only zeros behind the bits."""
        return np.asarray(payloads[:, -1] & self._padding_bits == 0)

    def named(self, payloads: Packed) -> Counts:
        """Return how many symbols that are not sensitive each payload has; shape (n,)."""
        if self.sensitive is None or self.sensitive.all():
            return np.zeros(len(payloads), dtype=np.int64)
        return row_totals(payloads & np.packbits(~self.sensitive))

    def describe(self, payload: int | bytes) -> str:
        return describe_bits(cast(bytes, payload), self.statistic_size)

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        return tally_bits(cast(Sequence[Packed], parts), groups, k, self.statistic_size)

"""What mechanisms have in common whose report is one symbol that a cell counts, or a bit for each cell."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.protocol.cells import Cells, count_symbols
from uldp.mechanisms.protocol.mechanism import Mechanism, PayloadForm, Randomness
from uldp.mechanisms.protocol.noise import UniformNoise
from uldp.mechanisms.randomizers.packed_bits import describe_bits, pack_rows, row_totals, tally_bits
from uldp.schemas.arrays import Counts, Mask, Packed, Payloads, Symbols, Values


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
        padded: Mask = payloads[:, -1] & self._padding_bits == 0
        return padded

    def named(self, payloads: Packed) -> Counts:
        """Return how many symbols that are not sensitive each payload has; shape (n,)."""
        if self.sensitive is None or self.sensitive.all():
            return np.zeros(len(payloads), dtype=np.int64)
        return row_totals(payloads & np.packbits(~self.sensitive))

    def describe(self, payload: int | bytes) -> str:
        return describe_bits(cast(bytes, payload), self.statistic_size)

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        return tally_bits(cast(Sequence[Packed], parts), groups, k, self.statistic_size)

"""How many bits an honest report sets, but for an improbable tail: for mechanisms that draw each bit alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple, Self

import numpy as np

from uldp.mechanisms.laws.held_laws import binomial
from uldp.mechanisms.protocol.mechanism import IMPOSSIBLE_TAIL, IMPROBABLE_TAIL
from uldp.schemas.arrays import Counts, Floats, Mask


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
        """Return those of a report with a bit for each symbol.

        ``cleared`` has the probability that the device clears the bit of a true symbol, and ``q`` that it sets the bit
        of another one, shape (|Z|,) each.
        """
        laws, numbers = np.unique(np.stack([cleared, q], axis=1), axis=0, return_counts=True)
        kinds = []
        for true, (own, _) in enumerate(laws.tolist()):
            others = numbers - (np.arange(len(laws)) == true)
            kinds.append([AlikeBits(1, 1 - own), *map(AlikeBits, others.tolist(), laws[:, 1].tolist())])
        return cls(kinds)

    def within(self, tail: float) -> tuple[int, int]:
        """Return the tightest (low, high) with Pr(total < low) <= tail / 2 and Pr(total > high) <= tail / 2.

        The bounds hold for every true symbol, and ``tail`` is inside (0, 1); else ValueError.
        """
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

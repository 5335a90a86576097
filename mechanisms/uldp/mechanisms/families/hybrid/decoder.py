"""The mean of a number, from the reports of both mechanisms; ``spec`` has the source."""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from uldp.mechanisms.decoders.strata_decoder import share_p_value
from uldp.mechanisms.families.block.decoder import BlockDecoder
from uldp.mechanisms.families.duchi.decoder import MeanDecoder
from uldp.mechanisms.laws.estimate import Estimate, weighted
from uldp.mechanisms.numbers.number import NumberDecoder
from uldp.mechanisms.protocol.decoder import require_reports
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag


class HybridDecoder(NumberDecoder):
    """Estimates the mean of a number in [low, high] from the reports of ``Duchi`` and of ``Block``.

    The estimates of the arms are pooled by the inverse of their variances at the numbers where these are equal, which
    are the worst ones: so each report counts once, and the mean has no bias. The numbers of reports are given.

    Args:
        strata: The mechanism: the arm of ``Duchi``, and that of ``Block``.
        bit: The decoder of the first arm.
        block: That of the second.
    """

    def __init__(self, strata: Strata, bit: MeanDecoder, block: BlockDecoder) -> None:
        self.low, self.high = bit.low, bit.high
        self._strata, self._arms = strata, (bit, block)

    def check(self, cells: Counts, n: int) -> None:
        """Raise ValueError if the cells are not those of n reports."""
        if cells.shape != (self._strata.statistic_size,):
            raise ValueError(f"the cells have shape {cells.shape}, but there are {self._strata.statistic_size} cells")
        split = self._strata.split_cells(cells)
        if sum(reports for _, reports in split) != n:
            raise ValueError(f"the numbers of reports of the arms do not sum to n = {n}")
        for arm, (own, reports) in zip(self._arms, split, strict=True):
            arm.check(own, reports)

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        """See the base class."""
        self.check(cells, n)
        require_reports(n)
        split = zip(self._arms, self._strata.split_cells(cells), strict=True)
        arms = [arm.linear(own, reports, repeats) for arm, (own, reports) in split if reports]
        return weighted(arms, np.array([arm.n / n for arm in arms]))

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Return the p-values of the arms with Bonferroni's correction, and that of the numbers of their reports."""
        self.check(cells, n)
        if n <= 0:
            return {}
        split = self._strata.split_cells(cells)
        found = [
            p_value
            for arm, (own, reports) in zip(self._arms, split, strict=True)
            for p_value in arm.p_values(own, reports).values()
        ]
        reports = [of_arm for _, of_arm in split]
        return {
            Flag.IMPROBABLE_COUNTS: min(1.0, len(found) * min(found)),
            Flag.IMPROBABLE_STRATA: share_p_value(reports, n, self._strata.shares.tolist()),
        }

    def forecast(self, n: int) -> Floats:
        """Return the standard error of the mean of n uniform numbers, shape (1,)."""
        pairs = zip(self._arms, self._strata.shares, strict=True)
        return np.array([math.sqrt(sum(share * arm.forecast(n)[0] ** 2 for arm, share in pairs))])

    @property
    def weight(self) -> float:
        """See the base class."""
        return max(arm.weight for arm in self._arms)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield the shares and sizes of the arms, and the error at n reports."""
        bit, block = self._strata.shares
        yield "arms", f"duchi with probability {bit:.6g}, block with {block:.6g}"
        yield next(self._arms[1].describe(n, estimator))
        yield self.heaviest_fact(n)
        yield "errors", f"of the mean at n = {n:,}, uniform values: {self.forecast(n)[0]:.3g}"

"""The mean of a number, from the reports of both mechanisms; ``spec`` has the source."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.decoders.strata_decoder import share_p_value
from uldp.mechanisms.families.block.decoder import BlockDecoder
from uldp.mechanisms.families.duchi.decoder import MeanDecoder
from uldp.mechanisms.numbers.number import NumberDecoder, mean_table
from uldp.mechanisms.pooling.design import Same
from uldp.mechanisms.pooling.pooled_linear import PooledLinear
from uldp.mechanisms.protocol.decoder import require_reports
from uldp.mechanisms.protocol.linear import Linear
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.table import Basis, Table


@dataclass(frozen=True, eq=False)
class HybridLinear(PooledLinear):
    """The mean of both arms, each report of which counts once; see ``Linear``."""

    def interval(self, coverage: float) -> tuple[Floats, Floats]:
        """Return an interval whose distances from the mean are the roots of the summed squares of those of the arms.

        So few reports have the wide intervals of the arms. Source: Zou & Donner, "Construction of confidence limits
        about effect measures" (Statistics in Medicine 27, 2008).
        """
        shares = [int(part.n[0]) / int(self.n[0]) for part in self.parts]
        ends = [part.interval(coverage) for part in self.parts]
        parts = list(zip(self.parts, shares, ends, strict=True))
        below = sum((share * (part.values - low)) ** 2 for part, share, (low, _) in parts)
        above = sum((share * (high - part.values)) ** 2 for part, share, (_, high) in parts)
        return self.values - np.sqrt(below), self.values + np.sqrt(above)


class HybridDecoder(NumberDecoder):
    """Estimates the mean of a number in [low, high] from the reports of ``Duchi`` and of ``Block``.

    The estimates of the arms are pooled by the inverse of their variances at the numbers where these are equal, which
    are the worst ones: so each report counts once, and the mean has no bias. The numbers of reports are given.

    Args:
        strata: The mechanism: the arm of ``Duchi``, and that of ``Block``.
        bit: The decoder of the first arm.
        block: That of the second.
    """

    estimators = ("auto", "empirical")

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

    def linear(self, cells: Counts, n: int) -> HybridLinear:
        """Return the unbiased estimate of the mean.

        Raises:
            ValueError: if ``n`` is not positive, or the cells do not fit.
        """
        self.check(cells, n)
        require_reports(n)
        split = zip(self._arms, self._strata.split_cells(cells), strict=True)
        parts: list[Linear] = [arm.linear(own, reports) for arm, (own, reports) in split if reports]
        return HybridLinear(parts, [np.array(float(part.n[0])) for part in parts], Same(1, len(parts)))

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

    def tables(self, cells: Counts, n: int, estimator: str) -> tuple[Table, ...]:
        """Return the table ``mean``, of one number in the units of the range.

        Raises:
            ValueError: if ``n`` is not positive, the cells do not fit, or the decoder has no such estimator.
        """
        self.require(estimator)
        return (mean_table(self.linear(cells, n), n, Basis.NORMAL),)

"""The mean of a number, from the reports of both mechanisms; ``spec`` has the source."""

from collections.abc import Iterator, Sequence

import numpy as np

from uldp.mechanisms.decoders.strata_decoder import PartsDecoder
from uldp.mechanisms.laws.estimate import Estimate, weighted
from uldp.mechanisms.numbers.number import NumberDecoder
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Counts, Floats


class HybridDecoder(NumberDecoder, PartsDecoder[NumberDecoder]):
    """Estimates the mean of a number in [low, high] from the reports of ``Duchi`` and of ``Block``.

    The estimates of the arms are pooled by the inverse of their variances at the numbers where these are equal, which
    are the worst ones: so each report counts once, and the mean has no bias. The numbers of reports are given.

    Args:
        arms: The decoder of the arm of ``Duchi``, and that of ``Block``.
    """

    def __init__(self, arms: Sequence[NumberDecoder], strata: Strata) -> None:
        super().__init__(("duchi", "block"), arms, strata)
        self.low, self.high = arms[0].low, arms[0].high

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        arms = [arm for arm in self.estimates(cells, n, repeats) if arm]
        return weighted(arms, np.array([arm.n / n for arm in arms]))

    def forecast(self, n: int) -> Floats:
        variances = [share * arm.forecast(n) ** 2 for arm, share in zip(self.decoders, self.shares, strict=True)]
        return np.asarray(np.sqrt(np.sum(variances, axis=0)))

    @property
    def weight(self) -> float:
        return max(arm.weight for arm in self.decoders)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        bit, block = self.shares
        yield "arms", f"duchi with probability {bit:.6g}, block with {block:.6g}"
        yield next(self.decoders[1].describe(n, estimator))
        yield from super().describe(n, estimator)

"""The mean of a number, from the sums of ``Geometric``."""

import math
from collections.abc import Iterator

import numpy as np

from uldp.mechanisms.families.geometric.randomizer import Geometric
from uldp.mechanisms.numbers.number import NumberDecoder, check_range, mean_table, output_moments
from uldp.mechanisms.protocol.decoder import require_output_counts, require_reports
from uldp.mechanisms.protocol.linear import LowRankLinear, mean_of
from uldp.mechanisms.protocol.mechanism import IMPOSSIBLE_TAIL
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.table import Basis, Table


class GeometricDecoder(NumberDecoder):
    """Estimates the mean of a number in [low, high] by the first two moments of the payloads.

    The noise is symmetric, so the mean of the payloads is that of the symbols. Sums that are moved to an end move it by
    less than 10^-4 steps for each epsilon of a spec, and by less than 10^-8 for those from .1 to 10. The variance is
    that of the payloads, but at least that of the noise. Estimates and intervals are not cut to [low, high]. Numbers
    are drawn i.i.d.
    """

    estimators = ("auto", "empirical")

    def __init__(self, mechanism: Geometric, low: float, high: float) -> None:
        """Build the decoder.

        Args:
            mechanism: The mechanism of the reports.
            low: The number of the symbol 0.
            high: The number of the symbol g.

        Raises:
            ValueError: if the range is empty or not finite.
        """
        check_range(low, high)
        self.mechanism, self.low, self.high = mechanism, low, high

    @property
    def _step(self) -> float:
        return (self.high - self.low) / self.mechanism.grid

    def check(self, cells: Counts, n: int) -> None:
        """Raise ValueError if the cells are not the payloads of n reports."""
        require_output_counts(cells, n, self.mechanism.statistic_size)

    def linear(self, cells: Counts, n: int) -> LowRankLinear:
        """Return the estimate of the mean.

        Raises:
            ValueError: if ``n`` is not positive, or the cells do not fit.
        """
        self.check(cells, n)
        require_reports(n)
        mean, sample = output_moments(cells, n)
        variance = max(sample, self.mechanism.noise_variance) / n
        return mean_of(self.low + self._step * (mean - self.mechanism.margin), self._step**2 * variance, n)

    def forecast(self, n: int) -> Floats:
        """Return the standard error of the mean of n uniform numbers, shape (1,)."""
        grid = self.mechanism.grid
        # A uniform number of [0, g], and its rounding to a step at random, which adds 1/6 on average.
        return np.array([self._step * math.sqrt((grid**2 / 12 + 1 / 6 + self.mechanism.noise_variance) / n)])

    @property
    def weight(self) -> float:
        """See the base class."""
        least, largest = self.mechanism.ends(IMPOSSIBLE_TAIL)
        return (largest - least) / self.mechanism.grid

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield the noise, and the error at n reports."""
        noise = self._step * math.sqrt(self.mechanism.noise_variance)
        yield "noise", f"standard deviation {noise:.3g}, in steps of {self._step:.3g}"
        yield self.heaviest_fact(n)
        yield "errors", f"of the mean at n = {n:,}, uniform values: {self.forecast(n)[0]:.3g}"

    def tables(self, cells: Counts, n: int, estimator: str) -> tuple[Table, ...]:
        """Return the table ``mean``, of one number in the units of the range.

        Raises:
            ValueError: if ``n`` is not positive, the cells do not fit, or the decoder has no such estimator.
        """
        self.require(estimator)
        return (mean_table(self.linear(cells, n), n, Basis.NORMAL),)

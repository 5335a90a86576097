"""The mean of one number, from the zeros and ones of ``Duchi``; the sources are those of the mechanism."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.families.duchi.randomizer import flip_probability
from uldp.mechanisms.kernels.intervals import clopper_pearson, lower_tail
from uldp.mechanisms.numbers.number import NumberDecoder, check_range, mean_table
from uldp.mechanisms.protocol.decoder import require_output_counts, require_reports
from uldp.mechanisms.protocol.linear import LowRankLinear
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.table import Basis, Table


@dataclass(frozen=True)
class MeanDecoder(NumberDecoder):
    """Estimates the mean of a number in [low, high] from the zeros and ones of ``Duchi``.

    Ones come with probability m = f + (1 - 2f) u, where u is the place of the mean between low and high. So m-hat, the
    share of ones, gives the mean without bias (65), and an exact interval for m gives one for the mean:

        mean-hat = (low + high)/2 + (m-hat - 1/2) (high - low)/(1 - 2f)      Var = m (1 - m)/n ((high - low)/(1 - 2f))^2

    On [-1, 1] the variance is ((E+1)/(E-1))^2 - mean^2 for each report. It holds for users' numbers that are drawn
    i.i.d. Estimates and intervals are not cut to [low, high].

    Attributes:
        low: Lower end of the range.
        high: Upper end.
        epsilon: The budget of one report in nats.
    """

    low: float
    high: float
    epsilon: float

    estimators = ("auto", "empirical")

    def __post_init__(self) -> None:
        check_range(self.low, self.high)
        flip_probability(self.epsilon)

    @property
    def slope(self) -> float:
        """The distance that the mean moves while the share of ones moves from 0 to 1."""
        # tanh(epsilon / 2) is 1 - 2f, without the cancellation at small epsilon.
        return (self.high - self.low) / math.tanh(self.epsilon / 2)

    def mean_at(self, m: Floats) -> Floats:
        """Return the mean at which ones have the probability ``m``, of any shape."""
        return self.low + (self.high - self.low) / 2 + (m - 0.5) * self.slope

    def check(self, cells: Counts, n: int) -> None:
        """Raise ValueError if the cells are not n zeros and ones."""
        require_output_counts(cells, n, 2)

    def linear(self, cells: Counts, n: int) -> LowRankLinear:
        """Return the unbiased estimate of the mean.

        Raises:
            ValueError: if ``n`` is not positive, or the cells do not fit.
        """
        self.check(cells, n)
        require_reports(n)
        ones = int(cells[1])
        # Never 0, because the share of either bit is taken as f or more.
        rarer = max(int(cells.min()) / n, flip_probability(self.epsilon))

        def interval(coverage: float) -> tuple[Floats, Floats]:
            low, high = clopper_pearson([ones], n, coverage)
            return self.mean_at(low), self.mean_at(high)

        variance = np.array([rarer * (1 - rarer) / n * self.slope**2])
        return LowRankLinear(self.mean_at(np.array([ones / n])), variance, np.array([n]), interval)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Return how probable it is that so few zeros, or so few ones, are among n honest reports.

        The mechanism's noise alone gives a zero, and a one, with probability f in each report, whatever its number. So
        under every distribution, and also for given numbers, the number of either is at least a binomial one of n and f
        (stochastically). The bound holds at every n, with a factor 2 for its two sides. The test cannot detect forged
        reports that leave the share of ones between f and 1 - f.
        """
        self.check(cells, n)
        if n <= 0:
            return {}
        return {Flag.IMPROBABLE_COUNTS: min(1.0, 2 * lower_tail(int(cells.min()), n, flip_probability(self.epsilon)))}

    def forecast(self, n: int) -> Floats:
        """Return the standard error of the mean of n uniform numbers, shape (1,): half of them send 1."""
        return np.array([self.slope / 2 / math.sqrt(n)])

    @property
    def weight(self) -> float:
        """See the base class."""
        return 1 / (1 - 2 * flip_probability(self.epsilon))

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield the probabilities of a one, and the error at n reports."""
        f = flip_probability(self.epsilon)
        yield "ones", f"probability {f:.6g} at {self.low:g}, rising to {1 - f:.6g} at {self.high:g}"
        yield self.heaviest_fact(n)
        yield "errors", f"of the mean at n = {n:,}, uniform values: {self.forecast(n)[0]:.3g}"

    def tables(self, cells: Counts, n: int, estimator: str) -> tuple[Table, ...]:
        """Return the table ``mean``, of one number in the units of the range.

        Raises:
            ValueError: if ``n`` is not positive, the cells do not fit, or the decoder has no such estimator.
        """
        self.require(estimator)
        return (mean_table(self.linear(cells, n), n, Basis.EXACT),)

"""The decoder of SHE: sums of noisy histograms are the shares, up to the noise."""

import math
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.decoders.share_tables import share_tables
from uldp.mechanisms.estimators.by_name import project_to_simplex
from uldp.mechanisms.families.summation.randomizer import LARGEST_ENTRY, noise_variance
from uldp.mechanisms.inference.forecast import equal_shares
from uldp.mechanisms.protocol.decoder import SharesDecoder, require_reports
from uldp.mechanisms.protocol.linear import LowRankLinear, normal
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.table import Basis, Table


class SummationDecoder(SharesDecoder):
    """Reads the sums of ``Summation``.

    All symbols are about equally noisy, so the nearest distribution (``project_to_simplex``) is what ``auto`` gives.

    Args:
        pum: The values.
        epsilon: The budget of one report in nats.
        simultaneous: Whether all intervals of a table are to cover the truth at once (Bonferroni), or each alone.
    """

    estimators = ("auto", "empirical", "norm-sub")

    def __init__(self, pum: Pum, epsilon: float, *, simultaneous: bool = False) -> None:
        self._pum, self._epsilon, self._simultaneous = pum, epsilon, simultaneous
        self._noise = noise_variance(epsilon)

    def check(self, cells: Counts, n: int) -> None:
        """Raise ValueError if no n reports give these sums."""
        if cells.shape != (self._pum.size,):
            raise ValueError(f"the cells have shape {cells.shape}, but there are {self._pum.size} symbols")
        if np.abs(cells).max() > n * LARGEST_ENTRY:
            raise ValueError(f"a sum is beyond that of n = {n} entries of {LARGEST_ENTRY:,}")

    def linear(self, cells: Counts, n: int) -> LowRankLinear:
        """Return the unbiased estimate over Z.

        Raises:
            ValueError: if ``n`` is not positive, or the cells do not fit.
        """
        require_reports(n)
        self.check(cells, n)
        return self._linear(cells, n)

    def _linear(self, sums: Counts, n: int) -> LowRankLinear:
        """Return the estimate r-hat = S/n of sums S.

        An entry of a report is a 0 or 1 and noise of the variance v, so n Cov[r-hat] = diag(v + r) - r r^T, evaluated
        at r-hat cut to [0, 1]. Intervals are normal: the sum of n noises is near normal for few reports already.
        """
        values = sums / n
        r = np.clip(values, 0.0, 1.0)
        variance = (self._noise + r * (1 - r)) / n
        u = r[np.newaxis] / math.sqrt(n)
        return LowRankLinear(values, variance, np.full(len(sums), n), normal(values, variance), u)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Test whether any distribution explains the sums: none is below 0 or above n, and together they are n.

        The tests are Chernoff's for sums of n noises with the moment generating function (1-a)^2 / ((1-a e^t)
        (1-a e^-t)), with Bonferroni's correction, so they hold at every n.
        """
        if not n:
            return {}
        k = len(cells)
        far = max(0.0, -float(cells.min()), float(cells.max()) - n)
        together = abs(float(cells.sum()) - n)
        p = 2 * min(2 * k * _tail(far, n, self._noise), 2 * _tail(together, n * k, self._noise))
        return {Flag.IMPROBABLE_COUNTS: min(1.0, p)}

    def forecast(self, n: int) -> Floats:
        """Return the standard errors over Z at n reports of uniform symbols."""
        return self.stderr(equal_shares(self._pum.size), n)

    def simulate(self, r: Floats, n: int, estimator: str, rng: Generator) -> Floats:
        """See the base class. The sum of n geometric noises is the difference of two negative binomial numbers."""
        up, down = rng.negative_binomial(n, -math.expm1(-self._epsilon / 2), (2, len(r)))
        return self._shares(self._linear(rng.multinomial(n, r) + up - down, n), estimator) - r

    def stderr(self, r: Floats, n: int) -> Floats:
        """See the base class."""
        return np.sqrt((self._noise + r * (1 - r)) / n)

    @property
    def weight(self) -> float:
        """See the base class: a forged report has the largest entry."""
        return float(LARGEST_ENTRY)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield the noise of an entry, and the errors at n reports."""
        yield "noise", f"two-sided geometric, standard deviation {math.sqrt(self._noise):.4g} in each entry of a report"
        worst = self.forecast(n).max()
        yield "errors", f"standard error of the unbiased estimate at n = {n:,}: {worst:.3g} a symbol"

    def tables(self, cells: Counts, n: int, estimator: str) -> tuple[Table, ...]:
        """Return the table of shares.

        Raises:
            ValueError: if ``n`` is not positive, the cells do not fit, or the decoder has no such estimator.
        """
        self.require(estimator)
        linear = self.linear(cells, n)
        return share_tables(
            self._pum, self._shares(linear, estimator), linear, basis=Basis.NORMAL, simultaneous=self._simultaneous
        )

    def _shares(self, linear: LowRankLinear, estimator: str) -> Floats:
        return linear.values if estimator == "empirical" else project_to_simplex(linear.values)


def _tail(distance: float, n: int, variance: float) -> float:
    """Return Chernoff's bound of the probability that n two-sided geometric noises sum to a distance or more.

    With v = 2a/(1-a)^2, the generating function of a noise is 1/(1 - v (cosh t - 1)). The bound is the least at the t
    where the mean of the tilted noise, v sinh t/(1 - v (cosh t - 1)), is the distance over n.
    """
    mean = distance / n
    # With c = cosh t and b = mean (1/v + 1), the equation is sinh t = b - mean c. Its square has this root:
    b = mean * (1 / variance + 1)
    c = max((1 + b * b) / (math.sqrt(1 + b * b - mean * mean) + mean * b), 1.0)
    t = math.acosh(c)
    return math.exp(min(n * (-t * mean - math.log1p(-variance * (c - 1))), 0.0))

"""The mean of one number, from one bit of each device: the mechanism of Duchi et al., also known as 1BitMean.

Sources: Duchi, Jordan & Wainwright, "Minimax Optimal Procedures for Locally Private Estimation" (JASA 113, 2018), for
one dimension; Ding, Kulkarni & Yekhanin, "Collecting Telemetry Data Privately" (NeurIPS 2017), section 2; equations
(59), (64) and (65) of Wang, Zhang, Feng & Yang, "A Comprehensive Survey on Local Differential Privacy toward Data
Statistics and Analysis" (Sensors 20, 2020).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.cells import Cells, count_symbols
from uldp.mechanisms.decoder import Decoder, require_reports
from uldp.mechanisms.inference.intervals import clopper_pearson, lower_tail
from uldp.mechanisms.mechanism import Guarantee, PayloadForm, Privacy, Randomness, UniformNoise
from uldp.mechanisms.numbers.number import check_range, mean_table
from uldp.schemas.arrays import Counts, Floats, Mask, Payloads, Symbols, Values
from uldp.schemas.flags import Flag
from uldp.schemas.table import Basis, Table

#: The steps of the grid of ``Duchi``. Rounding to it costs no accuracy: Pr(1 | i) is linear in i, so a report has the
#: same law as without a grid.
GRID = 1 << 16


class Duchi(UniformNoise):
    """One bit about a number, over the symbols 0, ..., g of a ``NumberEncoding`` with g steps, by default ``GRID``.

    With E = e^epsilon, the payload is 1 with the probability (64)

        Pr(1 | i) = 1/(E+1) + (E-1)/(E+1) i/g.

    The device draws a bit with Pr(1) = i/g, exactly, as an integer, and flips it with probability f = 1/(E+1), the
    noise, which ``SystemRandomness`` makes likelier by less than 2^-53. Pr(1 | i) is then from f to 1 - f.

    Guarantee: one report is epsilon-LDP, for every user and the whole number. The probabilities of either report under
    any two numbers, within the range or not, differ by at most a factor E, as those under ``low`` and ``high`` do.

    Not protected: that a device reports, and when. Several reports of one user spend epsilon each. The range is public;
    nobody may choose it from the numbers themselves.

    Attributes:
        flip_probability: f, inside (0, 1/2).
        grid: g. The number that a device rounds to this grid at random has the same law of reports with every g.
    """

    form = PayloadForm(symbols=2)
    statistic_size = 2
    partitions = True
    flip_probability: float

    def __init__(self, epsilon: float, grid: int = GRID) -> None:
        """Build the mechanism.

        Args:
            epsilon: Budget of one report in nats.
            grid: g, positive.

        Raises:
            ValueError: if epsilon is not positive and finite.
        """
        self.grid, self.size = grid, grid + 1
        self.flip_probability = flip_probability(epsilon)
        self.guarantee = Guarantee(Privacy.LDP, epsilon)

    def perturb(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
        """Perturb true symbols of shape (n,) into bits of shape (n,). Draws n integers and n floats.

        Raises:
            ValueError: if a symbol is outside of Z.
        """
        self.check_symbols(symbols)
        bits = randomness.integers(0, self.grid, len(symbols)) < symbols
        return (bits ^ (randomness.random(len(symbols)) < self.flip_probability)).astype(np.uint32)

    @property
    def uniform_probability(self) -> float:
        """The probability of a uniform bit: 2f, because half of the uniform bits are those of the number."""
        return 2 * self.flip_probability

    def uniform(self, n: int, randomness: Randomness) -> npt.NDArray[np.uint32]:
        """Draw n uniform bits."""
        return randomness.integers(0, 2, n).astype(np.uint32)

    def possible(self, payloads: Payloads) -> Mask:
        """Return which payloads are 0 or 1."""
        return payloads < 2

    def law(self, r: Floats) -> Floats:
        """Return the probabilities of 0 and 1, shape (2,), by (64)."""
        one = self.flip_probability + (1 - 2 * self.flip_probability) * float(r @ np.arange(self.size)) / self.grid
        return np.array([1 - one, one])

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        """Count zeros and ones, in all groups at once."""
        return count_symbols(np.concatenate(parts), groups, k, 2)


@dataclass(frozen=True)
class MeanDecoder(Decoder):
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
        if cells.shape != (2,):
            raise ValueError(f"cells have shape {cells.shape}, but a mean needs 2 cells")
        if cells.min() < 0 or cells.sum() != n:
            raise ValueError(f"the cells {cells.tolist()} are not the zeros and ones of {n} reports")

    def linear(self, cells: Counts, n: int) -> "MeanLinear":
        """Return the unbiased estimate of the mean.

        Raises:
            ValueError: if ``n`` is not positive, or the cells do not fit.
        """
        self.check(cells, n)
        require_reports(n)
        return MeanLinear(self, int(cells[1]), n)

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

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield the probabilities of a one, and the error at n reports."""
        f = flip_probability(self.epsilon)
        yield "ones", f"probability {f:.6g} at {self.low:g}, rising to {1 - f:.6g} at {self.high:g}"
        yield "errors", f"of the mean at n = {n:,}, uniform values: {self.forecast(n)[0]:.3g}"

    def tables(self, cells: Counts, n: int, estimator: str) -> tuple[Table, ...]:
        """Return the table ``mean``, of one number in the units of the range.

        Raises:
            ValueError: if ``n`` is not positive, the cells do not fit, or the decoder has no such estimator.
        """
        self.require(estimator)
        return (mean_table(self.linear(cells, n), n, Basis.EXACT),)


@dataclass(frozen=True)
class MeanLinear:
    """The unbiased estimate of one mean; see ``Linear``.

    Attributes:
        decoder: The range and epsilon.
        ones: The number of reports that are 1.
        reports: The number of all reports, positive.
    """

    decoder: MeanDecoder
    ones: int
    reports: int

    @property
    def values(self) -> Floats:
        """The mean, shape (1,)."""
        return self.decoder.mean_at(np.array([self.ones / self.reports]))

    @property
    def variance(self) -> Floats:
        """The variance of the mean, shape (1,); never 0, because the share of either bit is taken as f or more."""
        rarer = max(min(self.ones, self.reports - self.ones) / self.reports, flip_probability(self.decoder.epsilon))
        return np.array([rarer * (1 - rarer) / self.reports * self.decoder.slope**2])

    @property
    def n(self) -> Counts:
        """The number of reports, shape (1,)."""
        return np.array([self.reports], dtype=np.int64)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return ends of shape (1,): the Clopper-Pearson interval for m, through the line from m to the mean."""
        low, high = clopper_pearson([self.ones], self.reports, level)
        return self.decoder.mean_at(low), self.decoder.mean_at(high)

    def times(self, w: Floats) -> Floats:
        """Return Cov @ w for w of shape (1, j)."""
        return self.variance[:, None] * w


def flip_probability(epsilon: float) -> float:
    """Return f = 1/(E+1), the probability of the noise of one bit.

    Raises:
        ValueError: if epsilon is not positive and finite.
    """
    # 1/E cannot overflow.
    inverse = math.exp(-epsilon) if epsilon > 0 else math.nan
    flip = inverse / (1 + inverse)
    if not 0 < flip < 0.5:
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}")
    return flip

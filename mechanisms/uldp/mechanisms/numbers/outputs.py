"""Decoders of one number of a range: the mean, from counts of outputs, each of which counts as a number with noise."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.decoders.table_of import table_of
from uldp.mechanisms.laws.estimate import Estimate, part_of
from uldp.mechanisms.laws.law import Cumulants, Law, largest_step
from uldp.mechanisms.protocol.decoder import Decoder, Pooling, require_output_counts, require_reports, two_digits
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.table import Table, TableName


class NumberDecoder(Decoder):
    """A decoder of one number in [low, high], whose ``linear`` is the mean."""

    low: float
    high: float
    estimators: tuple[str, ...] = ("auto", "empirical")
    pooling = Pooling.NUMBERS

    @property
    @abstractmethod
    def weight(self) -> float:
        """The distance of the least and the largest number that a possible report counts as, over that of the range."""

    def heaviest(self, table: Table) -> float | None:
        return self.weight * (self.high - self.low) if table.name is TableName.MEAN else None

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        percents = f"{100 * self.weight / n:.3g} % of the range, and 1 % of them by up to {self.weight:.3g} %"
        yield "heaviest", f"one forged report of {n:,} moves the mean by up to {percents}"
        yield "errors", f"of the mean at n = {n:,}, uniform values: {self.forecast(n)[0]:.3g}"

    def warnings(self, n: int, users: int, estimator: str) -> Iterator[str]:
        error, width = float(self.forecast(n)[0]), self.high - self.low
        if error > width / 10:
            yield (
                f"the expected error of the mean is {error:.3g} at n = {users:,}, in a range of {width:.3g}: take "
                f"{two_digits(users * (10 * error / width) ** 2):,} users or more in a window, or a larger epsilon"
            )

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        self.require(estimator)
        mean = self.linear(cells, n, repeats)
        return (table_of(TableName.MEAN, mean.values, mean, bounds=(-np.inf, np.inf)),)


class NumberLaw(Law):
    """The law of the number y that a report counts as; theta is the first three moments mu of users' numbers t.

    Both are about the middle of the range, so that t is between -h and h. A report has the mean t, and

        Var[y | t] = v + b (t^2 - h^2)        E[(y - t)^3 | t] = c t + d t^3

    so that over all users, whose numbers are drawn i.i.d.,

        kappa_2 = v + b (mu_2 - h^2) + mu_2 - mu_1^2
        kappa_3 = c mu_1 + (1 + 3b + d) mu_3 - 3 (1 + b) mu_1 mu_2 + 2 mu_1^3

    Args:
        half: h, in units of the number.
        noise: v, the variance of the noise at both ends.
        bend: b.
        third: c and d.
        ends: The two numbers, not about the middle, that reports count as, if there are no others.
        response: See ``Law``.
    """

    size = 1

    def __init__(
        self,
        half: float,
        noise: float,
        bend: float = 0.0,
        third: tuple[float, float] = (0.0, 0.0),
        *,
        ends: tuple[float, float] = (np.nan, np.nan),
        response: "NumberLaw | None" = None,
    ) -> None:
        self._half, self._noise, self._bend, self._third = half, noise, bend, third
        self._ends, self.response = ends, response

    def each(self, theta: Floats) -> Cumulants:
        """See the base class. The largest step is that of a user at an end of the range."""
        one, two, three = theta
        (c, d), ends = self._third, np.array([-self._half, self._half])
        variance = self._noise + self._bend * (two - self._half**2) + two - one**2
        third = c * one + self._cubes * three - 3 * (1 + self._bend) * one * two + 2 * one**3
        off = ends - one
        step = largest_step(self._noise + off**2, c * ends + d * ends**3 + (3 * self._noise + off**2) * off)
        return Cumulants(*(np.array([each]) for each in (variance, third, step, *self._ends)))

    def one(self, w: Floats, theta: Floats) -> Cumulants:
        return self.each(theta).scaled(w[0])

    def times(self, w: Floats, theta: Floats) -> Floats:
        return self.each(theta).variance * w

    @property
    def _cubes(self) -> float:
        return 1 + 3 * self._bend + self._third[1]

    def moments(self, mean: float, variance: float, third: float) -> Floats:
        """Return the moments of numbers that give reports these cumulants, or the nearest that some numbers have."""
        half, spread = self._half, 1 + self._bend
        one = min(max(mean, -half), half)
        if spread == 0:  # whatever the numbers, reports are those of the ends of the range
            return np.array([one, half**2, half**2 * one])
        two = (variance - self._noise + self._bend * half**2 + one**2) / spread
        two = min(max(two, one**2), half**2)
        three = (third - self._third[0] * one + 3 * spread * one * two - 2 * one**3) / self._cubes
        least, most = _least_cube(one, two, half), -_least_cube(-one, two, half)
        return np.array([one, two, min(max(three, least), most)])


def _least_cube(one: float, two: float, half: float) -> float:
    """Return the least mu_3 of numbers from -h with these moments: of s = t + h, E[s^3] E[s] >= E[s^2]^2."""
    first, second = one + half, two + 2 * half * one + half**2
    cube = second**2 / first if first > 0 else 0.0
    return cube - half * (3 * two + 3 * half * one + half**2)


class OutputsDecoder(NumberDecoder):
    """Estimates the mean of a number in [low, high] by that of the numbers that reports count as.

    Errors are those of numbers with the moments that the reports suggest, within the range. So few reports never seem
    to have less than the noise. Estimates and intervals are not cut to [low, high].

    Args:
        numbers: Shape (outputs,): the number that each output counts as.
        law: The law of these numbers.
        step: The distance of the points of a grid to which devices round at random, if the law is that of these points.
        possible: Those of the outputs that are possible.
        fact: What ``describe`` says of the mechanism.
    """

    def __init__(
        self,
        low: float,
        high: float,
        numbers: Floats,
        law: NumberLaw,
        *,
        step: float = 0.0,
        possible: slice = slice(None),
        fact: tuple[str, str] | None = None,
    ) -> None:
        self.low, self.high, self.numbers, self.law = low, high, numbers, law
        self._step, self._possible, self._fact = step, possible, fact

    def check(self, cells: Counts, n: int) -> None:
        require_output_counts(cells, n, len(self.numbers))

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        self.check(cells, n)
        require_reports(n)
        middle, shares = self.low + (self.high - self.low) / 2, cells / n
        mean = float(shares @ self.numbers)
        centred = self.numbers - mean
        variance = float(shares @ centred**2) * n / max(n - 1, 1)  # of the sample, without bias
        theta = self.law.moments(mean - middle, variance, float(shares @ centred**3))
        return Estimate(np.array([mean]), np.array([n]), (part_of(self.law, theta, n),)).repeated(repeats)

    def forecast(self, n: int) -> Floats:
        # To round a number to a grid at random adds a sixth of a squared step, on average.
        square = (self.high - self.low) ** 2 / 12 + self._step**2 / 6
        return np.sqrt(self.law.each(np.array([0.0, square, 0.0])).variance / n)

    @property
    def weight(self) -> float:
        return float(np.ptp(self.numbers[self._possible])) / (self.high - self.low)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        if self._fact is not None:
            yield self._fact
        yield from super().describe(n, estimator)


@dataclass(frozen=True, eq=False)
class Shape:
    """A distribution of numbers."""

    positions: Floats  # shape (m,): where the numbers are, from 0 at the lower end of the range to 1 at the upper one
    shares: Floats  # shape (m,): the share of users who hold each

    def of_bins(self, bins: int) -> Floats:
        """Return the share of users in each bin."""
        at = np.minimum((self.positions * bins).astype(np.int64), bins - 1)
        return np.bincount(at, self.shares, minlength=bins).astype(np.float64)

    def of_points(self, bins: int) -> Floats:
        """Return the expected share of users at each edge of bins, to which a device rounds at random."""
        below = np.minimum((self.positions * bins).astype(np.int64), bins - 1)
        over = self.positions * bins - below
        points = np.bincount(below, self.shares * (1 - over), minlength=bins + 1)
        return np.asarray(points + np.bincount(below + 1, self.shares * over, minlength=bins + 1))


@runtime_checkable
class SimulatesBins(Protocol):
    """A decoder of shares of bins that draws windows without reports."""

    bins_estimator: str  # the estimator of these shares with the least errors
    smooths: bool  # whether it has a bias where some numbers are much more frequent than their neighbours

    def simulate_bins(self, shape: Shape, n: int, rng: Generator) -> Floats:
        """Return the errors of the published shares of bins in a window of n reports, shape (bins,)."""

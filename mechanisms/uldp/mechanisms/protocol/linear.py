"""Unbiased estimates that are linear in the cells: their interface, and those of a simple covariance."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Protocol

import numpy as np

from uldp.schemas.arrays import Counts, Floats

#: Gives lower and upper ends, each of shape (m,), that cover each value alone with the probability asked for.
Interval = Callable[[float], tuple[Floats, Floats]]


class Linear(Protocol):
    """An unbiased estimate that is linear in the cells, with its errors; sums and comparisons need no more.

    Attributes:
        values: Shape (m,): the estimates, over Z or of the numbers asked for.
        variance: Shape (m,): their variances.
        n: Shape (m,): the number of reports behind each; strata have numbers of their own.
    """

    @property
    def values(self) -> Floats:
        """See the class."""

    @property
    def variance(self) -> Floats:
        """See the class."""

    @property
    def n(self) -> Counts:
        """See the class."""

    def interval(self, coverage: float) -> tuple[Floats, Floats]:
        """Return lower and upper ends, each of shape (m,): each interval covers with probability ``coverage``."""

    def times(self, w: Floats) -> Floats:
        """Return Cov @ w for w of shape (m, j), without the matrix of covariances."""


@dataclass(frozen=True, eq=False)
class LowRankLinear:
    """An estimate whose covariance is diag(s) - U^T U in each block of entries, and 0 between two; see ``Linear``.

    It is that of means of reports that are drawn i.i.d., each with independent noise: of one mean U is empty, and of
    shares r of n reports it is r^T/sqrt(n). With the variances, s follows from U.

    Attributes:
        values: Shape (m,): the estimates.
        variance: Shape (m,): their variances.
        n: Shape (m,): the number of reports behind each.
        interval: See ``Linear``; ``normal`` is that of most.
        u: Shape (k, m): U.
        starts: The first entry of each block.
    """

    values: Floats
    variance: Floats
    n: Counts
    interval: Interval
    u: Floats = field(default_factory=lambda: np.zeros((0, 1)))
    starts: Counts = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    def times(self, w: Floats) -> Floats:
        """Return Cov @ w."""
        product: Floats = (self.variance + (self.u**2).sum(axis=0))[:, np.newaxis] * w
        widths = np.diff(self.starts, append=len(w))
        for row in self.u[:, :, np.newaxis]:
            product -= row * np.repeat(np.add.reduceat(row * w, self.starts), widths, axis=0)
        return product


@dataclass(frozen=True, eq=False)
class Entries:
    """Neighbouring entries of an estimate, such as one table of several; see ``Linear``.

    Attributes:
        whole: The estimate.
        place: Where the entries are.
    """

    whole: Linear
    place: slice

    @property
    def values(self) -> Floats:
        """Shape (m,): the estimates."""
        return self.whole.values[self.place]

    @property
    def variance(self) -> Floats:
        """Shape (m,): their variances."""
        return self.whole.variance[self.place]

    @property
    def n(self) -> Counts:
        """Shape (m,): the number of reports behind each."""
        return self.whole.n[self.place]

    def interval(self, coverage: float) -> tuple[Floats, Floats]:
        """Return the intervals of these entries."""
        low, high = self.whole.interval(coverage)
        return low[self.place], high[self.place]

    def times(self, w: Floats) -> Floats:
        """Return Cov @ w."""
        wide = np.zeros((len(self.whole.values), w.shape[1]))
        wide[self.place] = w
        return self.whole.times(wide)[self.place]


def mean_of(mean: float, variance: float, n: int) -> LowRankLinear:
    """Return the estimate of one mean of n reports, with its normal interval."""
    values, variances = np.array([mean]), np.array([variance])
    return LowRankLinear(values, variances, np.array([n]), normal(values, variances))


def normal(values: Floats, variance: Floats) -> Interval:
    """Return the normal intervals of estimates with these variances."""

    def interval(coverage: float) -> tuple[Floats, Floats]:
        half = NormalDist().inv_cdf((1 + coverage) / 2) * np.sqrt(variance)
        return values - half, values + half

    return interval

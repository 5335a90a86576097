"""A local level: numbers that change by a random walk, each seen with a known error; its filter and its smoother.

    y_t = x_t + e_t, Var e_t = v_t        x_t = x_{t-1} + w_t, Var w_t = q (time from t-1 to t)

The filter (Kalman 1960) gives the mean and variance of x_t given y up to t, the smoother (Rauch, Tung & Striebel 1965)
those given all y. If an observation is farther from its forecast than a gate allows, the level has jumped there: the
filter begins anew with it, and the smoother carries nothing across. Each number is on its own; arrays have a row for
each time and a column for each number.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from uldp.schemas.arrays import Floats, Mask

#: Beyond so many standard errors a forecast is wrong: a false alarm in 16,000 observations of a number.
GATE = 4.0
#: The probability of a jump, in the likelihood of one.
_JUMP = 1e-4


@dataclass(frozen=True, eq=False)
class LocalLevel:
    """Numbers over time with a given variance of their steps; see the module."""

    observed: Floats  # shape (T, m): y
    variance: Floats  # shape (T, m): v, more than 0
    step: Floats  # shape (m,): q
    elapsed: Floats  # shape (T,): the time since the row before, 1 for neighbours; the first is not read
    gate: float = GATE  # so many standard errors an observation may be from its forecast

    @cached_property
    def _passes(self) -> tuple[Floats, Floats, Mask, Floats]:
        """Filtered means and variances, jumps, and log-likelihoods of the observations, each of shape (T, m)."""
        means, variances, likelihoods = (np.empty_like(self.observed) for _ in range(3))
        jumps = np.zeros(self.observed.shape, dtype=np.bool_)
        means[0], variances[0], likelihoods[0] = self.observed[0], self.variance[0], 0.0
        for t in range(1, len(self.observed)):
            y, v = self.observed[t], self.variance[t]
            before = variances[t - 1] + self.step * self.elapsed[t]
            error, total = y - means[t - 1], before + v
            gain, square = before / total, error**2 / total
            jumped = square > self.gate**2
            jumps[t] = jumped
            means[t] = np.where(jumped, y, means[t - 1] + gain * error)
            variances[t] = np.where(jumped, v, (1 - gain) * before)
            # Of a jump, the step is as large as it was: a wide density at its most.
            widened = np.where(jumped, np.log(_JUMP) - (np.log(error**2 + total) + 1) / 2, 0.0)
            likelihoods[t] = np.where(jumped, widened, -(np.log(total) + square) / 2)
        return means, variances, jumps, likelihoods

    @property
    def filtered(self) -> tuple[Floats, Floats]:
        """Means and variances given the observations up to each time, each of shape (T, m)."""
        return self._passes[:2]

    @property
    def jumps(self) -> Mask:
        """Shape (T, m): where the level has jumped."""
        return self._passes[2]

    @property
    def likelihoods(self) -> Floats:
        """Shape (T, m): the log-likelihood of each observation given those before it, but for a constant."""
        return self._passes[3]

    @cached_property
    def smoothed(self) -> tuple[Floats, Floats]:
        """Means and variances given all observations, each of shape (T, m)."""
        means, variances = (each.copy() for each in self.filtered)
        for t in range(len(means) - 2, -1, -1):
            before = variances[t] + self.step * self.elapsed[t + 1]
            share = np.where(self.jumps[t + 1], 0.0, variances[t] / before)
            means[t] += share * (means[t + 1] - means[t])
            variances[t] += share**2 * (variances[t + 1] - before)
        return means, variances

"""EMS: expectation maximization with smoothing, for the distribution of a number from the cells of ``Block``.

Source: Li et al., "Estimating Numerical Distributions under Local Differential Privacy" (SIGMOD 2020), section 5.
"""

from dataclasses import dataclass

import numpy as np

from uldp.schemas.arrays import Counts, Floats

#: EMS stops when a step changes the log-likelihood of all reports by less than this (in nats), as in the paper.
TOLERANCE = 1e-3
#: EMS stops after this many steps at the latest.
MAX_STEPS = 10_000


@dataclass(frozen=True)
class BinChannel:
    """The law of an output given the bin of a number, as an operator that takes O(G + W).

    The numbers have a histogram: G bins with a constant density inside. The encoding rounds a number at random to one
    of the two grid points next to it. Under a constant density, each of the two has probability 1/2, so the law of a
    bin is the average of the laws of ``Block`` at its two points.

    Attributes:
        bins: G.
        width: W, the number of outputs in a block; there are G + W outputs.
        noise: The probability that an output is uniform over all outputs, and not over the block.
    """

    bins: int
    width: int
    noise: float

    @property
    def floor(self) -> float:
        """The smallest probability of any output."""
        return self.noise / (self.bins + self.width)

    def outputs(self, shares: Floats) -> Floats:
        """Return the probability of each output, shape (..., G+W), for shares of the bins, shape (..., G)."""
        below = np.zeros((*shares.shape[:-1], self.bins + 2 * self.width))
        below[..., self.width : self.width + self.bins] = shares / 2
        below[..., self.width + 1 : self.width + self.bins + 1] += shares / 2
        np.cumsum(below, axis=-1, out=below)
        near = below[..., self.width :] - below[..., : -self.width]
        total: Floats = self.floor * below[..., -1:] + (1 - self.noise) / self.width * near
        return total

    def averages(self, weights: Floats) -> Floats:
        """Return the expected weight of an output given each bin, shape (G,), for weights of shape (G+W,)."""
        below = np.zeros(len(weights) + 1)
        np.cumsum(weights, out=below[1:])
        near = below[self.width :] - below[: -self.width]
        total: Floats = self.floor * below[-1] + (1 - self.noise) / self.width * (near[:-1] + near[1:]) / 2
        return total


@dataclass(frozen=True)
class EmsFit:
    """An estimate of EMS.

    Attributes:
        shares: Shape (G,): the share of each bin, on the probability simplex.
        steps: Number of steps.
        converged: Whether EMS stopped by ``TOLERANCE``, not by ``MAX_STEPS``.
    """

    shares: Floats
    steps: int
    converged: bool


def smooth(values: Floats) -> Floats:
    """Return the mean of each value and its two neighbours on the last axis, with weights 1/2 and 1/4.

    An end is its own neighbour. The weights form a symmetric matrix, so the sum of the values stays the same.
    """
    padded = np.concatenate([values[..., :1], values, values[..., -1:]], axis=-1)
    mean: Floats = (padded[..., :-2] + 2 * padded[..., 1:-1] + padded[..., 2:]) / 4
    return mean


def ems(channel: BinChannel, cells: Counts, n: int) -> EmsFit:
    """Estimate the shares of the bins from the cells: start uniform, and smooth after each step of EM.

    Smoothing keeps a fixed point from fitting the noise. It also widens what is narrower than the data can show: see
    ``EmsErrors.bias``. The likelihood of the cells is multinomial, so EM on cells is EM on reports.

    Args:
        channel: The law of an output given a bin.
        cells: Shape (G+W,): the number of reports of each output.
        n: Their sum, positive.
    """
    f = cells / n
    shares = np.full(channel.bins, 1 / channel.bins)
    last = -np.inf
    for steps in range(MAX_STEPS):
        likelihood = float(cells @ np.log(_probability(channel, shares)))
        if abs(likelihood - last) < TOLERANCE:
            return EmsFit(shares, steps, converged=True)
        last = likelihood
        shares = smooth(em_step(channel, f, shares))
    return EmsFit(shares, MAX_STEPS, converged=False)


def em_step(channel: BinChannel, f: Floats, shares: Floats) -> Floats:
    """Return the shares after one step of EM, from the shares f of the outputs, shape (G+W,)."""
    # A difference of sums may be slightly below 0.
    step: Floats = shares * np.maximum(channel.averages(f / _probability(channel, shares)), 0)
    return step


class EmsErrors:
    """The errors of linear functions of the shares, such as the share below a number.

    Two parts, because EMS is not unbiased:

    - The standard error. A fixed point of EMS moves with the shares f of the outputs: dx = A dx + K df, with the
      derivatives A and K of a step at x. So dx = (I - A)^-1 K df, and the cells are multinomial. The result agrees with
      a bootstrap that repeats all of EMS. A bootstrap that takes a few steps from x does not: EM is slow along the
      directions that the data show badly, which are those with large errors.
    - The bias, measured: how far x moves if EMS is applied to its own expected cells, with the same number of steps. It
      is a part of the true bias only, because x is smooth already.

    Building this solves linear equations with a matrix of shape (G, G).
    """

    def __init__(self, channel: BinChannel, cells: Counts, n: int, fit: EmsFit) -> None:
        """Linearize EMS at its estimate from the cells of n reports."""
        self._n, self._f, x = n, cells / n, fit.shares
        p = _probability(channel, x)
        laws = channel.outputs(np.eye(channel.bins))
        em = np.diag(channel.averages(self._f / p)) - x[:, None] * ((laws * (self._f / p**2)) @ laws.T)
        from_outputs = x[:, None] * laws / p
        self._response = np.linalg.solve(np.eye(channel.bins) - smooth(em.T).T, smooth(from_outputs.T).T)

        expected, again = channel.outputs(x), np.full(channel.bins, 1 / channel.bins)
        for _ in range(fit.steps):
            again = smooth(em_step(channel, expected, again))
        self._bias = again - x

    def stderr(self, functions: Floats) -> Floats:
        """Return the standard errors of ``functions @ shares``, for functions of shape (j, G)."""
        moves = functions @ self._response
        moves -= (moves @ self._f)[:, None]
        error: Floats = np.sqrt(moves**2 @ self._f / self._n)
        return error

    def bias(self, functions: Floats) -> Floats:
        """Return the measured part of the bias of ``functions @ shares``, for functions of shape (j, G)."""
        bias: Floats = functions @ self._bias
        return bias

    def root_mean_square(self, functions: Floats) -> Floats:
        """Return the square roots of stderr^2 + bias^2, for functions of shape (j, G)."""
        error: Floats = np.hypot(self.stderr(functions), self.bias(functions))
        return error


def _probability(channel: BinChannel, shares: Floats) -> Floats:
    return np.maximum(channel.outputs(shares), channel.floor)

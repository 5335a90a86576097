"""EMS: expectation maximization with smoothing, for the distribution of a number from the cells of ``Block``.

Sources: Li et al., "Estimating Numerical Distributions under Local Differential Privacy" (SIGMOD 2020), section 5,
where the kernel (1/4, 1/2, 1/4) smooths each step of EM, whatever the bins and the reports; Varadhan & Roland, "Simple
and Globally Convergent Methods for Accelerating the Convergence of Any EM Algorithm" (Scandinavian Journal of
Statistics 35, 2008), whose extrapolation takes a tenth of the steps.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from uldp.schemas.arrays import Counts, Floats


@dataclass(frozen=True)
class GridChannel:
    """The law of an output given a point of the grid 0, ..., G, or a bin, as an operator that takes O(G + W).

    The encoding rounds a number at random to one of the two points next to it, so the points have shares whatever the
    distribution of the numbers is. There are G + W outputs, of which a block has W = ``width``. With the probability
    ``noise`` an output is uniform over all of them, and not over the block.

    If the numbers of a bin have a constant density, each of the two points next to it has probability 1/2, so the law
    given a bin is the average of theirs.
    """

    bins: int  # G
    width: int
    noise: float
    of_bins: bool = False

    @property
    def size(self) -> int:
        """The number of inputs, whose shares are asked for."""
        return self.bins + (not self.of_bins)

    @property
    def floor(self) -> float:
        """The smallest probability of any output."""
        return self.noise / (self.bins + self.width)

    def outputs(self, shares: Floats) -> Floats:
        """Return the probability of each output, shape (..., G+W), for shares of the inputs, shape (..., size)."""
        below = np.zeros((*shares.shape[:-1], self.bins + 2 * self.width))
        if self.of_bins:
            below[..., self.width : -self.width] = shares / 2
            below[..., self.width + 1 : 1 - self.width or None] += shares / 2
        else:
            below[..., self.width : 1 - self.width or None] = shares
        np.cumsum(below, axis=-1, out=below)
        # A difference of sums may be slightly below the floor.
        return np.maximum(self._of_sums(below), self.floor * below[..., -1:])

    def averages(self, weights: Floats) -> Floats:
        """Return the expected weight of an output given each input, (..., size), for weights of shape (..., G+W)."""
        below = np.zeros((*weights.shape[:-1], weights.shape[-1] + 1))
        np.cumsum(weights, axis=-1, out=below[..., 1:])
        points = self._of_sums(below)
        return np.asarray((points[..., :-1] + points[..., 1:]) / 2) if self.of_bins else points

    def _of_sums(self, below: Floats) -> Floats:
        """Mix the sum of all, and those of W in a row, given the sums of the first ones."""
        near = below[..., self.width :] - below[..., : -self.width]
        return np.asarray(self.floor * below[..., -1:] + (1 - self.noise) / self.width * near)


#: EMS stops when a step changes the log-likelihood of all reports by less than this (in nats), as in the paper.
TOLERANCE = 1e-3
#: EMS stops after this many steps at the latest: without smoothing, some fits turn around their maximum for longer.
MAX_STEPS = 900
#: The parts of smoothing that EMS chooses from, in ascending order: 0 is maximum likelihood, 1 the kernel of the paper.
SMOOTHINGS = (0.0, 0.003, 0.03, 0.2, 1.0)

# An extrapolation may lose this many nats of likelihood, since a fixed point of EMS is not where it is the largest.
_MOST_LOST = 1.0
# A start has this part of equal shares, because a share of 0 would stay 0.
_EQUAL = 1e-3
# The part of the reports that a choice of smoothing fits, and not holds out; and the seed of who they are.
_FITTED, _SEED = 0.8, 36


def smooth(values: Floats) -> Floats:
    """Return the mean of each value and its two neighbours on the last axis, with weights 1/2 and 1/4.

    An end is its own neighbour. The weights form a symmetric matrix, so the sum of the values stays the same.
    """
    padded = np.concatenate([values[..., :1], values, values[..., -1:]], axis=-1)
    return np.asarray((padded[..., :-2] + 2 * padded[..., 1:-1] + padded[..., 2:]) / 4)


def smooth_partly(values: Floats, part: Floats | float) -> Floats:
    """Return S values on the last axis, where S = (1 - part) I + part K and K is ``smooth``."""
    return values + part * (smooth(values) - values)


def ems(channel: GridChannel, cells: Counts, smoothings: Floats, start: Floats | None = None) -> Floats:
    """Estimate the shares of inputs from cells: fixed points of a step of EM that is smoothed.

    Smoothing keeps a fixed point from fitting the noise, and widens what is narrow. The likelihood of the cells is
    multinomial, so EM on cells is EM on reports. Fits are independent, and are made at once because that is faster.

    Cells, shape (fits, G+W), are of one report or more; each fit has a part of smoothing, and shares of shape (fits,
    size) on the probability simplex. A start that is near takes fewer steps; by default shares are equal there.
    """
    n = cells.sum(axis=-1)
    f, parts = cells / n[:, np.newaxis], smoothings[:, np.newaxis]
    equal = np.full((len(cells), channel.size), 1 / channel.size)
    fits = equal if start is None else (1 - _EQUAL) * start + _EQUAL * equal
    going = np.arange(len(cells))
    for _ in range(MAX_STEPS // 3):
        here, seen = fits[going], f[going]
        p = channel.outputs(here)
        one = smooth_partly(em_step(channel, seen, here, p), parts[going])
        p_one = channel.outputs(one)
        two = smooth_partly(em_step(channel, seen, one, p_one), parts[going])
        far = _extrapolate(here, one, two)
        p_far = channel.outputs(far)
        lost = n[going] * (seen * np.log(p_one / p_far)).sum(axis=-1) > _MOST_LOST
        ahead = smooth_partly(em_step(channel, seen, far, p_far), parts[going])
        moving = n[going] * np.abs((seen * np.log(p_one / p)).sum(axis=-1)) >= TOLERANCE
        fits[going] = np.where((moving & ~lost)[:, np.newaxis], ahead, two)
        going = going[moving]
        if not len(going):
            break
    return fits


class Chosen(NamedTuple):
    """One of ``SMOOTHINGS`` that reports support, and the fit of each, shape (smoothings, size), for a start."""

    smoothing: float
    fits: Floats


def choose_smoothing(channel: GridChannel, cells: Counts) -> Chosen:
    """Choose the largest smoothing whose fit to four fifths of the reports makes a fixed fifth most probable."""
    fitted = np.random.default_rng(_SEED).binomial(cells, _FITTED)
    if not fitted.any():
        return Chosen(SMOOTHINGS[-1], np.full((len(SMOOTHINGS), channel.size), 1 / channel.size))
    fits = ems(channel, np.tile(fitted, (len(SMOOTHINGS), 1)), np.array(SMOOTHINGS))
    likelihoods = np.log(channel.outputs(fits)) @ (cells - fitted)
    return Chosen(SMOOTHINGS[len(SMOOTHINGS) - 1 - int(likelihoods[::-1].argmax())], fits)


def responses(channel: GridChannel, f: Floats, shares: Floats, smoothing: float) -> Floats:
    """Return how the shares of a fixed point move with the shares f of the outputs: the derivative, (size, G+W).

    A step gives dx = A dx + B df, with its derivatives A and B, so a fixed point moves by (I - A)^-1 B df. It needs
    some smoothing, for otherwise a share of 0 never moves.
    """
    p = channel.outputs(shares)
    laws = channel.outputs(np.eye(channel.size))
    em = np.diag(channel.averages(f / p)) - shares[:, np.newaxis] * ((laws * (f / p**2)) @ laws.T)
    from_outputs = shares[:, np.newaxis] * laws / p
    smoothed = [smooth_partly(each.T, smoothing).T for each in (em, from_outputs)]
    return np.asarray(np.linalg.solve(np.eye(channel.size) - smoothed[0], smoothed[1]))


def stderr(moves: Floats, f: Floats, n: float) -> Floats:
    """Return the standard errors of numbers that move by ``moves @ df``, shape (j, G+W), when n reports are drawn."""
    centered = moves - (moves @ f)[:, np.newaxis]
    return np.asarray(np.sqrt(centered**2 @ f / n))


def em_step(channel: GridChannel, f: Floats, shares: Floats, p: Floats) -> Floats:
    """Return the shares after one step of EM, (..., size), with shares of outputs f and, before, p, (..., G+W)."""
    # A difference of sums may be slightly below 0.
    return shares * np.maximum(channel.averages(f / p), 0)


def _extrapolate(here: Floats, one: Floats, two: Floats) -> Floats:
    """Return where three shares in a row lead to, each fit by its own ratio of the two steps."""
    step, turn = one - here, two - 2 * one + here
    turns = np.maximum((turn**2).sum(axis=-1), np.finfo(np.float64).tiny)
    length = np.maximum(np.sqrt((step**2).sum(axis=-1) / turns), 1)[:, np.newaxis]
    far = here + 2 * length * step + length**2 * turn
    # A share of 0 would stay 0.
    far = np.where(far < 0, two / 10, far)
    return np.asarray(far / far.sum(axis=-1, keepdims=True))

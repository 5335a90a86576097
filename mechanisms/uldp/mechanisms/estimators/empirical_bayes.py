"""Empirical Bayes: estimates that the other symbols of a class pull towards what is usual in this class.

Where n is small, the noise of most symbols is larger than their shares, and every projection onto the simplex keeps the
noise of those that are high by chance. A prior learnt from the counts of the window itself says how far to trust them.
"""

from functools import lru_cache

import numpy as np

from uldp.mechanisms.estimators.prior import fitted_prior, posterior_moments, usual_shares
from uldp.mechanisms.estimators.projection import weights, wls
from uldp.mechanisms.estimators.simplex import UNIT, Box, onto_simplex
from uldp.mechanisms.laws.channel import Channel
from uldp.schemas.arrays import Counts, Floats, Reports, Symbols

#: A class with fewer symbols says nothing about what is usual in it, so its estimates stay unbiased.
SMALLEST_CLASS = 10
# The grid has two points a standard deviation of a count, up to 4 standard deviations from some count, and some near
# the mean share.
_POINTS_PER_DEVIATION, _REACH = 2, 8
# A count is rounded to this part of the standard deviation of the noise: it bounds the number of different counts.
_ROUNDING = 1 / 16
#: The variances of a projection are at least this part of the largest, so that it is stable.
LEAST_VARIANCE = 1e-6


def empirical_bayes(channel: Channel, counts: Counts, n: Reports, bots: int = 0, box: Box = UNIT) -> Floats:
    """Estimate r by posterior means, and project these onto the simplex, weighted by the posterior variances.

    The symbols of a class have the same p and q. The prior of a class is any distribution of shares, see
    ``fitted_prior``; the count of a symbol with the share r is binomial, with n and m = q + (p - q) r.

    Other symbols have no prior, and are projected as by ``wls``: symbols without noise (q = 0), so that a value that no
    report names keeps the share 0; bots, which are no values, and may hide many users; and classes of fewer than
    ``SMALLEST_CLASS`` symbols.

    Source: Robbins, "An Empirical Bayes Approach to Statistics" (Berkeley Symposium 3, 1956); Laird, "Nonparametric
    Maximum Likelihood Estimation of a Mixing Distribution" (JASA 73, 1978). For the arguments and the result see
    ``estimate_intermediate``. There may be rows of samples of a window; each has a prior of its own, but they have the
    mean share of a class and R_N in common. Without a prior, rows are as ``wls`` takes them.
    """
    classes = _classes(channel, channel.size - bots)
    if not classes:
        return wls(channel, counts, n, box)
    assert isinstance(n, int), "rows of windows with a prior"
    means = channel.unbiased(counts, n)
    a, c = (np.broadcast_to(each / n, means.shape).copy() for each in weights(channel, means))
    whole = len(classes[0]) == channel.size
    usual = np.full(channel.size, channel.held / channel.size) if whole else _mean_of_rows(wls(channel, counts, n))
    noise = channel.noise(_mean_of_rows(means))
    for members in classes:
        q = float(noise[members[0]])
        p = q + float(channel.gain[members[0]])
        mean = max(float(usual[members].sum()), 1 / n) / len(members)
        of_class = counts[..., members].reshape(-1, len(members))
        shares, variances = (each.reshape(*counts.shape[:-1], -1) for each in _posterior(of_class, n, p, q, mean))
        largest = variances.max(axis=-1, keepdims=True)
        a[..., members] = np.maximum(variances, LEAST_VARIANCE * np.where(largest > 0, largest, 1.0))
        means[..., members], c[..., members] = shares, 0
    return onto_simplex(means, a, c, *box, channel.held)


def _mean_of_rows(shares: Floats) -> Floats:
    return np.asarray(shares.reshape(-1, shares.shape[-1]).mean(axis=0))


def has_prior(channel: Channel, bots: int) -> bool:
    """Return whether any class has so many symbols that a prior is learnt of it."""
    return bool(_classes(channel, channel.size - bots))


@lru_cache(maxsize=64)
def _classes(channel: Channel, values: int) -> tuple[Symbols, ...]:
    """Return the noisy values with the same p and q, for each such pair that is not rare."""
    pairs = (channel.p + 1j * channel.q)[:values]
    different, of, sizes = np.unique(pairs, return_inverse=True, return_counts=True)
    kept = np.flatnonzero((different.imag > 0) & (sizes >= SMALLEST_CLASS))
    return tuple(np.flatnonzero(of == each) for each in kept)


def _posterior(counts: Counts, n: int, p: float, q: float, usual: float) -> tuple[Floats, Floats]:
    """Return the posterior mean and variance of each share of a class, both of the shape of ``counts``."""
    step = max(round(np.sqrt(n * q * (1 - q)) * _ROUNDING), 1)
    rounded = np.rint(counts / step) * step
    different, of = np.unique(np.minimum(rounded, n), return_inverse=True)
    of = of.reshape(counts.shape)  # NumPy 2.0 and later differ in its shape
    repeats = np.array([np.bincount(row, minlength=len(different)) for row in of])

    # The standard deviation of arcsin(sqrt(C/n)) is 1 / (2 sqrt(n)), whatever m is.
    spacing = 1 / (2 * np.sqrt(n) * _POINTS_PER_DEVIATION)
    floor, ceiling = np.arcsin(np.sqrt([q, p]))
    near = np.rint((np.arcsin(np.sqrt(different / n)) - floor) / spacing)
    taken = np.zeros(int(near.max()) + _REACH + 2, dtype=np.bool_)
    taken[np.maximum(np.add.outer(near.astype(np.int64), np.arange(-_REACH, _REACH + 1)), 0)] = True
    by_mean = (np.arcsin(np.sqrt(q + (p - q) * usual_shares(usual))) - floor) / spacing
    points = np.union1d(np.flatnonzero(taken), by_mean)
    m = np.sin(np.minimum(floor + spacing * points, ceiling)) ** 2
    shares = np.maximum((m - q) / (p - q), 0)

    # m is inside (0, 1), so that the logarithms are finite: the count of a symbol with the share 0 may be 0 alone.
    inside = np.clip(m, 1e-300, 1 - 1e-16)
    log_likelihood = np.multiply.outer(different, np.log(inside)) + np.multiply.outer(n - different, np.log1p(-inside))
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    prior = fitted_prior(shares, usual, likelihood, repeats)
    mean, variance = posterior_moments(shares, prior, likelihood)
    rows = np.arange(len(counts))[:, np.newaxis]
    return mean[rows, of], variance[rows, of]

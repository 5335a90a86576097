"""The published shares of several versions: ``auto`` for a pooled estimate; see ``estimators.by_name``."""

import math
from collections.abc import Sequence

import numpy as np

from uldp.mechanisms.decoders.pure import ShareEstimate
from uldp.mechanisms.estimators.empirical_bayes import SMALLEST_CLASS
from uldp.mechanisms.estimators.prior import fitted_prior, posterior_moments, usual_shares
from uldp.mechanisms.pooling.versions import PooledShares
from uldp.schemas.arrays import Floats, Symbols

# The grid has two points a standard deviation. A share of so many standard deviations or more needs no prior.
_POINTS_PER_DEVIATION, _CLEAR = 2, 10
# The variances of a projection are at least this part of the largest, so that it is stable.
_LEAST_VARIANCE = 1e-6


def pooled_bayes(mean: PooledShares, bots: int) -> Floats:
    """Estimate r by posterior means, and project these onto the simplex, as ``empirical_bayes`` of one version.

    The symbols of a class have the same p and q in each version. The counts of a symbol are independent binomials, one
    of each version, so their likelihoods multiply. Shares of ``_CLEAR`` standard deviations stay unbiased.
    """
    means, variances = mean.mean.values.copy(), mean.mean.variance
    noisy = means < _CLEAR * np.sqrt(variances)
    a, c = mean.noise()
    for members in _classes(mean.parts, len(means) - bots):
        kept = members[noisy[members]]
        if len(kept) >= SMALLEST_CLASS:
            usual = max(float(mean.r[kept].sum()), 1 / float(mean.mean.n[0])) / len(kept)
            means[kept], of_posterior = _posterior(mean, kept, float(means[kept].max()), usual)
            a[kept], c[kept] = np.maximum(of_posterior, _LEAST_VARIANCE * variances.max()), 0
    return mean.nearest(means, a, c)


def _classes(parts: Sequence[ShareEstimate], values: int) -> list[Symbols]:
    """Return the values with noise in all versions and the same p and q in each, for each such class."""
    rows = np.array([probabilities[:values] for part in parts for probabilities in (part.channel.p, part.channel.q)])
    different, of = np.unique(rows, axis=1, return_inverse=True)
    return [np.flatnonzero(of.ravel() == i) for i in np.flatnonzero((different[1::2] > 0).all(axis=0))]


def _posterior(mean: PooledShares, members: Symbols, largest: float, usual: float) -> tuple[Floats, Floats]:
    """Return the posterior mean and variance of each share of a class, both of shape (len(members),)."""
    parts, first = mean.parts, members[0]
    q = np.array([part.channel.noise(mean.mean.values)[first] for part in parts])
    p = q + np.array([part.channel.gain[first] for part in parts])
    n = np.array([part.reports for part in parts])

    def deviation(share: float) -> float:
        m = q + (p - q) * share
        return 1 / math.sqrt(np.sum(n * (p - q) ** 2 / (m * (1 - m))))

    shares = [0.0]
    while shares[-1] < min(largest + 4 * deviation(shares[-1]), 1.0):
        shares.append(shares[-1] + deviation(shares[-1]) / _POINTS_PER_DEVIATION)
    grid = np.union1d(np.minimum(shares, 1.0), usual_shares(usual))
    # Inside (0, 1), so that the logarithms are finite.
    m = np.clip(q[:, np.newaxis] + np.multiply.outer(p - q, grid), 1e-300, 1 - 1e-16)
    counts = np.array([part.counts[members] for part in parts])
    log_likelihood = counts.T @ np.log(m) + (n[:, np.newaxis] - counts).T @ np.log1p(-m)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    prior = fitted_prior(grid, usual, likelihood, np.ones((1, len(members)), dtype=np.int64))
    (means,), (variances,) = posterior_moments(grid, prior, likelihood)
    return means, variances

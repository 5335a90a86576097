"""Empirical Bayes: estimates that the other symbols of a class pull towards what is usual in this class.

Where n is small, the noise of most symbols is larger than their shares, and every projection onto the simplex keeps the
noise of those that are high by chance. A prior learnt from the counts of the window itself says how far to trust them.
"""

from functools import lru_cache

import numpy as np

from uldp.mechanisms.estimators.prior import fitted_prior, usual_shares
from uldp.mechanisms.estimators.projection import weights, wls
from uldp.mechanisms.estimators.simplex import onto_capped, onto_simplex
from uldp.mechanisms.protocol.channel import Channel
from uldp.schemas.arrays import Counts, Floats, Reports, Symbols

#: A class with fewer symbols says nothing about what is usual in it, so its estimates stay unbiased.
SMALLEST_CLASS = 10
# The grid has two points a standard deviation of a count, up to 4 standard deviations from some count, and some near
# the mean share.
_POINTS_PER_DEVIATION, _REACH = 2, 8
# A count is rounded to this part of the standard deviation of the noise: it bounds the number of different counts.
_ROUNDING = 1 / 16
# The variances of a projection are at least this part of the largest, so that it is stable.
_LEAST_VARIANCE = 1e-6


def empirical_bayes(channel: Channel, counts: Counts, n: Reports, bots: int = 0) -> Floats:
    """Estimate r by posterior means, and project these onto the simplex, weighted by the posterior variances: ``auto``.

    The symbols of a class have the same p and q. The prior of a class is any distribution of shares, see
    ``fitted_prior``; the count of a symbol with the share r is binomial, with n and m = q + (p - q) r.

    Other symbols have no prior, and are projected as by ``wls``: symbols without noise (q = 0), so that a value that no
    report names keeps the share 0; bots, which are no values, and may hide many users; and classes of fewer than
    ``SMALLEST_CLASS`` symbols.

    Source: Robbins, "An Empirical Bayes Approach to Statistics" (Berkeley Symposium 3, 1956); Laird, "Nonparametric
    Maximum Likelihood Estimation of a Mixing Distribution" (JASA 73, 1978).

    Args:
        channel: p and q of the mechanism.
        counts: Shape (|Z|,): support counts; without a prior, as ``wls`` takes them.
        n: Number of counted reports.
        bots: The number of bots, which are the last symbols of Z.

    Returns:
        Shape (|Z|,), on the probability simplex; where devices hold l symbols, in [0, 1] with the sum l.

    Raises:
        ValueError: if ``n`` is not positive, or ``counts`` does not fit the channel and ``n``.
    """
    classes = _classes(channel, channel.size - bots)
    rough = wls(channel, counts, n)
    if not classes:
        return rough
    assert isinstance(n, int), "rows of windows with a prior"
    means = channel.unbiased(counts, n).copy()
    a, c = (each / n for each in weights(channel, means))
    noise = channel.noise(means)
    for members in classes:
        q = float(noise[members[0]])
        p = q + float(channel.gain[members[0]])
        usual = max(float(rough[members].sum()), 1 / n) / len(members)
        means[members], variances = _posterior(counts[members], n, p, q, usual)
        a[members], c[members] = np.maximum(variances, _LEAST_VARIANCE * (variances.max() or 1.0)), 0
    if channel.held > 1:
        return onto_capped(means, a, channel.held)
    # A symbol with q = 0 and without reports stays at 0.
    kept = (channel.q > 0) | (counts > 0)
    nearest = np.zeros(channel.size)
    nearest[kept] = onto_simplex(means[kept], a[kept], c[kept])
    return nearest


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
    """Return the posterior mean and variance of each share of a class, both of shape (len(counts),)."""
    step = max(round(np.sqrt(n * q * (1 - q)) * _ROUNDING), 1)
    rounded = np.rint(counts / step) * step
    different, of, repeats = np.unique(np.minimum(rounded, n), return_inverse=True, return_counts=True)

    # The standard deviation of arcsin(sqrt(C/n)) is 1 / (2 sqrt(n)), whatever m is.
    spacing = 1 / (2 * np.sqrt(n) * _POINTS_PER_DEVIATION)
    floor, ceiling = np.arcsin(np.sqrt([q, p]))
    near = np.rint((np.arcsin(np.sqrt(different / n)) - floor) / spacing)
    by_noise = np.unique(np.clip(np.add.outer(near, np.arange(-_REACH, _REACH + 1)), 0, None))
    by_mean = (np.arcsin(np.sqrt(q + (p - q) * usual_shares(usual))) - floor) / spacing
    points = np.union1d(by_noise, by_mean)
    m = np.sin(np.minimum(floor + spacing * points, ceiling)) ** 2
    shares = np.maximum((m - q) / (p - q), 0)

    # m is inside (0, 1), so that the logarithms are finite: the count of a symbol with the share 0 may be 0 alone.
    inside = np.clip(m, 1e-300, 1 - 1e-16)
    log_likelihood = np.multiply.outer(different, np.log(inside)) + np.multiply.outer(n - different, np.log1p(-inside))
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    prior = fitted_prior(shares, usual, likelihood, repeats)
    evidence = likelihood @ prior
    mean = likelihood @ (prior * shares) / evidence
    variance = np.maximum(likelihood @ (prior * shares**2) / evidence - mean**2, 0)
    return mean[of], variance[of]

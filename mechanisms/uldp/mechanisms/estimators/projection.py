"""The distribution that is nearest to the counts of a window, weighted by their variances.

There are two choices of the variances. ``wls``, an estimator, takes those of the mechanism's noise alone.
``nearest_fit``, for tests, takes those at the solution, so that its distance has a chi-square distribution.
"""

from typing import NamedTuple

import numpy as np

from uldp.mechanisms.estimators.likelihood import exact_mle
from uldp.mechanisms.estimators.pair_projection import (
    has_pairs,
    join,
    nearest_given_pairs,
    separate,
)
from uldp.mechanisms.estimators.simplex import UNIT, Box, onto_simplex
from uldp.mechanisms.laws.channel import Channel
from uldp.schemas.arrays import Counts, Floats, Reports

_LEAST_VARIANCE = 1e-6


def wls(channel: Channel, counts: Counts, n: Reports, box: Box = UNIT) -> Floats:
    """Return the r on the simplex that is nearest to r-hat, weighted by the variances of the noise; see ``weights``.

    Where all symbols are equally noisy, it is the projection of ``norm_sub``. Otherwise it moves a noisy symbol farther
    than a precise one. Variances at r-hat, or at r as those of ``nearest_fit``, are larger for large shares. So a
    projection with these takes more from them, though their noise is no larger, and is worse where few values have
    large shares. A symbol with q = 0 that no report names has no variance, and keeps the share 0.

    Args:
        channel: p and q of the mechanism.
        counts: Shape (|Z|,): support counts. There may be rows of samples of a window; without q', of several windows.
        n: Number of counted reports.
        box: The least and the largest share of each symbol.

    Returns:
        Shape (|Z|,), on the probability simplex; where devices hold l symbols, in [0, 1] with the sum l.

    Raises:
        ValueError: if ``n`` is not positive, or ``counts`` does not fit the channel.
    """
    unbiased = channel.unbiased(counts, n)
    a, c = weights(channel, unbiased)
    return onto_simplex(unbiased, a, c, *box, channel.held)


def weights(channel: Channel, r: Floats) -> tuple[Floats, Floats]:
    """Return a and c, both of shape (|Z|,), by which ``wls`` weighs: the entry z has the variance (a_z + c_z r_z) / n.

    A symbol with q > 0 has the variance of its count if no device holds it. A symbol with q = 0 has no noise then, so
    it has the variance of the reports of its holders, of which each supports it with the probability p.

    Args:
        channel: p and q of the mechanism.
        r: Shape (|Z|,): any estimate of r; only R_N matters, and only if q' differs from q. Rows have their mean's.
    """
    if (channel.q > 0).all():
        nobody = np.zeros(channel.size)
        return channel.variance_given_values(nobody, 1, 0.0), nobody
    absent, present = _variances(channel, r.reshape(-1, channel.size).mean(axis=0))
    # Without obfuscation there is no variance at all, and any equal weights will do.
    return absent, np.where(channel.q > 0, 0.0, np.maximum(present, _LEAST_VARIANCE))


def _variances(channel: Channel, r: Floats) -> tuple[Floats, Floats]:
    """Return the variance of each entry of r-hat given the users' values, if nobody holds it and if all do."""
    free = channel.non_sensitive(r)
    shares = (np.full(channel.size, share) for share in (0.0, 1.0))
    absent, present = (channel.variance_given_values(each, 1, free) for each in shares)
    return absent, present


class Nearest(NamedTuple):
    """A distribution, shape (|Z|,), and its squared distance from the counts, weighted by their variances at it."""

    r: Floats
    distance: float


def nearest_fit(channel: Channel, counts: Counts, n: int) -> Nearest:
    """Return the r on the simplex with the least distance from the counts, weighted by their variances at the same r.

    Weights at r-hat itself would favour symbols with counts that are low by chance. Weights at r are Pearson's weights.

    - Symbol reports: the distance is Pearson's sum_z (C_z - n m_z)^2 / (n m_z), and r is that of ``exact_mle``: all
      p_z - q_z are equal, so the conditions of Karush, Kuhn and Tucker (KKT) for fixed weights 1/m_z are, at weights
      of the same r, those of the likelihood: C_z / m_z is one constant where r_z > 0, and no larger elsewhere.
    - Bit reports: sum_z (r-hat_z - r_z)^2 / v_z, where v is the variance given the users' values,
      ``Channel.variance_given_values``. Given the histogram r of these values, the bits of a window are independent.
      (The Mahalanobis distance under the i.i.d. covariance of ``Channel.covariance`` gives the same r, and has
      the same value at this r.)
    - Reports of w > 1 symbols: likewise, with the covariance of these; see ``_nearest_given_subsets``. Where some
      symbols are not sensitive, or cells support blocks of symbols, no short cut is known; see ``nearest_given_pairs``.

    Args:
        channel: p and q of the mechanism.
        counts: Shape (|Z|,): support counts.
        n: Number of counted reports.

    Raises:
        ValueError: if ``n`` is not positive, or ``counts`` does not fit the channel and ``n``.
    """
    channel.check(counts, n)
    if has_pairs(channel):
        joined, of_joined = channel.joined, join(channel, counts)
        shares, distance = nearest_given_pairs(joined, of_joined, n)
        return Nearest(separate(channel, counts, shares), distance)
    if channel.one_symbol:
        r = exact_mle(channel, counts, n)
        expected = n * channel.support_probability(r)
        return Nearest(r, _chi_square(counts - expected, expected))
    if channel.held > 1:
        return _nearest_given_held(channel, counts, n)
    if channel.supported > 1:
        r = _nearest_given_subsets(channel, counts, n)
        residuals, (a, b) = channel.unbiased(counts, n) - r, _subset_variance(channel)
        d = (a + b * r) / n
        return Nearest(r, _chi_square(residuals - (residuals / d).sum() / (1 / d).sum(), d))
    r = _nearest_given_bits(channel, counts, n)
    return Nearest(r, _chi_square(channel.unbiased(counts, n) - r, channel.variance_given_values(r, n)))


def _chi_square(residuals: Floats, variance: Floats) -> float:
    # A symbol without noise and without reports fits exactly.
    return float(np.divide(residuals**2, variance, out=np.zeros_like(variance), where=variance > 0).sum())


def _nearest_given_bits(channel: Channel, counts: Counts, n: int) -> Floats:
    """Return the r on the simplex that minimizes sum_z (r-hat_z - r_z)^2 / v_z, with v = v(r) at the same r.

    Weights at r usually need iteration; but v is linear in r, v = a + c r, so the KKT conditions with fixed v,

        r_z = r-hat_z - lambda v_z    or    r_z = 0 where r-hat_z <= lambda v_z,

    give r_z = max(0, r-hat_z - lambda a_z) / (1 + lambda c_z) directly. Each r_z falls with lambda, so bisection finds
    the lambda at which the r_z sum to one. A symbol with q = 0 and without reports stays at 0 and is left out.
    """
    unbiased = channel.unbiased(counts, n)
    kept = (channel.q > 0) | (counts > 0)
    absent, present = _variances(channel, unbiased)
    a, c = absent[kept], (present - absent)[kept]
    nearest = np.zeros(channel.size)
    nearest[kept] = onto_simplex(unbiased[kept], a, c)
    return nearest


def _nearest_given_subsets(channel: Channel, counts: Counts, n: int) -> Floats:
    """Return the nearest r on the simplex if each report supports w > 1 symbols.

    The r-hat_z sum to one, so a residual x = r-hat - r sums to 0. On such vectors, the covariance V given the users'
    values is a diagonal one: x.V x = sum_z d_z x_z^2 with d_z = (a + b r_z)/n, because the covariance of two symbols is
    linear in r_i + r_j. So the squared distance is the least sum_z (x_z + l)^2 / d_z over l. With fixed d, the KKT
    conditions are, for one number h and S = sum_z max(0, r-hat_z - h),

        r_z = max(0, r-hat_z - h) / S    with    S = 1 + k h b / (k a - b),    k = |Z|

    With the j largest r-hat_z above h, h = (their sum - 1) / (j + k b / (k a - b)). As k b > b - k a, the largest of
    these quotients is that of the right j. If b = 0, r is the projection of ``norm_sub``.
    """
    k = channel.size
    a, b = _subset_variance(channel)
    unbiased = channel.unbiased(counts, n)
    rate = k * b / (k * a - b)
    falling = np.sort(unbiased)[::-1]
    height = ((np.cumsum(falling) - 1) / (np.arange(1, k + 1) + rate)).max()
    r: Floats = np.maximum(unbiased - height, 0)
    r /= r.sum()
    return r


def _nearest_given_held(channel: Channel, counts: Counts, n: int) -> Nearest:
    """Return the nearest r >= 0 that sums to l, if devices hold l symbols, and its distance.

    The covariance V of r-hat given the users' values depends on r_ij, the share of devices that hold both i and j. But
    V times a vector of ones is 0, so the multipliers of KKT are known up to a constant: r-hat - r = V u / n, where u is
    0 wherever r is not, and V_ij = c + d r_i needs no r_ij where r_j is 0. With S = sum_j u_j and h = c S,

        r_i = (r-hat_i - h) / (1 + d S) where that is positive, and else u_j = (r-hat_j - h) / a

    with a = V_jj - c. The r_i sum to l, so with the j largest r-hat_i above h, h = (their sum - l) / (j + l d / c), and
    the largest of these quotients is that of the right j. As no r_i exceeds 1, j is l or more; then j + l d / c is not
    negative, because -c times it is, up to a factor, the variance of the supports of all symbols that nobody holds. The
    squared distance is n sum_j r-hat_j u_j. That r_i is at most 1 is left out else, so that the distance is no larger.
    """
    p, q, gain = float(channel.p[0]), float(channel.q[0]), float(channel.gain[0])
    held, other, _ = channel.pair_probabilities()
    c, d = other - q * q, held - p * q - (other - q * q)
    a = (q * (1 - q) - c) / gain**2
    unbiased = channel.unbiased(counts, n)
    falling = np.sort(unbiased)[::-1]
    least = channel.held
    above = np.arange(least, channel.size + 1) + channel.held * d / c
    sums = np.cumsum(falling)[least - 1 :] - channel.held
    height = float(np.divide(sums, above, out=np.full_like(sums, -np.inf), where=above > _LEAST_VARIANCE).max())
    r: Floats = np.maximum(unbiased - height, 0)
    r *= channel.held / r.sum()
    absent = unbiased[r == 0]
    return Nearest(r, max(float(n / a * absent @ (absent - height)), 0.0))


def _subset_variance(channel: Channel) -> tuple[float, float]:
    """Return a and b of ``_nearest_given_subsets``."""
    p, q, gain = float(channel.p[0]), float(channel.q[0]), float(channel.gain[0])
    true, other, _ = channel.pair_probabilities()
    both, slope = other - q * q, true - p * q - (other - q * q)
    return (q * (1 - q) - both) / gain**2, (p * (1 - p) - q * (1 - q) - 2 * slope) / gain**2

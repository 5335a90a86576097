"""The distribution that is nearest to the counts of a window, weighted by their variances.

There are two choices of the variances. ``wls``, an estimator, takes those of the mechanism's noise alone.
``nearest_fit``, for tests, takes those at the solution, so that its distance has a chi-square distribution.
"""

from typing import NamedTuple

import numpy as np

from uldp.mechanisms.estimators.likelihood import exact_mle
from uldp.mechanisms.estimators.pair_projection import has_pairs, join, nearest_given_pairs, separate
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

    For the arguments and the result see ``estimate_intermediate``. There may be rows of samples of a window; without
    q', of several windows.
    """
    unbiased = channel.unbiased(counts, n)
    a, c = weights(channel, unbiased)
    return onto_simplex(unbiased, a, c, *box, channel.held)


def weights(channel: Channel, r: Floats) -> tuple[Floats, Floats]:
    """Return a and c, both of shape (|Z|,), by which ``wls`` weighs: the entry z has the variance (a_z + c_z r_z) / n.

    A symbol with q > 0 has the variance of its count if no device holds it. A symbol with q = 0 has no noise then, so
    it has the variance of the reports of its holders, of which each supports it with the probability p. Of ``r``, any
    estimate, only R_N matters, and only if q' differs from q. Rows have their mean's.
    """
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
    """A distribution, (|Z|,), or rows, and its squared distance from the counts by their variances at it."""

    r: Floats
    distance: float | Floats


def nearest_fit(channel: Channel, counts: Counts, n: Reports) -> Nearest:
    """Return the r on the simplex with the least distance from the counts, weighted by their variances at the same r.

    Weights at r-hat itself would favour symbols with counts that are low by chance. Weights at r are Pearson's weights.

    These variances are linear in r. So the conditions of Karush, Kuhn and Tucker (KKT) give r by one number, which
    ``onto_simplex`` finds.

    - Symbol reports: the distance is Pearson's sum_z (C_z - n m_z)^2 / (n m_z), and r is that of ``exact_mle``.
    - Bit reports: sum_z (r-hat_z - r_z)^2 / v_z, where v is the variance given the users' values,
      ``Channel.variance_given_values``. Given the histogram r of these values, the bits of a window are independent.
      (The Mahalanobis distance under the i.i.d. covariance of ``Channel.covariance`` gives the same r, and has
      the same value at this r.)
    - Reports of w > 1 symbols: likewise, with the covariance of these; see ``_nearest_given_subsets``. Where some
      symbols are not sensitive, or cells support blocks of symbols, no short cut is known; see ``nearest_given_pairs``.

    ValueError if ``n`` is not positive, or ``counts``, shape (|Z|,), does not fit the channel and ``n``. Of symbol
    reports, there may be rows of several windows.
    """
    channel.check(counts, n)
    if channel.one_symbol:
        r = exact_mle(channel, counts, n)
        expected = n * (channel.q + channel.gain * r)
        return Nearest(r, _chi_square(counts - expected, expected))
    assert isinstance(n, int), "rows of windows of other reports"
    if has_pairs(channel):
        joined, of_joined = channel.joined, join(channel, counts)
        shares, distance = nearest_given_pairs(joined, of_joined, n)
        return Nearest(separate(channel, counts, shares), distance)
    unbiased = channel.unbiased(counts, n)
    if channel.held > 1:
        return _nearest_given_held(channel, unbiased, n)
    if channel.supported > 1:
        return _nearest_given_subsets(channel, unbiased, n)
    absent, present = _variances(channel, unbiased)
    r = onto_simplex(unbiased, absent, np.where(channel.q > 0, present - absent, np.maximum(present, _LEAST_VARIANCE)))
    return Nearest(r, _chi_square(unbiased - r, channel.variance_given_values(r, n)))


def _chi_square(residuals: Floats, variance: Floats) -> Floats:
    # A symbol without noise and without reports fits exactly.
    squares = np.divide(residuals**2, variance, out=np.zeros_like(variance), where=variance > 0)
    return np.asarray(squares.sum(axis=-1))


def _nearest_given_subsets(channel: Channel, unbiased: Floats, n: int) -> Nearest:
    """Return the nearest r on the simplex if each report supports w > 1 symbols, and its distance.

    The r-hat_z sum to one, so a residual x = r-hat - r sums to 0. On such vectors, the covariance V given the users'
    values is a diagonal one: x.V x = sum_z d_z x_z^2 with d_z = (a + b r_z)/n, because the covariance of two symbols is
    linear in r_i + r_j. So the squared distance is the least sum_z (x_z + l)^2 / d_z over l. With fixed d, the KKT
    conditions are, for one number h,

        r_z = max(0, r-hat_z - h) / (1 + h k b / (k a - b))    with    k = |Z|

    If b = 0, r is the projection of ``norm_sub``.
    """
    p, q, gain, k = float(channel.p[0]), float(channel.q[0]), float(channel.gain[0]), channel.size
    true, other, _ = channel.pair_probabilities()
    both, slope = other - q * q, true - p * q - (other - q * q)
    a, b = (q * (1 - q) - both) / gain**2, (p * (1 - p) - q * (1 - q) - 2 * slope) / gain**2
    r = onto_simplex(unbiased, 1.0, k * b / (k * a - b))
    residuals, d = unbiased - r, (a + b * r) / n
    return Nearest(r, _chi_square(residuals - (residuals / d).sum() / (1 / d).sum(), d))


def _nearest_given_held(channel: Channel, unbiased: Floats, n: int) -> Nearest:
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
    falling = np.sort(unbiased)[::-1]
    least = channel.held
    above = np.arange(least, channel.size + 1) + channel.held * d / c
    sums = np.cumsum(falling)[least - 1 :] - channel.held
    height = float(np.divide(sums, above, out=np.full_like(sums, -np.inf), where=above > _LEAST_VARIANCE).max())
    r: Floats = np.maximum(unbiased - height, 0)
    r *= channel.held / r.sum()
    absent = unbiased[r == 0]
    return Nearest(r, max(float(n / a * absent @ (absent - height)), 0.0))

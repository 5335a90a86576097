"""The distribution that is nearest to the counts of a window, weighted by their variances.

There are two choices of the variances. ``wls``, an estimator, takes those of the mechanism's noise alone.
``nearest_fit``, for tests, takes those at the solution, so that its distance has a chi-square distribution.
"""

import numpy as np

from uldp.mechanisms.estimators.likelihood import exact_mle
from uldp.mechanisms.estimators.pair_projection import (
    has_pairs,
    join,
    nearest_given_pairs,
    pair_distance,
    separate,
)
from uldp.mechanisms.protocol.channel import Channel
from uldp.schemas.arrays import Counts, Floats

# The part of the first interval of the root to which it is found.
_RESOLUTION = 2.0**-50
_LEAST_VARIANCE = 1e-6


def wls(channel: Channel, counts: Counts, n: int) -> Floats:
    """Return the r on the simplex that is nearest to r-hat, weighted by the variances of the noise; see ``weights``.

    Where all symbols are equally noisy, it is the projection of ``norm_sub``. Otherwise it moves a noisy symbol farther
    than a precise one. Variances at r-hat, or at r as those of ``nearest_fit``, are larger for large shares. So a
    projection with these takes more from them, though their noise is no larger, and is worse where few values have
    large shares.

    Args:
        channel: p and q of the mechanism.
        counts: Shape (|Z|,): support counts.
        n: Number of counted reports.

    Returns:
        Shape (|Z|,), on the probability simplex.

    Raises:
        ValueError: if ``n`` is not positive, or ``counts`` does not fit the channel.
    """
    unbiased = channel.unbiased(counts, n)
    # A symbol with q = 0 and without reports stays at 0.
    kept = (channel.q > 0) | (counts > 0)
    a, c = weights(channel, unbiased)
    nearest = np.zeros(channel.size)
    nearest[kept] = onto_simplex(unbiased[kept], a[kept], c[kept])
    return nearest


def weights(channel: Channel, r: Floats) -> tuple[Floats, Floats]:
    """Return a and c, both of shape (|Z|,), by which ``wls`` weighs: the entry z has the variance (a_z + c_z r_z) / n.

    A symbol with q > 0 has the variance of its count if no device holds it. A symbol with q = 0 has no noise then, so
    it has the variance of the reports of its holders, of which each supports it with the probability p.

    Args:
        channel: p and q of the mechanism.
        r: Shape (|Z|,): any estimate of r; only R_N matters, and only if q' differs from q.
    """
    absent, present = _variances(channel, r)
    # Without obfuscation there is no variance at all, and any equal weights will do.
    return absent, np.where(channel.q > 0, 0.0, np.maximum(present, _LEAST_VARIANCE))


def _variances(channel: Channel, r: Floats) -> tuple[Floats, Floats]:
    """Return the variance of each entry of r-hat given the users' values, if nobody holds it and if all do."""
    free = channel.non_sensitive(r)
    shares = (np.full(channel.size, share) for share in (0.0, 1.0))
    absent, present = (channel.variance_given_values(each, 1, free) for each in shares)
    return absent, present


def nearest_fit(channel: Channel, counts: Counts, n: int) -> Floats:
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

    Returns:
        Shape (|Z|,), on the probability simplex.

    Raises:
        ValueError: if ``n`` is not positive, or ``counts`` does not fit the channel and ``n``.
    """
    if has_pairs(channel):
        joined, of_joined = channel.joined, join(channel, counts)
        nearest = nearest_given_pairs(joined, of_joined, n, wls(joined, of_joined, n))
        return separate(channel, counts, nearest)
    if channel.supported > 1:
        return _nearest_given_subsets(channel, counts, n)
    return _nearest_given_bits(channel, counts, n) if channel.independent_bits else exact_mle(channel, counts, n)


def squared_distance(channel: Channel, counts: Counts, n: int, r: Floats) -> float:
    """Return the squared distance of the counts from a distribution r, weighted at r; ``nearest_fit`` has the least.

    Raises:
        ValueError: if ``n`` is not positive, or ``counts`` does not fit the channel.
    """
    channel.check(counts, n)
    if has_pairs(channel):
        return pair_distance(channel, counts, n, r)
    if channel.one_symbol:
        expected = n * channel.support_probability(r)
        return _chi_square(counts - expected, expected)
    residuals = channel.unbiased(counts, n) - r
    if channel.supported > 1:
        a, b = _subset_variance(channel)
        d = (a + b * r) / n
        return _chi_square(residuals - (residuals / d).sum() / (1 / d).sum(), d)
    return _chi_square(residuals, channel.variance_given_values(r, n))


def onto_simplex(x: Floats, a: Floats, c: Floats) -> Floats:
    """Return r_z = max(0, x_z - l a_z) / (1 + l c_z) with the number l at which the r_z sum to one.

    This r is on the simplex and nearest to x, if the entry z has the variance a_z + c_z r_z up to a common factor. If c
    is 0, r is positive at the j entries with the largest x/a, and l = (their sum of x - 1) / (their sum of a): the
    largest of these quotients is that of the right j. Otherwise Newton's steps find l. In place of a step that leaves
    its bounds, or that is not half as long as the one before, these are halved.

    Args:
        x: Shape (k,).
        a: Shape (k,): not negative.
        c: Shape (k,): not negative where a is 0, and a + c > 0.

    Returns:
        Shape (k,), on the probability simplex.
    """
    if not c.any():
        falling = np.argsort(-x / a)
        rate = ((np.cumsum(x[falling]) - 1) / np.cumsum(a[falling])).max()
        nearest: Floats = np.maximum(x - rate * a, 0)
        nearest /= nearest.sum()
        return nearest
    # The bounds of l: at low every entry is 1/k or more, and at high 1/k or less.
    share = 1 / len(x)
    shares_at = (x - share) / (a + c * share)
    low, high = shares_at.min(), shares_at.max()

    def solution(rate: float) -> tuple[Floats, Floats]:
        above: Floats = np.maximum(x - rate * a, 0)
        scale = 1 + rate * c
        if scale.min() > 0:
            return above / scale, scale
        # Beyond the pole of an entry, where 1 + l c = 0, it is infinite.
        return np.divide(above, scale, out=np.where(above > 0, np.inf, 0.0), where=scale > 0), scale

    rate, step = min(max(0.0, low), high), high - low
    enough = _RESOLUTION * step
    with np.errstate(divide="ignore", invalid="ignore"):
        while step > enough:
            nearest, scale = solution(rate)
            excess = nearest.sum() - 1
            low, high = (rate, high) if excess > 0 else (low, rate)
            # Entries that are 0 stay so; the others fall by (a + c r) / (1 + l c).
            fall = ((a + c * nearest) / scale) @ (nearest > 0)
            following = rate + excess / fall
            if not (low <= following <= high and abs(following - rate) <= step / 2):
                following = (low + high) / 2
            step, rate = abs(following - rate), following
    nearest, _ = solution(rate)
    nearest /= nearest.sum()
    return nearest


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


def _subset_variance(channel: Channel) -> tuple[float, float]:
    """Return a and b of ``_nearest_given_subsets``."""
    p, q, gain = float(channel.p[0]), float(channel.q[0]), float(channel.gain[0])
    true, other, _ = channel.pair_probabilities()
    both, slope = other - q * q, true - p * q - (other - q * q)
    return (q * (1 - q) - both) / gain**2, (p * (1 - p) - q * (1 - q) - 2 * slope) / gain**2

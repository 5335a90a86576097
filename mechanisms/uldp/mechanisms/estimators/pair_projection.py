"""The distribution nearest to counts whose supports depend on each other in pairs: sets and blocks of symbols.

The covariance V of r-hat is then known as a product with vectors only, so equations are solved by conjugate gradients.
"""

import numpy as np

from uldp.mechanisms.channel import Channel, Product
from uldp.schemas.arrays import Counts, Floats, Mask, Rows

# V follows r in so many steps, or fewer if r moves by less than this part of a standard deviation.
_STEPS, _STILL = 20, 1e-2
# Exchanges of the set of symbols at 0; few are needed.
_EXCHANGES = 30
# Conjugate gradients end at this part of the first residual, which moves a p-value by less than a part in a thousand.
_MOST_ITERATIONS, _TOLERANCE = 200, 1e-6
# Below this part of the sum of variances, the variance of the sum of r-hat is rounding: r-hat sums to one.
_ROUNDING = 1e-9


def has_pairs(channel: Channel) -> bool:
    """Return whether supports depend on each other as sets or blocks beside non-sensitive symbols, or as blocks."""
    return channel.blocks is not None or (channel.supported > 1 and not (channel.q > 0).all())


def nearest_given_pairs(channel: Channel, counts: Counts, n: int, start: Floats) -> Floats:
    """Return the r on the simplex that minimizes (r-hat - r)^T V^-1 (r-hat - r), with V = n Cov[r-hat] at the same r.

    Args:
        channel: A channel with sets or blocks.
        counts: Shape (|Z|,): support counts.
        n: The number of reports.
        start: Shape (|Z|,): an estimate on the simplex.
    """
    unbiased = channel.unbiased(counts, n)
    # A symbol that a report names has a share above 0.
    least = np.where((channel.q == 0) & (counts > 0), 0.5 / n, 0.0)
    r = np.maximum(start, least)
    for _ in range(_STEPS):
        variance = channel.variance(r, 1)
        nearest = _nearest(unbiased, _of_one(channel.covariance(r)), variance, noisy=channel.q > 0, zero=r == 0)
        nearest = np.maximum(nearest, least)
        moved, r = np.abs(nearest - r), nearest
        if (moved <= _STILL * np.sqrt(variance / n)).all():
            break
    r /= r.sum()
    return r


def _of_one(product: Product) -> Product:
    """Return the product with one vector, shape (|Z|,)."""
    return lambda w: product(w[:, np.newaxis])[:, 0]


def _nearest(x: Floats, times: Product, variance: Floats, *, noisy: Mask, zero: Mask) -> Floats:
    """Return the r >= 0 with sum one that is nearest to x by a fixed V, by exchanges of the symbols at 0.

    The conditions of Karush, Kuhn and Tucker are r = x - V w with w = l 1 - u, and u >= 0 where r is 0, else 0. With
    these symbols given, l and u solve linear equations. A symbol with u < 0 leaves the set, and one with r < 0 joins.

    Args:
        x: Shape (k,).
        times: The product with V.
        variance: Shape (k,): the diagonal of V.
        noisy: Shape (k,): the symbols whose entries of x may be negative.
        zero: Shape (k,): a first guess of the symbols at 0.
    """
    ones = np.ones_like(x)
    of_sum = float(ones @ times(ones))
    sums = of_sum > _ROUNDING * variance.sum()
    zero, r = zero & noisy, x
    for _ in range(_EXCHANGES):
        at = np.flatnonzero(zero)
        scale = np.append(variance[at], of_sum if sums else 1.0)

        def spread(y: Floats, at: Rows = at) -> Floats:
            w = np.full_like(x, y[-1] if sums else 0.0)
            w[at] += y[:-1]
            return w

        def gather(v: Floats, at: Rows = at) -> Floats:
            return np.append(v[at], v.sum() if sums else 0.0)

        wanted = gather(x)
        wanted[-1] -= 1.0 if sums else 0.0
        y = _solve(lambda y: gather(times(spread(y))), wanted, scale)
        r = x - times(spread(y))
        r[at] = 0.0
        leaving, joining = at[y[:-1] > 0], np.flatnonzero(noisy & (r < 0))
        if not len(leaving) and not len(joining):
            break
        zero[leaving], zero[joining] = False, True
    return np.maximum(r, 0.0)


def pair_distance(channel: Channel, counts: Counts, n: int, r: Floats) -> float:
    """Return n (r-hat - r)^T V^-1 (r-hat - r), with V = n Cov[r-hat] at ``r``.

    It is that of the supports y of a report, whose covariance is S = M - m m^T with M = E[y y^T]. Let e = C/n - m,
    x = M^-1 e and z = M^-1 m. If weights make the supports of each report sum to one, S is singular, m x = 0 and
    m z = 1, and the distance is n e x. Otherwise S^-1 e = x + z (m x) / (1 - m z).
    """
    m = channel.support_probability(r)
    times = _of_one(channel.moments(r))
    residuals = counts / n - m
    x = _solve(times, residuals, m)
    if channel.blocks is not None and not channel.blocks.fixed:
        z = _solve(times, m, m)
        x = x + z * (m @ x) / (1 - m @ z)
    return n * float(residuals @ x)


def _solve(times: Product, wanted: Floats, scale: Floats) -> Floats:
    """Solve A x = wanted for a positive A with about the diagonal ``scale``, by conjugate gradients scaled by that.

    x is 0 where ``wanted`` and A are 0. Source: Hestenes & Stiefel, "Methods of Conjugate Gradients for Solving Linear
    Systems" (Journal of Research of the NBS 49, 1952).
    """
    inverse = 1 / np.where(scale > 0, scale, 1.0)
    x, rest = np.zeros_like(wanted), wanted.copy()
    scaled = inverse * rest
    direction, square = scaled, float(rest @ scaled)
    enough = _TOLERANCE**2 * square
    for _ in range(_MOST_ITERATIONS):
        if square <= enough:
            break
        product = times(direction)
        step = square / float(direction @ product)
        x, rest = x + step * direction, rest - step * product
        scaled = inverse * rest
        before, square = square, float(rest @ scaled)
        direction = scaled + square / before * direction
    return x

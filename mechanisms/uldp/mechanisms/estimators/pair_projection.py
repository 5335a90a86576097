"""The distribution nearest to counts whose supports depend on each other in pairs: sets and blocks of symbols.

The covariance V of r-hat is then known as a product with vectors only. Of few symbols, it is written out. Of many,
equations are solved by conjugate gradients.

One symbol stands for all that are not sensitive. Their counts have no noise from other symbols, and the covariances of
such a count with others are in proportion to its share. So the nearest shares of these symbols have the ratios of their
counts, and only their sum is to be found.
"""

from collections.abc import Callable

import numpy as np

from uldp.mechanisms.protocol.channel import Channel, NumbersT, Product
from uldp.schemas.arrays import Counts, Floats, Rows

# V follows r in so many steps, or fewer if r moves by less than this part of a standard deviation.
_STEPS, _STILL = 20, 1e-2
# Exchanges of the set of symbols at 0; few are needed.
_EXCHANGES = 30
# Up to so many symbols, and entries of cells and symbols, V is written out. BLAS would solve for more by several
# threads, which wait for each other on a busy machine; it multiplies matrices by one if it takes no more products.
_MOST_WRITTEN, _MOST_ENTRIES, _MOST_PRODUCTS = 64, 1 << 16, 1 << 18
# Conjugate gradients end at this part of the first residual, which moves a p-value by less than a part in a thousand.
_MOST_ITERATIONS, _TOLERANCE = 200, 1e-6
# Below this part of the sum of variances, the variance of the sum of r-hat is rounding: r-hat sums to one.
_ROUNDING = 1e-9

#: Returns u at some symbols that are to be 0, and r, which is 0 at these.
_Solve = Callable[[Rows], tuple[Floats, Floats]]


def has_pairs(channel: Channel) -> bool:
    """Return whether supports depend on each other as sets or blocks beside non-sensitive symbols, or as blocks."""
    return channel.blocks is not None or (channel.supported > 1 and not (channel.q > 0).all())


def nearest_given_pairs(channel: Channel, counts: Counts, n: int, start: Floats) -> Floats:
    """Return the r on the simplex that minimizes (r-hat - r)^T V^-1 (r-hat - r), with V = n Cov[r-hat] at the same r.

    Args:
        channel: A channel with sets or blocks, and with one symbol at most that is not sensitive; see ``join``.
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
        nearest = np.maximum(_nearest(channel, unbiased, r, variance), least)
        moved, r = np.abs(nearest - r), nearest
        if (moved <= _STILL * np.sqrt(variance / n)).all():
            break
    r /= r.sum()
    return r


def join(channel: Channel, x: NumbersT) -> NumbersT:
    """Return numbers of symbols, shape (|Z|,), for ``channel.joined``: those of the sensitive ones, and the sum."""
    noisy = channel.q > 0
    joined: NumbersT = x if noisy.all() else np.append(x[noisy], x[~noisy].sum())
    return joined


def separate(channel: Channel, counts: Counts, r: Floats) -> Floats:
    """Return a distribution over Z from that over ``channel.joined``, in the ratios of the counts."""
    noisy = channel.q > 0
    if noisy.all():
        return r
    separated, named = np.empty(channel.size), counts[~noisy]
    separated[noisy], separated[~noisy] = r[:-1], r[-1] * named / max(named.sum(), 1)
    return separated


def _is_small(channel: Channel) -> bool:
    """Return whether V is to be written out."""
    cells = 0 if channel.blocks is None else channel.blocks.cells
    return channel.size <= _MOST_WRITTEN and cells * channel.size <= _MOST_ENTRIES


def _nearest(channel: Channel, x: Floats, r: Floats, variance: Floats) -> Floats:
    """Return the r >= 0 with sum one that is nearest to x by a fixed V, by exchanges of the symbols at 0.

    The conditions of Karush, Kuhn and Tucker are r = x - V w with w = l 1 - u, and u >= 0 where r is 0, else 0. With
    these symbols given, l and u solve linear equations. A symbol with u < 0 leaves the set, and one with r < 0 joins.

    Args:
        channel: The channel, of k symbols.
        x: Shape (k,): its entries are not negative for symbols without noise.
        r: Shape (k,): the shares at which V is taken; those that are 0 are the first guess of the symbols at 0.
        variance: Shape (k,): the diagonal of V.
    """
    noisy = channel.q > 0
    solve = _by_matrix(channel, x, r) if _is_small(channel) else _by_products(channel, x, r, variance)
    zero, r = noisy & (r == 0), x
    for _ in range(_EXCHANGES):
        at = np.flatnonzero(zero)
        u, r = solve(at)
        leaving, joining = at[u < 0], np.flatnonzero(noisy & (r < 0))
        if not len(leaving) and not len(joining):
            break
        zero[leaving], zero[joining] = False, True
    return np.maximum(r, 0.0)


def _by_matrix(channel: Channel, x: Floats, r: Floats) -> _Solve:
    """Solve the equations of ``_nearest`` with V as a matrix, which has one more row and column for l."""
    k = len(x)
    bordered = np.empty((k + 1, k + 1))
    bordered[:k, :k] = covariance = channel.covariance_matrix(r, _second_moments(channel, r))
    bordered[k, :k] = bordered[:k, k] = of_ones = covariance.sum(axis=0)
    bordered[k, k] = of_sum = of_ones.sum()
    wanted, last = np.append(x, x.sum() - 1), [k] if of_sum > _ROUNDING * covariance.trace() else []

    def solve(at: Rows) -> tuple[Floats, Floats]:
        unknown = np.concatenate([at, last]).astype(np.int64)
        y = np.linalg.solve(bordered[np.ix_(unknown, unknown)], wanted[unknown])
        solved = x - bordered[:k, unknown] @ y
        solved[at] = 0.0
        return -y[: len(at)], solved

    return solve


def _by_products(channel: Channel, x: Floats, r: Floats, variance: Floats) -> _Solve:
    """Solve the equations of ``_nearest`` by products with V."""
    times, ones = _of_one(channel.covariance(r)), np.ones_like(x)
    of_sum = float(ones @ times(ones))
    sums = of_sum > _ROUNDING * variance.sum()

    def solve(at: Rows) -> tuple[Floats, Floats]:
        def spread(y: Floats) -> Floats:
            w = np.full_like(x, y[-1] if sums else 0.0)
            w[at] += y[:-1]
            return w

        def gather(v: Floats) -> Floats:
            return np.append(v[at], v.sum() if sums else 0.0)

        wanted = gather(x)
        wanted[-1] -= 1.0 if sums else 0.0
        y = _climb(lambda y: gather(times(spread(y))), wanted, np.append(variance[at], of_sum if sums else 1.0))
        solved = x - times(spread(y))
        solved[at] = 0.0
        return -y[:-1], solved

    return solve


def _of_one(product: Product) -> Product:
    """Return the product with one vector, shape (|Z|,)."""
    return lambda w: product(w[:, np.newaxis])[:, 0]


def _second_moments(channel: Channel, r: Floats) -> Floats:
    """Return the matrix E[y y^T] of the supports y of one report, shape (|Z|, |Z|)."""
    if channel.blocks is None:
        return channel.moments(r)(np.eye(channel.size))
    supports = channel.blocks.incidence
    weighted = channel.blocks.law(r)[:, np.newaxis] * supports
    rows = max(1, _MOST_PRODUCTS // supports.size)
    return np.concatenate([supports.T[at : at + rows] @ weighted for at in range(0, channel.size, rows)])


def pair_distance(channel: Channel, counts: Counts, n: int, r: Floats) -> float:
    """Return n (r-hat - r)^T V^-1 (r-hat - r), with V = n Cov[r-hat] at ``r``.

    It is that of the supports y of a report, whose covariance is S = M - m m^T with M = E[y y^T]. Let e = C/n - m,
    x = M^-1 e and z = M^-1 m. If weights make the supports of each report sum to one, S is singular, m x = 0 and
    m z = 1, and the distance is n e x. Otherwise S^-1 e = x + z (m x) / (1 - m z). No report supports a symbol that is
    not sensitive and another one, so M is diagonal there.
    """
    noisy, joined, of_joined = channel.q > 0, channel.joined, join(channel, r)
    m = channel.support_probability(r)
    both = np.column_stack([counts / n - m, m])
    solved = both / np.where(m > 0, m, 1.0)[:, np.newaxis]
    v = int(noisy.sum())
    if _is_small(joined):
        solved[noisy] = np.linalg.solve(_second_moments(joined, of_joined)[:v, :v], both[noisy])
    else:
        times, rest = _of_one(joined.moments(of_joined)), np.zeros(joined.size - v)
        for column in range(2):
            solved[noisy, column] = _climb(lambda w: times(np.append(w, rest))[:v], both[noisy, column], m[noisy])
    x, z = solved.T
    if channel.blocks is not None and not channel.blocks.fixed:
        x = x + z * (m @ x) / (1 - m @ z)
    return n * float(both[:, 0] @ x)


def _climb(times: Product, wanted: Floats, scale: Floats) -> Floats:
    """Solve A x = wanted for a positive A with about the diagonal ``scale``, by conjugate gradients scaled by that.

    Source: Hestenes & Stiefel, "Methods of Conjugate Gradients for Solving Linear
    Systems" (Journal of Research of the NBS 49, 1952).
    """
    inverse = 1 / scale
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

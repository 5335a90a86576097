"""The distribution nearest to counts whose supports depend on each other in pairs: sets and blocks of symbols.

The covariance V of r-hat is then known as a product with vectors only. Of few symbols, it is written out. Of many,
equations are solved by conjugate gradients, which go on from the solution of the equations before.

One symbol stands for all that are not sensitive. Their counts have no noise from other symbols, and the covariances of
such a count with others are in proportion to its share. So the nearest shares of these symbols have the ratios of their
counts, and only their sum is to be found.
"""

import numpy as np

from uldp.mechanisms.estimators.simplex import onto_simplex
from uldp.mechanisms.laws.block_cells import NumbersT
from uldp.mechanisms.laws.channel import Channel, Product
from uldp.schemas.arrays import Counts, Floats, Mask

# V and the set of symbols at 0 follow r in so many steps, or fewer if the set stays and r moves by less than this part
# of a standard deviation.
_STEPS, _STILL = 30, 1e-2
# Up to so many symbols, and entries of cells and symbols, V is written out. BLAS would solve for more by several
# threads, which wait for each other on a busy machine.
_MOST_WRITTEN, _MOST_ENTRIES = 64, 1 << 16
# Conjugate gradients end at this part of the first residual. The error of the distance is about its square.
_MOST_ITERATIONS, _TOLERANCE = 200, 1e-4
# Below this part of the sum of variances, the variance of the sum of r-hat is rounding: r-hat sums to one.
_ROUNDING = 1e-9


def has_pairs(channel: Channel) -> bool:
    """Return whether supports depend on each other as sets or blocks beside non-sensitive symbols, or as blocks."""
    return channel.blocks is not None or (channel.supported > 1 and not (channel.q > 0).all())


def nearest_given_pairs(channel: Channel, counts: Counts, n: int) -> tuple[Floats, float]:
    """Return the r on the simplex that minimizes n (r-hat - r)^T V^-1 (r-hat - r), with V = n Cov[r-hat] at the same r.

    The conditions of Karush, Kuhn and Tucker are r = r-hat - V w with w = l 1 - u, and u >= 0 where r is 0, else 0.
    With these symbols given, l and u solve linear equations. A symbol with u < 0 leaves the set, and one with r < 0
    joins it. The channel has sets or blocks, and one symbol at most that is not sensitive; see ``join``. The least
    distance is n times the largest 2 w^T (r-hat - r) - w^T V w of all w. So an error of w counts by its square.
    """
    unbiased, noisy = channel.unbiased(counts, n), channel.q > 0
    # A symbol that a report names has a share above 0.
    least = np.where(~noisy & (counts > 0), 0.5 / n, 0.0)
    ones = np.ones(channel.size)
    # Noisy symbols have about the same variance, so the nearest r by equal ones is a good first guess.
    r = np.maximum(onto_simplex(unbiased), least)
    r /= r.sum()
    zero = noisy & (r == 0)
    of_sum = float(ones @ _of_one(channel.covariance(r))(ones))
    of_sum = of_sum if of_sum > _ROUNDING * channel.variance(r, 1).sum() else 0.0
    cells = 0 if channel.blocks is None else channel.blocks.cells
    small = channel.size <= _MOST_WRITTEN and cells * channel.size <= _MOST_ENTRIES
    solve, y = _by_matrix if small else _by_products, np.zeros(channel.size + 1)
    for _ in range(_STEPS):
        y, found = solve(channel, unbiased, r, zero, of_sum, y)
        leaving, joining = zero & (y[:-1] > 0), ~zero & noisy & (found < 0)
        found[zero] = 0.0
        nearest = np.maximum(found, least)
        # V has negative variances where r does not sum to one.
        nearest /= nearest.sum()
        still = (np.abs(nearest - r) <= _STILL * np.sqrt(channel.variance(r, n))).all()
        r, zero = nearest, zero & ~leaving | joining
        if still and not leaving.any() and not joining.any():
            break
    w = y[:-1] + y[-1]
    return r, n * float(2 * w @ (unbiased - r) - w @ _of_one(channel.covariance(r))(w))


def join(channel: Channel, x: NumbersT) -> NumbersT:
    """Return numbers of symbols, shape (|Z|,), for ``channel.joined``: those of the sensitive ones, and the sum."""
    noisy = channel.q > 0
    return x if noisy.all() else np.append(x[noisy], x[~noisy].sum())


def separate(channel: Channel, counts: Counts, r: Floats) -> Floats:
    """Return a distribution over Z from that over ``channel.joined``, in the ratios of the counts."""
    noisy = channel.q > 0
    if noisy.all():
        return r
    separated, named = np.empty(channel.size), counts[~noisy]
    separated[noisy], separated[~noisy] = r[:-1], r[-1] * named / max(named.sum(), 1)
    return separated


def _by_matrix(channel: Channel, x: Floats, r: Floats, zero: Mask, of_sum: float, _: Floats) -> tuple[Floats, Floats]:
    """Solve the equations of ``nearest_given_pairs`` with V as a matrix, which has one more row and column for l.

    Of k symbols, x is r-hat, V is taken at r, and the shares of ``zero`` are to be 0. The sum of r-hat has the variance
    ``of_sum``, or 0 if it always is one. Returns -u, and behind it l, shape (k + 1,); and x - V w, shape (k,).
    """
    k = len(x)
    bordered = np.empty((k + 1, k + 1))
    bordered[:k, :k] = covariance = channel.covariance(r)(np.eye(k))
    bordered[k, :k] = bordered[:k, k] = of_ones = covariance.sum(axis=0)
    bordered[k, k] = of_ones.sum()
    unknown, y = np.flatnonzero(np.append(zero, of_sum > 0)), np.zeros(k + 1)
    y[unknown] = np.linalg.solve(bordered[np.ix_(unknown, unknown)], np.append(x, x.sum() - 1)[unknown])
    return y, x - bordered[:k] @ y


def _by_products(channel: Channel, x: Floats, r: Floats, zero: Mask, of_sum: float, y: Floats) -> tuple[Floats, Floats]:
    """Do as ``_by_matrix`` by products with V: conjugate gradients from ``y``, scaled by the variances.

    Source: Hestenes & Stiefel, "Methods of Conjugate Gradients for Solving Linear
    Systems" (Journal of Research of the NBS 49, 1952).
    """
    times, inside = _of_one(channel.covariance(r)), np.append(zero, of_sum > 0)

    def gather(v: Floats) -> Floats:
        return np.asarray(np.append(v, v.sum()) * inside)

    scale = np.append(np.where(zero, channel.variance(r, 1), 1.0), of_sum or 1.0)
    wanted, y = gather(x), y * inside
    wanted[-1] -= inside[-1]
    moved = times(y[:-1] + y[-1]) if y.any() else np.zeros_like(x)
    rest = wanted - gather(moved)
    direction = scaled = rest / scale
    square, enough = float(rest @ scaled), _TOLERANCE**2 * float(wanted @ (wanted / scale))
    for _ in range(_MOST_ITERATIONS):
        if square <= enough:
            break
        product = times(direction[:-1] + direction[-1])
        at_unknown = gather(product)
        step = square / float(direction @ at_unknown)
        y, moved, rest = y + step * direction, moved + step * product, rest - step * at_unknown
        scaled = rest / scale
        before, square = square, float(rest @ scaled)
        direction = scaled + square / before * direction
    return y, x - moved


def _of_one(product: Product) -> Product:
    """Return the product with one vector, shape (|Z|,)."""
    return lambda w: product(w[:, np.newaxis])[:, 0]

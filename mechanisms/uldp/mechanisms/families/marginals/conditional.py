"""What two attributes have to do with each other: shares of one given the other, and whether they are independent."""

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from uldp.mechanisms.families.marginals.linear import TablesLinear
from uldp.mechanisms.pooling.interactions import Attributes
from uldp.schemas.arrays import Floats
from uldp.schemas.table import INTERVAL_LEVEL, Basis, Table, TableName

# Gradients of several tests have so many numbers together.
_NUMBERS = 1 << 20


def fieller(
    top: Floats, bottom: Floats, of_top: Floats, of_bottom: Floats, of_both: Floats, z: float
) -> tuple[Floats, Floats]:
    """Return intervals of ratios of two normal estimates: the ratios r for which top - r bottom may be 0.

    Source: Fieller, "Some Problems in Interval Estimation" (Journal of the Royal Statistical Society B 16, 1954). If
    the lower number itself may be 0, the interval is everything from 0 to 1.

    Args:
        top: The upper numbers.
        bottom: The lower ones.
        of_top: The variances of the upper numbers.
        of_bottom: Those of the lower ones.
        of_both: The covariances.
        z: The quantile of the normal distribution.
    """
    a = bottom**2 - z**2 * of_bottom
    b = top * bottom - z**2 * of_both
    c = top**2 - z**2 * of_top
    root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    known = a > 0
    divisor = np.where(known, a, 1.0)
    low, high = np.where(known, (b - root) / divisor, 0.0), np.where(known, (b + root) / divisor, 1.0)
    return low.clip(0.0, 1.0), high.clip(0.0, 1.0)


def conditional(
    linear: TablesLinear,
    both: Attributes,
    given: int,
    shares: Mapping[Attributes, Floats],
    unbiased: Mapping[Attributes, Floats],
    n: int,
    *,
    of: tuple[str, ...],
) -> Table:
    """Return the shares of the values of one attribute among the users with each value of another, which is the row.

    Args:
        linear: The unbiased tables.
        both: The two attributes, ascending.
        given: That of the rows.
        shares: The published shares.
        unbiased: The unbiased ones.
        n: The number of reports about both.
        of: The names of the attributes, that of the rows first.
    """
    axis = both.index(given)
    shape = tuple(linear.design.sizes[attribute] for attribute in both)
    of_cell, of_row = linear.errors.share(both), linear.errors.share((given,))
    variances = [linear.covariance(both, *pair) for pair in ((of_cell, of_cell), (of_row, of_row), (of_cell, of_row))]

    def rows(values: Floats) -> Floats:
        table = values.reshape(shape)
        return table if axis == 0 else table.T

    cells, published = rows(unbiased[both]), rows(shares[both])
    whole = np.repeat(unbiased[given,][:, np.newaxis], cells.shape[1], axis=1)
    of_cells, of_whole, of_pairs = map(rows, variances)
    z = NormalDist().inv_cdf((1 + INTERVAL_LEVEL) / 2)
    low, high = fieller(cells, whole, of_cells, of_whole, of_pairs, z)
    sums = published.sum(axis=1, keepdims=True)
    values = np.divide(published, sums, out=np.full_like(published, 1 / cells.shape[1]), where=sums > 0).clip(0.0, 1.0)
    # By the delta method, at the published shares.
    spread = (of_cells - 2 * values * of_pairs + values**2 * of_whole).clip(0.0)
    stderr = np.divide(np.sqrt(spread), sums, out=np.ones_like(spread), where=sums > 0).clip(0.0, 1.0)
    return Table(
        TableName.GIVEN,
        values.ravel(),
        stderr.ravel(),
        n,
        of=of,
        shape=cells.shape,
        low=np.minimum(low, values).ravel(),
        high=np.maximum(high, values).ravel(),
        basis=Basis.NORMAL,
    )


def independence(linear: TablesLinear, pairs: Sequence[Attributes]) -> dict[Attributes, float]:
    """Return for each pair of attributes the probability of so large a dependence if they are independent.

    The test is a chi-square of the differences x_ij - x_i x_j, with their covariance by the delta method. They are the
    interaction of both less the product of those of each: an interaction of 0 would be something else, namely that the
    shares add up, which those of independent attributes do not.
    """
    from scipy import special  # takes a quarter of a second, and devices need none

    tests = [_difference(linear, pair) for pair in pairs]
    found, first = {}, 0
    while first < len(tests):
        # One product for many pairs takes about as long as for one.
        end, columns = first, 0
        while end < len(tests) and (end == first or (columns + tests[end].free) * linear.design.size <= _NUMBERS):
            columns += tests[end].free
            end += 1
        gradients = np.concatenate([test.gradient for test in tests[first:end]], axis=1)
        ends = np.cumsum([test.free for test in tests[first:end]])
        moved = np.split(linear.pooled.times(gradients), ends[:-1], axis=1)
        for pair, test, own in zip(pairs[first:end], tests[first:end], moved, strict=True):
            differences = test.values
            statistic = float(differences @ np.linalg.solve(test.gradient.T @ own, differences))
            found[pair] = float(special.chdtrc(test.free, max(statistic, 0.0)))
        first = end
    return found


class _Difference(NamedTuple):
    """The differences x_ij - x_i x_j of a pair of attributes, but those that follow from the others.

    Attributes:
        values: Shape (free,): the differences.
        gradient: Shape (m, free): their derivatives by the interactions.
    """

    values: Floats
    gradient: Floats

    @property
    def free(self) -> int:
        """The degrees of freedom."""
        return len(self.values)


def _difference(linear: TablesLinear, pair: Attributes) -> _Difference:
    places, values = linear.design.places, linear.pooled.values
    first, second = (values[places[attribute,]] for attribute in pair)
    cells = (np.arange(len(first) - 1)[:, np.newaxis] * len(second) + np.arange(len(second) - 1)).ravel()
    a, b = np.divmod(cells, len(second))
    each, gradient = np.arange(len(cells)), np.zeros((linear.design.size, len(cells)))
    gradient[places[pair].start + cells, each] = 1.0
    gradient[places[pair[0],].start + a, each] = -second[b]
    gradient[places[pair[1],].start + b, each] = -first[a]
    return _Difference(values[places[pair]][cells] - first[a] * second[b], gradient)

"""The errors of tables that are pooled from views, cell by cell, in a time that is linear in the cells.

A cell of a table is a sum of its entries of interactions, each the weighted mean of what the views say. The covariance
of two interactions S and T at one cell of both needs of a view no more than its covariance over the attributes S + T:
with the covariance diag(d) - u u^T of the view, that is made of the sums of d and u over the other attributes.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np

from uldp.mechanisms.pooling.interactions import Attributes, Interactions, subsets
from uldp.mechanisms.protocol.linear import LowRankLinear
from uldp.schemas.arrays import Floats

#: A function of one cell of a table: the factor of the entry of each interaction in it.
Function = Mapping[Attributes, float]


class InteractionErrors:
    """The covariances of functions of cells.

    Args:
        design: The interactions.
        weights: The weight of each view.
        parts: The estimate of each view.
    """

    def __init__(
        self, design: Interactions, weights: Sequence[Floats] | Floats, parts: Sequence[LowRankLinear]
    ) -> None:
        self._design = design
        divisors = design.divisors(weights)
        self._shares = [
            {held: float(weight) / design.rest(view, held) / divisors[held] for held in subsets(view) if held}
            for view, weight in zip(design.views, weights, strict=True)
        ]
        self._parts = parts

    def share(self, cell: Attributes) -> Function:
        """Return the share of a cell of a table of some attributes."""
        return {held: 1 / self._design.rest(cell, held) for held in subsets(cell) if held}

    def covariance(self, table: Attributes, first: Function, second: Function) -> Floats:
        """Return the covariance of two functions of each cell of a table, of the shape of the table."""
        total = np.zeros([self._design.sizes[attribute] for attribute in table])
        for one, factor in first.items():
            for two, other in second.items():
                both = tuple(sorted({*one, *two}))
                total += factor * other * self._over(table, both, self._of_pairs[tuple(sorted((one, two)))])
        return total

    def _over(self, table: Attributes, held: Attributes, values: Floats) -> Floats:
        """Return the values of the cells of some attributes in a shape that fits the table."""
        shape = [self._design.sizes[attribute] if attribute in held else 1 for attribute in table]
        return values.reshape(shape)

    @cached_property
    def _of_pairs(self) -> dict[tuple[Attributes, ...], Floats]:
        """The covariance of the entries of two interactions at each cell of the attributes of both."""
        found: dict[tuple[Attributes, ...], Floats] = {}
        for view, shares, part in zip(self._design.views, self._shares, self._parts, strict=True):
            shape = [self._design.sizes[attribute] for attribute in view]
            diagonals = self._sums(view, (part.variance + part.u[0] ** 2).reshape(shape))
            ranks = self._sums(view, part.u[0].reshape(shape))
            centred = {held: self._centred(held, ranks) for held in shares}
            for one, two in combinations_with_replacement(sorted(shares), 2):
                both = tuple(sorted({*one, *two}))
                own = self._of_diagonal(both, one, two, diagonals)
                own = own - self._over(both, one, centred[one]) * self._over(both, two, centred[two])
                own *= shares[one] * shares[two]
                found[one, two] = found[one, two] + own if (one, two) in found else own
        return found

    def _sums(self, view: Attributes, values: Floats) -> dict[Attributes, Floats]:
        """Return the sums over the other attributes, for each set of attributes of a view."""
        return {
            held: values.sum(axis=tuple(axis for axis, attribute in enumerate(view) if attribute not in held))
            for held in subsets(view)
        }

    def _centred(self, held: Attributes, sums: Mapping[Attributes, Floats]) -> Floats:
        """Return the table of a set minus its means along each axis."""
        table = sums[held]
        for axis in range(len(held)):
            table = table - table.mean(axis=axis, keepdims=True)
        return table

    def _of_diagonal(
        self, both: Attributes, one: Attributes, two: Attributes, sums: Mapping[Attributes, Floats]
    ) -> Floats:
        """Return the part of the covariance of two interactions that comes from diag(d)."""
        factors: dict[Attributes, float] = {}
        for first, factor in self._centring(one).items():
            for second, other in self._centring(two).items():
                fixed = tuple(sorted({*first, *second}))
                factors[fixed] = factors.get(fixed, 0.0) + factor * other
        total = np.zeros([self._design.sizes[attribute] for attribute in both])
        for fixed, factor in factors.items():
            total = total + factor * self._over(both, fixed, sums[fixed])
        return total

    def _centring(self, held: Attributes) -> dict[Attributes, float]:
        """Return the factor in an interaction of each sum over some of its attributes, with the others fixed."""
        return {fixed: (-1.0) ** (len(held) - len(fixed)) / self._design.rest(held, fixed) for fixed in subsets(held)}

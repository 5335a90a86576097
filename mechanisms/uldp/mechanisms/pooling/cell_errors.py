"""The errors of cells of tables that are pooled from views, in a time that is linear in the cells.

How much a cell of a view counts in a cell of a table depends on which of its values are those of the latter. So sums
over a view of powers of these scores, times a number for each of its cells, are made of the sums of these numbers over
some of its attributes, the others of the table fixed. The scores are those in the table of the common attributes, times
the part of their cells in those of the table.
"""

from collections.abc import Mapping
from functools import cached_property
from math import prod

import numpy as np

from uldp.mechanisms.laws.estimate import Part
from uldp.mechanisms.laws.law import Cumulants
from uldp.mechanisms.pooling.interactions import Attributes, Interactions, subsets
from uldp.mechanisms.pooling.pooled_linear import Pooled
from uldp.schemas.arrays import Floats

#: How much the cells of a view count that match a table in some attributes alone, by these attributes.
Scores = Mapping[Attributes, float]
#: The powers of scores of which sums over d, u and third cumulants are taken.
_POWERS = (2, 1, 3)


def scores(
    design: Interactions, divisors: Mapping[Attributes, float], view: Attributes, weight: float, table: Attributes
) -> Scores:
    """Return how much the cells of a view count in a cell of a table."""
    common = tuple(attribute for attribute in table if attribute in view)
    factors = {
        held: weight / design.rest(view, held) / divisors[held] / design.rest(table, held)
        for held in subsets(common)
        if held
    }
    # The entry of a centred table, of a single cell: 1 - 1/k where the value is matched, else -1/k.
    return {
        matched: sum(
            factor * prod((attribute in matched) - 1 / design.sizes[attribute] for attribute in held)
            for held, factor in factors.items()
        )
        for matched in subsets(common)
    }


class CellErrors:
    """The cumulants of cells.

    Variances are those of ``diagonal_and_rank_one``. The third cumulant is that of values that are supported
    independently, and the largest step that of the cell of a view that counts most, or the root of the mean square.
    """

    def __init__(self, pooled: Pooled, design: Interactions) -> None:
        self._pooled, self._design, self._divisors = pooled, design, design.divisors(pooled.weights)
        self._known: dict[tuple[int, Attributes], Floats] = {}

    @cached_property
    def _parts(self) -> list[tuple[int, Part, float, dict[Attributes, Floats]]]:
        """Of each part the number of its view, its largest step, and d, u and thirds summed over other attributes."""
        found = []
        for number, part in self._pooled.numbered():
            each, view = part.each(), self._design.views[number]
            cells = np.array([*part.diagonal_and_rank_one(), each.third])
            cells = cells.reshape(3, *(self._design.sizes[attribute] for attribute in view))
            sums = {
                held: cells.sum(axis=tuple(at for at, attribute in enumerate(view, 1) if attribute not in held))
                for held in subsets(view)
            }
            found.append((number, part, float(each.step.max()), sums))
        return found

    def cumulants(self, table: Attributes, row: Attributes = (), ratio: float | Floats = 0.0) -> Cumulants:
        """Return those of each cell of a table, less ``ratio`` times the share of its values of ``row``."""
        total, largest = np.zeros((2, *self._shape(table, table))), np.zeros(self._shape(table, table))
        for at, (number, *_) in enumerate(self._parts):
            common = tuple(attribute for attribute in table if attribute in self._design.views[number])
            if row:
                of_cell, of_row = self._scores(number, table), self._scores(number, row)
                own: dict[Attributes, float | Floats] = {
                    matched: score - ratio * of_row[tuple(attribute for attribute in matched if attribute in row)]
                    for matched, score in of_cell.items()
                }
                moments = self._moments(at, table, own)
            elif common:
                if (at, common) not in self._known:
                    self._known[at, common] = self._moments(at, common, self._scores(number, common))
                part = self._design.cells(common) / self._design.cells(table)
                moments = self._known[at, common].reshape(3, *self._shape(common, table)).copy()
                for power, moment in zip(_POWERS, moments, strict=True):
                    moment *= part**power
            else:
                continue
            total, largest = total + moments[::2], np.maximum(largest, moments[1])
        none = np.full(largest.size, np.nan)
        return Cumulants(total[0].ravel(), total[1].ravel(), largest.ravel(), none, none)

    def _scores(self, number: int, table: Attributes) -> Scores:
        weight = float(self._pooled.weights[number])
        return scores(self._design, self._divisors, self._design.views[number], weight, table)

    def _shape(self, held: Attributes, table: Attributes) -> list[int]:
        """Return the shape of the table of some attributes that fits another table."""
        return [self._design.sizes[attribute] if attribute in held else 1 for attribute in table]

    def _moments(self, at: int, table: Attributes, own: Mapping[Attributes, float | Floats]) -> Floats:
        """Return the variance, the largest step and the third cumulant of a part, shape (3, ...) of a table."""
        _, part, step, sums = self._parts[at]
        powers = np.array(_POWERS).reshape(3, *[1] * len(table))
        total = np.zeros((3, *self._shape(table, table)))
        for fixed in own:
            factor = sum((-1) ** (len(fixed) - len(held)) * own[held] ** powers for held in subsets(fixed))
            total += factor * sums[fixed].reshape(3, *self._shape(fixed, table))
        variance = np.maximum(total[0] - total[1] ** 2, 0.0)
        root = np.sqrt(variance / part.factors[0]) * part.factors[2]
        most = step * np.abs(np.array(list(own.values()))).max(axis=0)
        return np.array([variance, np.maximum(root, most), total[2]])

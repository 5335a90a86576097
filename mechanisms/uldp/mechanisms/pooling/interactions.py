"""The design of interactions: each part is a view, which counts all values of several attributes together.

Sources: Zhang, Wang, Li, He & Zhang, "CALM: Consistent Adaptive Local Marginal for Marginal Release under Local
Differential Privacy" (CCS 2018), for views that share attributes; the analysis of variance, for what a view says.

The table of a set of attributes is the sum of the interactions of its subsets, each spread over the other attributes:

    p_V(v) = sum over S in V of u_S(v_S) / k_(V - S)

with u_S the table of S centred along each of its axes, and k_T the product of the sizes of the attributes T.
Interactions of different sets are orthogonal. So with one weight for each view, A^T W A is the number

    D_S = sum over the views V that hold S of w_V / k_(V - S)

times the centring of S: the best estimate of each interaction is the mean of what all views that hold it say of it, by
their weights. Tables that are made of interactions are consistent, because they have them in common.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from uldp.mechanisms.pooling.pooled_linear import Design, Solve
from uldp.schemas.arrays import Floats, Symbols

#: Attributes by their numbers, ascending.
Attributes = tuple[int, ...]

# The fit of shares of 0 or more ends when no cell differs by more than this from one of 0 or more.
_PRECISION, _ROUNDS = 1e-8, 2_000
# The weight of the sign beside the reports, and over-relaxation; these took the fewest rounds of those that were tried.
_PENALTY, _RELAXED = 1.0, 1.6


def subsets(attributes: Attributes) -> Iterable[Attributes]:
    """Yield all subsets, the smallest first.

    >>> list(subsets((0, 2)))
    [(), (0,), (2,), (0, 2)]
    """
    for size in range(len(attributes) + 1):
        yield from combinations(attributes, size)


@dataclass(frozen=True, eq=False)
class Sparse:
    """A matrix that has entries in each of its rows and of its columns: a row, a column and a number for each."""

    rows: Symbols
    columns: Symbols
    entries: Floats

    def times(self, x: Floats) -> Floats:
        """Return the product with x, of shape (columns, j)."""
        return _sums(self.rows, self.entries[:, np.newaxis] * x[self.columns])

    def transposed(self, y: Floats) -> Floats:
        """Return the product of the transposed matrix with y, of shape (rows, j)."""
        return _sums(self.columns, self.entries[:, np.newaxis] * y[self.rows])


def _sums(of: Symbols, numbers: Floats) -> Floats:
    """Sum the numbers, shape (entries, j), of each row, or column, that entries are of."""
    columns = numbers.shape[1]
    places = of[:, np.newaxis] * columns + np.arange(columns)
    return np.bincount(places.ravel(), numbers.ravel()).astype(np.float64, copy=False).reshape(-1, columns)


class Interactions(Design):
    """The centred tables of all sets of attributes that a view holds, the smallest first; the empty set is 1."""

    def __init__(self, sizes: Sequence[int], views: Sequence[Attributes]) -> None:
        self.sizes, self.views = tuple(sizes), tuple(views)
        self.sets = sorted({held for view in views for held in subsets(view)}, key=lambda held: (len(held), held))
        ends = np.cumsum([0, *(self.cells(held) for held in self.sets)]).tolist()
        pairs = zip(self.sets, ends, ends[1:], strict=False)
        self.places = {held: slice(first, end) for held, first, end in pairs}  # of each set, among the values
        self.size = ends[-1]

    def cells(self, attributes: Iterable[int]) -> int:
        """Return the number of cells of the table of some attributes."""
        return prod(self.sizes[attribute] for attribute in attributes)

    def rest(self, view: Attributes, held: Attributes) -> int:
        """Return k_(V - S)."""
        return self.cells(attribute for attribute in view if attribute not in held)

    @property
    def centre(self) -> Floats:
        return np.asarray(np.eye(1, self.size)[0])

    def onto(self, tables: Sequence[Attributes]) -> Sparse:
        """Return the matrix from interactions to these tables, one behind the other, of shape (cells, m)."""
        rows: list[Symbols] = []
        columns: list[Symbols] = []
        parts: list[Floats] = []
        first = 0
        for table in tables:
            cells = self.cells(table)
            for held in subsets(table):
                rows.append(first + np.arange(cells))
                columns.append(self.places[held].start + self._within(table, held))
                parts.append(np.full(cells, 1 / self.rest(table, held)))
            first += cells
        return Sparse(np.concatenate(rows), np.concatenate(columns), np.concatenate(parts))

    def _within(self, table: Attributes, held: Attributes) -> Symbols:
        """Return the cell in the table of a subset of each cell of a table."""
        shape = [self.sizes[attribute] for attribute in table]
        own = np.arange(self.cells(held)).reshape([n if a in held else 1 for a, n in zip(table, shape, strict=True)])
        return np.broadcast_to(own, shape).ravel()

    @cached_property
    def _matrix(self) -> Sparse:
        return self.onto(self.views)

    @cached_property
    def _ends(self) -> Symbols:
        return np.cumsum([self.cells(view) for view in self.views])

    def spread(self, values: Floats) -> list[Floats]:
        return np.split(self._matrix.times(values), self._ends[:-1])

    def gather(self, of_parts: Sequence[Floats]) -> Floats:
        return self._matrix.transposed(np.concatenate(of_parts))

    def solve(self, weights: Sequence[Floats] | Floats) -> Solve:
        """See the base class: on centred tables. Weights are one number for each view."""
        divisors = np.repeat(list(self.divisors(weights).values()), [self.cells(held) for held in self.sets])
        return lambda g: self.centred(g) / divisors[:, np.newaxis]

    def divisors(self, weights: Sequence[Floats] | Floats) -> dict[Attributes, float]:
        """Return D_S of each set."""
        found = dict.fromkeys(self.sets, 0.0)
        for view, weight in zip(self.views, weights, strict=True):
            for held in subsets(view):
                found[held] += float(weight) / self.rest(view, held)
        return found

    def centred(self, values: Floats) -> Floats:
        """Return the table of each set minus its means along each axis, for values of shape (m, j)."""
        found = np.zeros_like(values)
        for shape, places in self._of_shapes:
            tables = values[places].reshape(*places.shape[:1], *shape, values.shape[1])
            for axis in range(1, len(shape) + 1):
                tables = tables - tables.mean(axis=axis, keepdims=True)
            found[places] = tables.reshape(*places.shape, values.shape[1])
        return found

    @cached_property
    def _of_shapes(self) -> list[tuple[tuple[int, ...], Symbols]]:
        """The places of all tables of each shape, shape (tables, cells)."""
        found: dict[tuple[int, ...], list[Symbols]] = {}
        for held in self.sets[1:]:
            place = self.places[held]
            shape = tuple(self.sizes[attribute] for attribute in held)
            found.setdefault(shape, []).append(np.arange(place.start, place.stop))
        return [(shape, np.array(places)) for shape, places in found.items()]

    def nearest(self, weights: Sequence[Floats] | Floats, values: Floats) -> Floats:
        """See the base class: by alternating directions.

        Source: Boyd, Parikh, Chu, Peleato & Eckstein, "Distributed Optimization and Statistical Learning via the
        Alternating Direction Method of Multipliers" (2011): nearest consistent tables and nearest signs in turn. A
        projection of each table would be biased, and would make them inconsistent. What is left below 0 is mended by a
        little of equal shares.
        """
        cells = [self.cells(view) for view in self.views]
        solve, each = self.solve(weights), np.repeat(np.asarray(weights, dtype=np.float64), cells)[:, np.newaxis]
        unbiased, centre = values[:, np.newaxis], self.centre[:, np.newaxis]
        found, tables = unbiased, self._matrix.times(unbiased)
        signed, left = np.maximum(tables, 0.0), np.zeros_like(tables)
        for _ in range(_ROUNDS):
            consistent = centre + solve(self._matrix.transposed(each * (signed - left)))
            found = (unbiased + _PENALTY * consistent) / (1 + _PENALTY)
            tables = self._matrix.times(found)
            relaxed = _RELAXED * tables + (1 - _RELAXED) * signed
            before, signed = signed, np.maximum(relaxed + left, 0.0)
            left = left + relaxed - signed
            if max(np.abs(tables - signed).max(), np.abs(signed - before).max()) < _PRECISION:
                break
        equal, below = self._matrix.times(centre), tables < 0
        part = float(np.max(-tables[below] / (equal[below] - tables[below]), initial=0.0))
        return np.asarray((1 - part) * found + part * centre)[:, 0]

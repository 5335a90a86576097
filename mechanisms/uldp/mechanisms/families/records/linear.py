"""The unbiased tables of all views together, and what two attributes have to do with each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from uldp.mechanisms.decoders.table_of import table_from
from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.laws.interval import Ends, ratio_interval
from uldp.mechanisms.laws.law import Cumulants, chained
from uldp.mechanisms.pooling.cell_errors import CellErrors
from uldp.mechanisms.pooling.interactions import Attributes, Interactions
from uldp.mechanisms.pooling.pooled_linear import Pooled
from uldp.schemas.arrays import Floats
from uldp.schemas.table import INTERVAL_LEVEL, Basis, Table, TableName


@dataclass(frozen=True, eq=False, kw_only=True)
class TablesEstimate(Estimate):
    """Unbiased tables, one behind the other."""

    pooled: Pooled
    design: Interactions
    tables: Sequence[Attributes]  # the attributes of each table
    reports: Sequence[int]  # the number of reports of views that hold all attributes of each

    @cached_property
    def errors(self) -> CellErrors:
        """The cumulants of functions of cells."""
        return CellErrors(self.pooled, self.design)

    @cached_property
    def cumulants(self) -> Cumulants:
        """Shape (m,): those of each share."""
        return chained(map(self.errors.cumulants, self.tables))

    @cached_property
    def nearest(self) -> Floats:
        """Shape (m,): the shares of the tables of 0 or more that are nearest to what all views say."""
        return np.maximum(self.design.onto(self.tables).times(self.pooled.nearest[:, np.newaxis])[:, 0], 0.0)

    @cached_property
    def of_tables(self) -> dict[Attributes, slice]:
        """The place of each table."""
        ends = np.cumsum([0, *map(self.design.cells, self.tables)]).tolist()
        return dict(zip(self.tables, map(slice, ends, ends[1:]), strict=False))


# Gradients of several tests have so many numbers together.
_NUMBERS = 1 << 20


@dataclass(frozen=True, eq=False)
class Conditional:
    """The shares of the values of one attribute among the users with each value of another, the ``given`` one."""

    linear: TablesEstimate
    both: Attributes  # the two attributes, ascending
    given: int  # one of them

    def rows(self, values: Floats) -> Floats:
        """Return numbers of the table of both as a matrix, with a row for each value of the given one."""
        table = values.reshape([self.linear.design.sizes[attribute] for attribute in self.both])
        return table if self.both.index(self.given) == 0 else table.T

    def interval(self, moved: float = 0.0) -> Ends:
        """Return intervals of all shares, row by row; see ``ratio_interval``."""
        cells = self.rows(self.linear.values[self.linear.of_tables[self.both]])
        whole = np.repeat(self.linear.values[self.linear.of_tables[self.given,]], cells.shape[1])
        return ratio_interval(cells.ravel(), whole, self.cumulants, INTERVAL_LEVEL, moved=moved)

    def cumulants(self, ratios: Floats) -> Cumulants:
        """Return those of cell - ratio row, row by row."""
        table = ratios.reshape(self.rows(self.linear.values[self.linear.of_tables[self.both]]).shape)
        table = table if self.both.index(self.given) == 0 else table.T
        found = self.linear.errors.cumulants(self.both, (self.given,), table)
        return Cumulants(*(self.rows(each).ravel() for each in found))

    def table(self, shares: Mapping[Attributes, Floats], of: tuple[str, ...]) -> Table:
        """Return the table; ``of`` are the names, that of the given one first, which has the rows."""
        published = self.rows(shares[self.both])
        sums = published.sum(axis=1, keepdims=True)
        values = np.divide(published, sums, out=np.full_like(published, 1 / published.shape[1]), where=sums > 0)
        values = values.clip(0.0, 1.0)
        # By the delta method, at the published shares.
        spread = np.sqrt(self.cumulants(values).variance.reshape(values.shape))
        stderr = np.divide(spread, sums, out=np.ones_like(spread), where=sums > 0).clip(0.0, 1.0)
        return table_from(
            TableName.GIVEN,
            values.ravel(),
            stderr.ravel(),
            self.interval(),
            Basis.SCORE,
            of=of,
            shape=values.shape,
            n=self.linear.reports[self.linear.tables.index(self.both)],
        )


def independence(linear: TablesEstimate, pairs: Sequence[Attributes]) -> dict[Attributes, float]:
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
        while end < len(tests) and (end == first or (columns + len(tests[end][0])) * linear.design.size <= _NUMBERS):
            columns += len(tests[end][0])
            end += 1
        gradients = np.concatenate([gradient for _, gradient in tests[first:end]], axis=1)
        own, diagonal, means = linear.pooled.in_parts(gradients)
        for pair, (values, _) in zip(pairs[first:end], tests[first:end], strict=True):
            (of_cells, own), (of_means, means) = (np.split(each, [len(values)], axis=1) for each in (own, means))
            covariance = of_cells.T @ (diagonal[:, np.newaxis] * of_cells) - of_means.T @ of_means
            statistic = float(values @ np.linalg.solve(covariance, values))
            found[pair] = float(special.chdtrc(len(values), max(statistic, 0.0)))
        first = end
    return found


def _difference(linear: TablesEstimate, pair: Attributes) -> tuple[Floats, Floats]:
    """Return x_ij - x_i x_j of a pair, shape (free,), and their derivatives, shape (m, free)."""
    places, values = linear.design.places, linear.pooled.values
    first, second = (values[places[attribute,]] for attribute in pair)
    cells = (np.arange(len(first) - 1)[:, np.newaxis] * len(second) + np.arange(len(second) - 1)).ravel()
    a, b = np.divmod(cells, len(second))
    each, gradient = np.arange(len(cells)), np.zeros((linear.design.size, len(cells)))
    gradient[places[pair].start + cells, each] = 1.0
    gradient[places[pair[0],].start + a, each] = -second[b]
    gradient[places[pair[1],].start + b, each] = -first[a]
    return values[places[pair]][cells] - first[a] * second[b], gradient

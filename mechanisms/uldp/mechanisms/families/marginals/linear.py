"""The unbiased tables of all views together, with their errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from uldp.mechanisms.laws.cumulants import Cumulants, chained
from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.pooling.cell_errors import CellErrors
from uldp.mechanisms.pooling.interactions import Attributes, Interactions
from uldp.mechanisms.pooling.pooled_linear import Pooled
from uldp.schemas.arrays import Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class TablesEstimate(Estimate):
    """Unbiased tables, one behind the other.

    Attributes:
        pooled: The interactions.
        design: Their design.
        tables: The attributes of each table.
        reports: The number of reports of views that hold all attributes of each.
    """

    pooled: Pooled
    design: Interactions
    tables: Sequence[Attributes]
    reports: Sequence[int]

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
        nearest = self.design.nearest(self.pooled.weights, self.pooled.values)
        return np.maximum(self.design.onto(self.tables).times(nearest[:, np.newaxis])[:, 0], 0.0)

    @cached_property
    def of_tables(self) -> dict[Attributes, slice]:
        """The place of each table."""
        ends = np.cumsum([0, *map(self.design.cells, self.tables)]).tolist()
        return dict(zip(self.tables, map(slice, ends, ends[1:]), strict=False))

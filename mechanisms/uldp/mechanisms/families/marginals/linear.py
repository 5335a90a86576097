"""The unbiased tables of all views together, with their errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

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

    @classmethod
    def of_views(
        cls,
        views: Sequence[Estimate],
        weights: Sequence[Floats],
        design: Interactions,
        tables: Sequence[Attributes],
        repeats: float,
    ) -> Self:
        """Return those of the tables about which there are reports, with errors at the shares that all views know.

        Args:
            views: The estimate of each view.
            weights: The weight of each.
            design: Their design.
            tables: The attributes of each table.
            repeats: See ``Decoder.linear``.
        """
        pooled = Pooled.of(views, weights, design)
        shares = [own[:, 0].clip(0.0) for own in design.spread(pooled.values[:, np.newaxis])]
        pooled = pooled.at_shares([own / own.sum() for own in shares]).repeated(repeats)
        known = [table for table in tables if table in design.places]
        pairs = list(zip(design.views, views, strict=True))
        reports = [sum(int(own.n[0]) for view, own in pairs if set(table) <= set(view)) for table in known]
        onto = design.onto(known)
        found = pooled.mapped(onto.times(pooled.values[:, np.newaxis])[:, 0], onto.transposed, onto.times)
        return cls(
            found.values,
            np.repeat(reports, [design.cells(table) for table in known]),
            *(found.parts, found.onto, found.stacked, found.places),
            pooled=pooled,
            design=design,
            tables=known,
            reports=reports,
        )

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

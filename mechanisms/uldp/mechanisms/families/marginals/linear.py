"""The unbiased tables of all views together, with their errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from uldp.mechanisms.decoders.pure import PureDecoder, ShareEstimate
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


def view_weight(decoder: PureDecoder, n: int) -> float:
    """Return the weight of a view with n reports: the inverse of its variance at equal shares.

    It is that in a direction in which shares sum to 0, and depends on no count, so that the estimate is unbiased.
    """
    size = decoder.channel.size
    return float((1 - 1 / size) / np.mean(decoder.forecast(n) ** 2))


def tables_estimate(
    sizes: Sequence[int],
    views: Sequence[Attributes],
    decoders: Sequence[PureDecoder],
    estimates: Sequence[ShareEstimate | None],
    tables: Sequence[Attributes],
    repeats: float = 0.0,
) -> TablesEstimate:
    """Return those of the tables about which there are reports, with their errors at the shares that all views know.

    Args:
        sizes: The number of values of each attribute.
        views: The attributes of each view.
        decoders: The decoder of each.
        estimates: The estimate of each; None without reports.
        tables: The attributes of each table.
        repeats: See ``Decoder.linear``.

    Raises:
        ValueError: if no view has reports.
    """
    there = [(view, decoder, own) for view, decoder, own in zip(views, decoders, estimates, strict=True) if own]
    if not there:
        raise ValueError("no view has reports, so there is no estimate")
    design = Interactions(sizes, [view for view, _, _ in there])
    weights = [np.asarray(view_weight(decoder, int(own.n[0]))) for _, decoder, own in there]
    pooled = Pooled.of([own for _, _, own in there], weights, design)
    shares = [own[:, 0].clip(0.0) for own in design.spread(pooled.values[:, np.newaxis])]
    pooled = pooled.at_shares([own / own.sum() for own in shares]).repeated(repeats)
    known = [table for table in tables if table in design.places]
    reports = [sum(int(own.n[0]) for view, _, own in there if set(table) <= set(view)) for table in known]
    onto = design.onto(known)
    found = pooled.mapped(onto.times(pooled.values[:, np.newaxis])[:, 0], onto.transposed, onto.times)
    n = np.repeat(reports, [design.cells(table) for table in known])
    return TablesEstimate(
        found.values,
        n,
        found.parts,
        found.onto,
        found.stacked,
        found.places,
        pooled=pooled,
        design=design,
        tables=known,
        reports=reports,
    )

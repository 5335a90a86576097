"""The unbiased tables of all views together, with their errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from uldp.mechanisms.decoders.pure import PureDecoder, PureLinear
from uldp.mechanisms.kernels.sparse import Sparse
from uldp.mechanisms.pooling.interaction_errors import Function, InteractionErrors
from uldp.mechanisms.pooling.interactions import Attributes, Interactions
from uldp.mechanisms.pooling.pooled_linear import PooledLinear
from uldp.mechanisms.protocol.channel import Channel
from uldp.mechanisms.protocol.linear import LowRankLinear, normal
from uldp.schemas.arrays import Counts, Floats


@dataclass(frozen=True, eq=False)
class TablesLinear:
    """Unbiased tables, one behind the other; see ``Linear``.

    Attributes:
        pooled: The interactions.
        tables: The attributes of each table.
        reports: The number of reports of views that hold all attributes of each.
    """

    pooled: PooledLinear
    tables: Sequence[Attributes]
    reports: Sequence[int]

    @cached_property
    def _onto(self) -> Sparse:
        return self.design.onto(self.tables)

    @property
    def design(self) -> Interactions:
        """The interactions."""
        assert isinstance(self.pooled.design, Interactions)
        return self.pooled.design

    @cached_property
    def errors(self) -> InteractionErrors:
        """The covariances of functions of cells."""
        parts = [part for part in self.pooled.parts if isinstance(part, LowRankLinear)]
        return InteractionErrors(self.design, self.pooled.weights, parts)

    @cached_property
    def values(self) -> Floats:
        """Shape (m,): the shares."""
        return self.of_interactions(self.pooled.values)

    @cached_property
    def nearest(self) -> Floats:
        """Shape (m,): the shares of the tables of 0 or more that are nearest to what all views say."""
        shares = self.of_interactions(self.design.nearest(self.pooled.weights, self.pooled.values))
        return np.maximum(shares, 0.0)

    def of_interactions(self, interactions: Floats) -> Floats:
        """Return the tables that are made of interactions."""
        return self._onto.times(interactions[:, np.newaxis])[:, 0]

    @cached_property
    def variance(self) -> Floats:
        """Shape (m,): the variances of the shares."""
        shares = [(table, self.errors.share(table)) for table in self.tables]
        return np.concatenate([self.covariance(table, share, share).ravel() for table, share in shares])

    def covariance(self, table: Attributes, first: Function, second: Function) -> Floats:
        """Return the covariance of two functions of each cell of a table; see ``InteractionErrors``."""
        return self.errors.covariance(table, first, second)

    @property
    def n(self) -> Counts:
        """Shape (m,): the number of reports about each."""
        return np.repeat(self.reports, [self.design.cells(table) for table in self.tables])

    def interval(self, coverage: float) -> tuple[Floats, Floats]:
        """Return normal intervals: each share is a sum over many cells of several views."""
        return normal(self.values, self.variance)(coverage)

    def times(self, w: Floats) -> Floats:
        """Return Cov @ w."""
        return self._onto.times(self.pooled.times(self._onto.transposed(w)))


def view_weight(decoder: PureDecoder, n: int) -> float:
    """Return the weight of a view with n reports: the inverse of its variance at equal shares.

    It is that in a direction in which shares sum to 0, and depends on no count, so that the estimate is unbiased.
    """
    size = decoder.channel.size
    return float((1 - 1 / size) / np.mean(decoder.forecast(n) ** 2))


def at_shares(part: PureLinear, shares: Floats) -> LowRankLinear:
    """Return an estimate with its errors at some shares, which are better known than those of this part alone.

    The covariance of sums of shares whose factors sum to 0 is that of diag(d) - u u^T; see ``Channel.moments``. Other
    sums are of no use here, because the shares sum to 1.

    Args:
        part: The estimate.
        shares: Shape (m,): from 0 to 1.
    """
    diagonal, u = diagonal_and_rank_one(part.channel, shares, int(part.reports))
    return LowRankLinear(part.values, diagonal - u**2, part.n, normal(part.values, diagonal), u[np.newaxis])


def diagonal_and_rank_one(channel: Channel, shares: Floats, n: int) -> tuple[Floats, Floats]:
    """Return d and u of n reports that support a fixed number of symbols each, of which all are protected."""
    m, scale = channel.support_probability(shares), n * channel.gain**2
    a, b, _ = channel.pair_probabilities() if channel.supported > 1 else (0.0, 0.0, 0.0)
    return (m - b - 2 * (a - b) * shares) / scale, m / np.sqrt(scale)


def tables_linear(
    sizes: Sequence[int],
    views: Sequence[Attributes],
    decoders: Sequence[PureDecoder],
    parts: Sequence[PureLinear | None],
    tables: Sequence[Attributes],
) -> TablesLinear:
    """Return those of the tables about which there are reports.

    Args:
        sizes: The number of values of each attribute.
        views: The attributes of each view.
        decoders: The decoder of each.
        parts: The estimate of each; None without reports.
        tables: The attributes of each table.

    Raises:
        ValueError: if no view has reports.
    """
    there = [each for each in zip(views, decoders, parts, strict=True) if each[2] is not None]
    if not there:
        raise ValueError("no view has reports, so there is no estimate")
    design = Interactions(sizes, [view for view, _, _ in there])
    weights = [np.asarray(view_weight(decoder, int(part.reports))) for _, decoder, part in there if part]
    once = [part for _, _, part in there if part]
    shares = design.spread(PooledLinear(once, weights, design).values[:, np.newaxis])
    low_rank = [at_shares(part, own[:, 0].clip(0.0, 1.0)) for part, own in zip(once, shares, strict=True)]
    known = [table for table in tables if table in design.places]
    reports = [sum(int(part.reports) for view, _, part in there if part and set(table) <= set(view)) for table in known]
    return TablesLinear(PooledLinear(low_rank, weights, design), known, reports)

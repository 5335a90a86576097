"""Shares of bins, shares of ranges, shares below edges, and quantiles, from the reports of all levels of a tree."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.decoders.pure import PureDecoder, ShareEstimate
from uldp.mechanisms.decoders.strata_decoder import SharesOfParts
from uldp.mechanisms.decoders.table_of import table_from, table_of
from uldp.mechanisms.families.block.distribution import QUANTILE_LEVELS
from uldp.mechanisms.families.tree.linear import TreeEstimate, published_shares
from uldp.mechanisms.inference.forecast import equal_shares, falling_shares
from uldp.mechanisms.laws.interval import normal_quantile
from uldp.mechanisms.laws.law import Cumulants
from uldp.mechanisms.numbers.outputs import Shape
from uldp.mechanisms.pooling.tree import Tree
from uldp.mechanisms.protocol.decoder import Cost, heaviest_fact
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.specs.kinds import Kind, Range
from uldp.schemas.table import INTERVAL_LEVEL, Basis, Table, TableName

#: Early panes have no estimates of more bins, which take a quarter of a second or more. 1,024 take a fortieth.
MOST_EARLY_BINS = 1 << 14
# The table of shares below edges has at most so many entries: a page has no room for more.
_MOST_EDGES = 256
_SEED = 20


@dataclass(frozen=True)
class Bins:
    """The bins of a domain."""

    kind: Kind
    number: int

    def place(self, position: Floats) -> Floats:
        """Return what is at positions among the bins: numbers, or indices of values."""
        if self.kind.ends is None:
            return np.minimum(np.floor(position), self.number - 1)
        low, high = self.kind.ends
        return low + (high - low) * (position / self.number)

    def edges(self) -> tuple[list[int], tuple[str, ...]]:
        """Return the edges of the table of shares below edges, at most 256, and what is below each, as text."""
        step = -(-self.number // _MOST_EDGES)
        edges = list(range(step, self.number, step))
        whole = self.kind.ends is None
        return edges, tuple(self.kind.bin_text(edge - 1 if whole else edge, self.number) for edge in edges)


class TreeDecoder(SharesOfParts):
    """Estimates the shares of bins, and with them of ranges, by least squares over all levels.

    - "empirical": unbiased; shares of bins may be negative.
    - "auto": shares of 0 or more, with the sum 1: a mixture of those that are nearest to what all levels report and of
      smooth ones, by what each half of the reports says of fits to the other half. See ``estimators.ordered``.

    Intervals lie around the unbiased estimate, for both. That of a quantile at q is the hull of the bins of which the
    share below the lower edge may be q or less, and that below the upper edge q or more: the estimate crosses q several
    times.
    """

    quantity = TableName.SHARE
    bins_estimator, smooths = "auto", False

    def __init__(
        self, strata: Strata, decoders: Sequence[PureDecoder], tree: Tree, bins: Bins, ranges: Sequence[Range]
    ) -> None:
        super().__init__([f"blocks of {width:,}" for width in tree.widths], decoders, strata)
        self._tree, self.bins, self._ranges = tree, bins, tuple(ranges)

    def cost(self, estimator: str) -> Cost:
        return Cost.PANE if self.bins.number <= MOST_EARLY_BINS else Cost.FINAL

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> TreeEstimate:
        """Return the unbiased estimate of the shares of bins; ValueError also if no report is about a bin."""
        return self._pooled(self.estimates(cells, n)).repeated(repeats)

    def _pooled(self, levels: Sequence[ShareEstimate | None]) -> TreeEstimate:
        """Return the estimate from the levels that have reports, with its errors at the nearest possible shares."""
        if levels[-1] is None:
            raise ValueError("no report is about a bin, so there is no estimate of the bins")
        of_levels = zip(self._tree.widths, self.precisions, levels, strict=True)
        there = [(width, np.asarray(precision * own.n[0]), own) for width, precision, own in of_levels if own]
        widths, weights, estimates = zip(*there, strict=True)
        design = Tree(self._tree.size, widths)
        found = TreeEstimate.of(estimates, weights, design)
        return found.at_shares([own[:, 0] for own in design.spread(found.nearest[:, np.newaxis])])

    @property
    def number_of_bins(self) -> int:
        return self.bins.number

    def range_table(
        self, cells: Counts, n: int, ranges: Sequence[Range], estimator: str, repeats: float = 0.0
    ) -> Table:
        self.require(estimator)
        linear = self.linear(cells, n, repeats)
        return self._range_table(linear, self._shares(linear, estimator), ranges)

    def quantile_table(
        self, cells: Counts, n: int, levels: Sequence[float], estimator: str, repeats: float = 0.0
    ) -> Table:
        self.require(estimator)
        linear = self.linear(cells, n, repeats)
        return self._quantile_table(linear, self._shares(linear, estimator), self._below(linear), levels)

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        """Return ``share``, ``range``, ``below`` and ``quantile``; none if no report is about a bin."""
        self.require(estimator)
        levels = self.estimates(cells, n)
        if levels[-1] is None:
            return ()
        linear = self._pooled(levels).repeated(repeats)
        shares, cumulants = self._shares(linear, estimator), self._below(linear)
        ranges = [self._range_table(linear, shares, self._ranges)] if self._ranges else []
        return (
            table_of(TableName.SHARE, shares, linear, simultaneous=self.simultaneous, whole=True),
            *ranges,
            self._below_table(linear, shares, cumulants),
            self._quantile_table(linear, shares, cumulants, QUANTILE_LEVELS),
        )

    def _shares(self, linear: TreeEstimate, estimator: str) -> Floats:
        return linear.values if estimator == "empirical" else published_shares(linear)

    def _below(self, linear: TreeEstimate) -> Cumulants:
        return linear.of_edges(np.array(self.bins.edges()[0]))

    def _range_table(self, linear: TreeEstimate, shares: Floats, ranges: Sequence[Range]) -> Table:
        w = self._columns([(each.first, each.end) for each in ranges])
        return table_of(TableName.RANGE, shares @ w, linear, w=w, keys=tuple(each.text for each in ranges))

    def _below_table(self, linear: TreeEstimate, shares: Floats, cumulants: Cumulants) -> Table:
        edges, keys = self.bins.edges()
        own, unbiased = Cumulants(*(each[edges] for each in cumulants)), linear.below[edges]
        return table_from(
            TableName.BELOW,
            np.cumsum(shares)[np.array(edges) - 1],
            np.sqrt(own.variance),
            linear.ends(unbiased, own, INTERVAL_LEVEL),
            Basis.SCORE,
            unbiased=unbiased,
            keys=keys,
            n=int(linear.n[0]),
        )

    def _quantile_table(
        self, linear: TreeEstimate, shares: Floats, cumulants: Cumulants, levels: Sequence[float]
    ) -> Table:
        at, (least, most) = np.array(levels), linear.ends(linear.below, cumulants, INTERVAL_LEVEL)
        inside = (least[:-1] <= at[:, np.newaxis]) & (most[1:] >= at[:, np.newaxis])
        first, last = inside.argmax(axis=1), len(shares) - inside[:, ::-1].argmax(axis=1)
        ascending = np.maximum.accumulate(np.concatenate([[0.0], np.cumsum(shares)]))
        asked = at * ascending[-1]
        above = np.searchsorted(ascending, asked, side="left").clip(1, len(shares))
        step, rest = ascending[above] - ascending[above - 1], asked - ascending[above - 1]
        inner = np.divide(rest, step, out=np.full(len(at), 0.5), where=step > 0).clip(0.0, 1.0)
        # The last value of a hull is the one before its end.
        ends = above - 1 + inner, first, last - (1 if self.bins.kind.ends is None else 0)
        values, low, high = (self.bins.place(each.astype(np.float64)) for each in ends)
        return table_from(
            TableName.QUANTILE,
            values,
            (np.maximum(high, values) - np.minimum(low, values)) / (2 * normal_quantile((1 + INTERVAL_LEVEL) / 2)),
            (low, high),
            Basis.SCORE,
            bounds=(-np.inf, np.inf),
            keys=tuple(map(str, levels)),
            n=int(linear.n[0]),
        )

    def _columns(self, ranges: Sequence[Sequence[int]]) -> Floats:
        """Return a column of zeros and ones for each range, from its first bin until its end, shape (m, j)."""
        bins, ends = np.arange(self.bins.number)[:, np.newaxis], np.array(ranges)
        return ((bins >= ends[:, 0]) & (bins < ends[:, 1])).astype(np.float64)

    def heaviest(self, table: Table) -> float | None:
        """See the base class; of quantiles it is not known."""
        if table.name is TableName.RANGE:
            return self._weight([(each.first, each.end) for each in self._ranges])
        if table.name is TableName.BELOW:
            return self._weight([(0, edge) for edge in self.bins.edges()[0]])
        return self._weight(self._first_and_last) if table.name is TableName.SHARE else None

    @property
    def _first_and_last(self) -> list[tuple[int, int]]:
        """The bins in the fullest and in the emptiest blocks, of which others are between."""
        return [(0, 1), (self.bins.number - 1, self.bins.number)]

    def _weight(self, ranges: Sequence[Sequence[int]]) -> float:
        """Return the number of users for whom the heaviest report counts in the shares of ranges."""
        weights = [np.asarray(each * share) for each, share in zip(self.precisions, self.shares, strict=True)]
        own = self._tree.weigh(weights, self._tree.spread(self._tree.solve(weights)(self._columns(ranges))))
        return max(self.heaviest_in(level, of_level) for level, of_level in enumerate(own))

    def forecast(self, n: int) -> Floats:
        return np.sqrt(self._as_expected(equal_shares(self.bins.number), n).variance)

    def _as_expected(self, r: Floats, n: int) -> TreeEstimate:
        """Return the estimate of n reports whose counts are as expected for the shares r."""
        levels = [
            decoder.linear_of(np.rint(decoder.channel.support_probability(own) * reports).astype(np.int64), reports)
            for (decoder, reports), own in zip(self.expected(n), self._of_levels(r), strict=True)
        ]
        return self._pooled(levels)

    def _of_levels(self, r: Floats) -> list[Floats]:
        return [own[:, 0] for own in self._tree.spread(r[:, np.newaxis])]

    def simulate(self, r: Floats, n: int, estimator: str, rng: Generator) -> Floats:
        """Draw a window of n reports, and return the errors of the published shares of bins, shape (m,)."""
        return self._shares(self._pooled(self.draw(self._of_levels(r), n, rng)), estimator) - r

    def simulate_bins(self, shape: Shape, n: int, rng: Generator) -> Floats:
        """See ``SimulatesBins``."""
        return self.simulate(shape.of_bins(self.bins.number), n, self.bins_estimator, rng)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        for decoder, width, share in zip(self.decoders, self._tree.widths, self.shares, strict=True):
            blocks, mechanism = decoder.channel.size, "rr" if decoder.channel.one_symbol else "pgr"
            yield "level", f"{blocks:,} blocks of {width:,}: {share:.4g} of the reports, by {mechanism}"
        yield heaviest_fact(self._weight(self._first_and_last), n)
        linear = self._as_expected(falling_shares(self.bins.number), n)
        rng = np.random.default_rng(_SEED)
        drawn = [sorted(rng.choice(self.bins.number + 1, 2, replace=False).tolist()) for _ in range(16)]
        worst = np.sqrt(linear.variance_of(self._columns(drawn))).mean()
        edges = np.sqrt(self._below(linear).variance).max()
        of_bins = f"of a bin at most {np.sqrt(linear.variance).max():.3g}"
        errors = f"standard error of a range {worst:.3g}, of a share below an edge at most {edges:.3g}, {of_bins}"
        yield "errors", f"at n = {n:,}, if the shares fall as 1, 1/2, 1/3, ...: {errors}"

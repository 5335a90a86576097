"""Tables of attributes, conditional tables, and tests of independence, from the reports about all views."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from uldp.mechanisms.decoders.pure import PureDecoder, ShareEstimate
from uldp.mechanisms.decoders.strata_decoder import SharesOfParts
from uldp.mechanisms.decoders.table_of import coverage_of, table_from, table_of
from uldp.mechanisms.families.records.linear import Conditional, TablesEstimate, independence
from uldp.mechanisms.families.records.views import squared_error
from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.laws.interval import Ends
from uldp.mechanisms.pooling.cell_errors import scores
from uldp.mechanisms.pooling.interactions import Attributes, Interactions
from uldp.mechanisms.pooling.pooled_linear import Pooled
from uldp.mechanisms.protocol.decoder import Cost, Part, heaviest_fact
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.table import Basis, Table, TableName

#: Early panes have no estimates of views with more cells, counted once for each of their subsets: they take a second.
MOST_EARLY_CELLS = 1 << 14
# Dependences with more degrees of freedom, or more numbers in their columns, are not tested.
_MOST_FREE, _MOST_NUMBERS = 400, 1 << 24


@dataclass(frozen=True)
class Asked:
    """What is asked for."""

    names: tuple[str, ...]  # the name of each attribute
    tables: tuple[Attributes, ...]  # the attributes of each table, those of one attribute first, in their order
    given: tuple[tuple[int, int], ...]  # the attributes of each conditional table: what is given, and what is asked for


class MarginalsDecoder(SharesOfParts):
    """Estimates tables of attributes, each by the interactions in it, and each interaction by all views that hold it.

    - "empirical": unbiased; shares may be negative.
    - "auto": the tables of shares of 0 or more that are nearest to what all views say.

    Tables of both are consistent: sums over an attribute are the table of the others. Intervals lie around the unbiased
    estimate, for both.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        views: Sequence[Attributes],
        strata: Strata,
        decoders: Sequence[PureDecoder],
        asked: Asked,
    ) -> None:
        super().__init__(strata.names, decoders, strata)
        self._sizes, self._views, self.asked = tuple(sizes), tuple(views), asked
        self._about: int | None = None

    def _names(self, attributes: Attributes) -> tuple[str, ...]:
        return tuple(self.asked.names[attribute] for attribute in attributes)

    def cost(self, estimator: str) -> Cost:
        cells = sum(prod(2 * self._sizes[attribute] for attribute in view) for view in self._views)
        return Cost.PANE if cells <= MOST_EARLY_CELLS else Cost.FINAL

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        """Return the unbiased tables, those about which there are reports; of ``variables``, that of one attribute."""
        found = self._pooled(self.estimates(cells, n), repeats)
        return found if self._about is None else found.at(found.of_tables[self._about,])

    def _pooled(self, views: Sequence[ShareEstimate | None], repeats: float) -> TablesEstimate:
        """Return those of the tables about which there are reports, with errors at the shares that all views know."""
        of_views = zip(self._views, self._precisions, views, strict=True)
        there = [(view, np.asarray(precision * own.n[0]), own) for view, precision, own in of_views if own]
        held, weights, estimates = zip(*there, strict=True)
        design = Interactions(self._sizes, held)
        pooled = Pooled.of(estimates, weights, design)
        possible = [own[:, 0].clip(0.0) for own in design.spread(pooled.values[:, np.newaxis])]
        pooled = pooled.at_shares([own / own.sum() for own in possible]).repeated(repeats)
        known = [table for table in self.asked.tables if table in design.places]
        reports = [sum(int(own.n[0]) for view, _, own in there if set(table) <= set(view)) for table in known]
        onto = design.onto(known)
        found = pooled.mapped(onto.times(pooled.values[:, np.newaxis])[:, 0], onto.transposed, onto.times)
        return TablesEstimate(
            found.values,
            np.repeat(reports, [design.cells(table) for table in known]),
            *(found.parts, found.onto, found.stacked, found.places),
            pooled=pooled,
            design=design,
            tables=known,
            reports=reports,
        )

    def variables(self, cells: Counts, n: int, names: Sequence[str]) -> Iterator[Part]:
        for name in names if n else ():
            about = copy(self)
            about._about = self.asked.names.index(name)
            yield Part(name, about, cells, n)

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        self.require(estimator)
        views = self.estimates(cells, n)
        linear = self._pooled(views, repeats)
        published = linear.values if estimator == "empirical" else linear.nearest
        shares = {table: published[linear.of_tables[table]] for table in linear.tables}
        # One search for the ends of all tables takes about as long as for one.
        coverages = {table: coverage_of(len(of), self.simultaneous) for table, of in shares.items()}
        ends = {coverage: linear.interval(coverage) for coverage in set(coverages.values())}
        found = [
            self._share_table(linear, table, of, ends[coverages[table]], self._alone(table, views, repeats))
            for table, of in shares.items()
        ]
        for given, asked in self.asked.given:
            if (both := tuple(sorted((given, asked)))) in shares:
                found.append(Conditional(linear, both, given).table(shares, self._names((given, asked))))
        tested = independence(linear, self._tested(linear))
        if tested:
            keys = tuple(" x ".join(self._names(pair)) for pair in tested)
            values = np.array(list(tested.values()))
            found.append(Table(TableName.INDEPENDENCE, values, np.zeros(len(values)), n, shape=values.shape, keys=keys))
        return tuple(found)

    def _share_table(
        self, linear: TablesEstimate, table: Attributes, shares: Floats, ends: Ends, alone: Estimate | None
    ) -> Table:
        shape = tuple(self._sizes[attribute] for attribute in table)
        fields: dict[str, Any] = {
            "simultaneous": self.simultaneous,
            "whole": True,
            "of": self._names(table),
            "shape": shape,
        }
        if alone is not None:
            return table_of(TableName.SHARE, shares, alone, **fields)
        place = linear.of_tables[table]
        low, high = (end[place] for end in ends)
        fields |= {"unbiased": linear.values[place], "n": int(linear.n[place.start])}
        stderr = np.sqrt(linear.variance[place])
        return table_from(TableName.SHARE, shares, stderr, (low, high), Basis.SCORE, **fields)

    def _alone(self, table: Attributes, views: Sequence[ShareEstimate | None], repeats: float) -> ShareEstimate | None:
        """Return the estimate of a view that is a table alone, of a channel whose shares sum to 1; else None."""
        about = [number for number, view in enumerate(self._views) if {*view} & {*table}]
        (first, *others) = about
        if others or self._views[first] != table or self.decoders[first].channel.independent_bits:
            return None
        own = views[first]
        return own and own.repeated(repeats)

    def _tested(self, linear: TablesEstimate) -> list[Attributes]:
        sizes, numbers = self._sizes, linear.design.size
        free = {pair: (sizes[pair[0]] - 1) * (sizes[pair[1]] - 1) for pair in linear.tables if len(pair) == 2}
        return [pair for pair, of in free.items() if of <= _MOST_FREE and of * numbers <= _MOST_NUMBERS]

    def part_of(self, table: Table) -> None:
        """See the base class: a table is of all views, and names its attributes."""

    def heaviest(self, table: Table) -> float | None:
        """See the base class. A forger chooses the view and the payload; see ``forged_ends``, too."""
        if table.name is not TableName.SHARE:
            return None
        attributes = self._attributes(table)
        return self._about_all(attributes) * self._weight(attributes)

    def forged_ends(self, table: Table, cells: Counts, forged: float) -> Ends | None:
        """See the base class: a report moves cell - v row of a share v by no more than both of them."""
        if table.name is not TableName.GIVEN or table.low is None or table.high is None:
            return super().forged_ends(table, cells, forged)
        given, _ = named = self._attributes(table)
        both = tuple(sorted(named))
        weight = self._about_all(both) * (self._weight(both) + self._weight((given,)))
        linear = self._pooled(self.estimates(cells, sum(n for _, n in self.strata.split_cells(cells))), 0.0)
        shares = Conditional(linear, both, given)
        honest, wider = (shares.interval(moved) for moved in (0.0, min(forged / table.n, 1.0) * weight))
        return table.low - (honest[0] - wider[0]), table.high + (wider[1] - honest[1])

    def _attributes(self, table: Table) -> Attributes:
        return tuple(self.asked.names.index(name) for name in table.of)

    def _about_all(self, attributes: Attributes) -> float:
        """Return the share of the reports that are about all of some attributes."""
        of_views = zip(self._views, self.shares, strict=True)
        return sum(share for view, share in of_views if set(attributes) <= set(view))

    def _weight(self, table: Attributes) -> float:
        """Return for how many of all reports the heaviest counts in a cell of a table.

        How much each cell of its view counts depends on which of its values are those of the cell of the table.
        """
        heaviest = []
        for number, view in enumerate(self._views):
            if common := tuple(sorted({*view} & {*table})):
                of_matched = scores(self._design, self._divisors, view, self._weights[number], table)
                most = self.most_supported(number)
                cells = [min(self._unmatched(view, common, matched), most) for matched in of_matched]
                own = np.repeat(list(of_matched.values()), cells)
                heaviest.append(self.heaviest_in(number, own[:, np.newaxis]))
        return max(heaviest)

    def _unmatched(self, view: Attributes, common: Attributes, matched: Attributes) -> int:
        """Return how many cells of a view match another one in some of the common attributes alone."""
        others = (self._sizes[attribute] - 1 for attribute in common if attribute not in matched)
        return prod(others) * self._design.rest(view, common)

    @cached_property
    def _design(self) -> Interactions:
        return Interactions(self._sizes, self._views)

    @cached_property
    def _precisions(self) -> list[float]:
        """Those of ``precisions`` in a direction in which the shares of a view sum to 0."""
        cells = map(self._design.cells, self._views)
        return [(1 - 1 / size) * precision for size, precision in zip(cells, self.precisions, strict=True)]

    @cached_property
    def _weights(self) -> list[float]:
        """The weight of each view of one report, by its share."""
        return [share * precision for share, precision in zip(self.shares, self._precisions, strict=True)]

    @cached_property
    def _divisors(self) -> dict[Attributes, float]:
        return self._design.divisors(np.array(self._weights))

    def forecast(self, n: int) -> Floats:
        return np.concatenate(
            [np.full(self._design.cells(table), np.sqrt(self._variance(table) / n)) for table in self.asked.tables]
        )

    def distances(self, n: int) -> Mapping[int, float]:
        """Return the root mean square l2 error of tables of so many attributes, at equal shares."""
        squares: dict[int, list[float]] = {}
        for table in self.asked.tables:
            squares.setdefault(len(table), []).append(squared_error(self._design, table, self._divisors) / n)
        return {together: float(np.sqrt(np.mean(of))) for together, of in squares.items()}

    def _variance(self, table: Attributes) -> float:
        """Return the variance of a cell of a table of one report at equal shares."""
        return squared_error(self._design, table, self._divisors) / self._design.cells(table)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        numbers: dict[tuple[int, int, int], list[tuple[str, float]]] = {}
        for view, decoder, name, share in zip(self._views, self.decoders, self.part_names, self.shares, strict=True):
            key = len(view), self._design.cells(view), decoder.channel.supported
            numbers.setdefault(key, []).append((name, share))
        for (together, cells, supported), of in numbers.items():
            first = of[0][0] if len(of) == 1 else f"{len(of)} of {together} attributes, as {of[0][0]}"
            reports = max(round(n * of[0][1]), 1)
            supports = f", each report for {supported} of them" if supported > 1 else ""
            yield "views", f"{first}: {cells:,} cells{supports}; about {reports:,} reports each"
        yield heaviest_fact(max(map(self._weight, self.asked.tables)), n)
        by_size: dict[int, list[float]] = {}
        for table in self.asked.tables:
            by_size.setdefault(len(table), []).append(float(np.sqrt(self._variance(table) / n)))
        texts = [f"{max(errors):.3g} of {size} attribute{'s' if size > 1 else ''}" for size, errors in by_size.items()]
        yield "errors", f"standard error of a share at n = {n:,} at most {', '.join(texts)}, if shares are equal"

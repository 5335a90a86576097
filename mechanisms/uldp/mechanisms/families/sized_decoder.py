"""The decoder of collections in which some of the users report the size of their set in place of its items."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.decoders.strata_decoder import StrataDecoder
from uldp.mechanisms.encodings.size_encoding import SizeRanges
from uldp.mechanisms.kernels.intervals import lower_tail
from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.laws.interval import Ends
from uldp.mechanisms.protocol.decoder import Decoder, Part, require_reports, two_digits
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.table import Table, TableName

#: A window is flagged if more than this part of the users hold more items than a device reports.
MOST_CUT = 0.1


class SizedDecoder(Decoder):
    """Reads counts of items, or of keys, by their own decoder, and those of sizes beside them.

    The tables are those of the items, and ``size``: the share of users whose set has a size of each range. The number
    of reports of each part is its own.

    Args:
        items: The decoder of the items, of keys, or of strings.
        sizes: The decoder of the ranges, of reports by randomized response.
        ranges: The ranges.
        strata: The mechanism: the part of the items, and that of the sizes.
    """

    def __init__(self, items: Decoder, sizes: PureDecoder, ranges: SizeRanges, strata: Strata) -> None:
        self._items, self._sizes, self._ranges, self._strata = items, sizes, ranges, strata
        self._parts = StrataDecoder(("items", "sizes"), (items, sizes), strata)
        self.estimators = items.estimators

    @property
    def without_sizes(self) -> Decoder:
        """The decoder of the items."""
        return self._items

    def check(self, cells: Counts, n: int) -> None:
        """Raise ValueError if no n reports give these cells."""
        self._parts.check(cells, n)

    def reports(self, cells: Counts, n: int) -> tuple[int, ...]:
        """Return the number of reports about items, and about sizes."""
        return self._parts.reports(cells, n)

    def of_items(self, cells: Counts, n: int) -> tuple[Counts, int]:
        """Return the cells of the reports about items, and their number."""
        items, _ = self._parts.parts(cells, n)
        return items.cells, items.n

    def variables(self, cells: Counts, n: int, names: Sequence[str]) -> Iterator[Part]:
        """Yield the items alone; see the base class."""
        of_items = self.of_items(cells, n)
        if of_items[1]:
            yield Part("", self._items, *of_items)

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        """Return the unbiased estimate of the shares of items, or of keys.

        Raises:
            ValueError: if there are no reports about items, or the cells do not fit.
        """
        return self._items.linear(*self.of_items(cells, n), repeats)

    def tested(self, table: Table) -> int:
        """See the base class."""
        return self._items.tested(table)

    def heaviest(self, table: Table) -> float | None:
        """See the base class."""
        return self._sizes.heaviest(table) if table.name is TableName.SIZE else self._items.heaviest(table)

    def forged_ends(self, table: Table, cells: Counts, forged: float) -> Ends | None:
        """See the base class."""
        if table.name is TableName.SIZE:
            return self._sizes.forged_ends(table, cells, forged)
        return self._items.forged_ends(table, self._strata.split_cells(cells)[0][0], forged)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Return those of the parts, and that of more than ``MOST_CUT`` of sets that are cut.

        The number of reports of large sizes is binomial: randomized response says each such size with q if a set is
        small, and also the true one with p - q if it is large.
        """
        found = dict(self._parts.p_values(cells, n))
        _, sizes = self._parts.parts(cells, n)
        if sizes.n:
            p, q, first = float(self._sizes.channel.p[0]), float(self._sizes.channel.q[0]), self._ranges.first_cut
            expected = q * (self._ranges.count - first) + (p - q) * MOST_CUT
            found[Flag.SETS_CUT] = lower_tail(int(sizes.cells[:first].sum()), sizes.n, 1 - expected)
        return found

    def forecast(self, n: int) -> Floats:
        """Return the standard errors of the shares of items at the number of their reports to expect."""
        return self._items.forecast(self._of_items(n))

    def _of_items(self, n: int) -> int:
        return max(round(n * float(self._strata.shares[0])), 1)

    def _of_sizes(self, n: int) -> int:
        return max(n - self._of_items(n), 1)

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        """Return the tables of items or keys, and ``size``; see the class.

        Raises:
            ValueError: if ``n`` is not positive, the cells do not fit, or the decoder has no such estimator.
        """
        require_reports(n)
        self.require(estimator)
        items, sizes = self._parts.parts(cells, n)
        found = self._items.tables(items.cells, items.n, estimator, repeats) if items.n else ()
        if not sizes.n:
            return found
        (share,) = self._sizes.tables(sizes.cells, sizes.n, self._sizes.known(estimator), repeats)
        return *found, replace(share, name=TableName.SIZE, keys=self._ranges.names)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield the facts of the items, and what the reports about sizes can do."""
        share, sizes = float(self._strata.shares[1]), self._of_sizes(n)
        yield "sizes", f"{share:.3g} of the reports are of sizes: {', '.join(self._ranges.names)}"
        yield from self._items.describe(self._of_items(n), estimator)
        yield "errors", f"of the share of a size at n = {sizes:,}: {float(self._sizes.forecast(sizes).max()):.3g}"

    def warnings(self, n: int, users: int, estimator: str) -> Iterator[str]:
        """Yield those of the items, and a line if sizes have so few reports that a tenth of cut sets stays hidden."""
        yield from self._items.warnings(self._of_items(n), users, estimator)
        cut = self._ranges.count - self._ranges.first_cut
        p, q = float(self._sizes.channel.p[0]), float(self._sizes.channel.q[0])
        m = q * cut + (p - q) * MOST_CUT
        error = (m * (1 - m) / self._of_sizes(n)) ** 0.5 / (p - q)
        if 2 * error > MOST_CUT:
            need = two_digits(users * (2 * error / MOST_CUT) ** 2)
            yield (
                f"the standard error of the share of users with more than {self._ranges.held:,} items is {error:.2g}:"
                f" take {need:,} users or more in a window, a larger sizes, or leave sizes out"
            )

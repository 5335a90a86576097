"""The decoder of tags with zones: reports say in which zones users are, and backgrounds where within a zone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from uldp.mechanisms.decoders.pure import PureDecoder, ShareEstimate
from uldp.mechanisms.decoders.table_of import table_of
from uldp.mechanisms.laws.interval import normal_quantile
from uldp.mechanisms.protocol.decoder import Decoder, require_reports
from uldp.mechanisms.tags.pum import Pum
from uldp.mechanisms.tags.pum_intervals import pum_intervals
from uldp.mechanisms.zones.nested_response import NestedResponse
from uldp.mechanisms.zones.zone_masses import ZoneMasses
from uldp.mechanisms.zones.zone_shares import ZoneShares, learn
from uldp.mechanisms.zones.zoning import Zoning
from uldp.schemas.arrays import Counts, Floats, Mask
from uldp.schemas.flags import Flag
from uldp.schemas.table import Basis, Table, TableName


class ZonedDecoder(Decoder):
    """Reads the support counts of values and bots, and redistributes bots over the values of their zones.

    The bots of a nested tag's reports are one; the background of this bot is that of the tag, combined with the shares
    of its zones in the reports (``learn``). A bot of one zone has the background within this zone.

    Args:
        zoning: The values, tags and zones.
        nested: The mechanism, if a tag is nested; otherwise None, and cells are support counts.
        read: Builds the decoder of the values and bots, for a background of each bot.
    """

    def __init__(self, zoning: Zoning, nested: NestedResponse | None, read: Callable[[Pum], PureDecoder]) -> None:
        self.zoning = zoning
        self._nested = nested
        self._build = read
        self._outer = read(self.bots({}))
        self.channel = self._outer.channel
        self.estimators = self._outer.estimators

    def check(self, cells: Counts, n: int) -> None:
        """Raise ValueError if no n reports give these cells."""
        if self._nested is not None:
            if cells.shape != (self._nested.statistic_size,):
                raise ValueError(
                    f"the cells have shape {cells.shape}, but there are {self._nested.statistic_size} symbols"
                )
            if cells.min() < 0:
                raise ValueError("a count is less than 0")
        self._outer.check(self.fold(cells), n)

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> ShareEstimate:
        """Return the unbiased estimate over the values and bots."""
        return self._outer.linear(self.fold(cells), n, repeats)

    def tags_at(self, cells: Counts, n: int) -> Pum:
        """See the base class."""
        return self.bots(self.learned(cells, n))

    def explain(self, cells: Counts, n: int, position: int) -> Iterator[str]:
        """See the base class."""
        yield from self._outer.explain(self.fold(cells), n, position)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Test the support counts of the values and bots; see ``PureDecoder.p_values``."""
        return self._outer.p_values(self.fold(cells), n)

    def forecast(self, n: int) -> Floats:
        """Return the standard errors over the values and bots at n reports of uniform symbols."""
        return self._outer.forecast(n)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield the facts of the values and bots, what a report says of the zone, and the errors at n reports."""
        *facts, errors = self._outer.describe(n, estimator)
        yield from facts
        for tag, zones in enumerate(self.zoning.zones):
            if zones is not None:
                yield "zones", self.price(tag)
        yield errors

    def heaviest(self, table: Table) -> float | None:
        """See the base class.

        What a nested tag adds to a value or a zone follows from the answers behind its bot, which are few: this is not
        known. A tag of zones with bots of their own is the sum of these, and a report of bits may support all.
        """
        if self._nested is not None and table.name in (TableName.SHARE, TableName.ZONE):
            return None
        of_bot = self._outer.heaviest(table)
        together = table.name is TableName.HIDDEN and not self.channel.one_symbol
        return of_bot * len(self.zoning.bots) if of_bot is not None and together else of_bot

    def price(self, tag: int) -> str:
        """Say how many zones a tag has, and what a report tells of the zone of a hidden value."""
        zones, nest = self.zoning.zones[tag], self.zoning.nests[tag]
        assert zones is not None
        at = self.zoning.pum.size + next(index for index, bot in enumerate(self.zoning.bots) if bot.tag == tag)
        p, q = float(self.channel.p[at]), float(self.channel.q[at])
        named = ""
        if nest is not None:
            odds = ((p - q) * nest.points * nest.on_plane + q) / ((p - q) * nest.uniform_probability + q)
        elif self.channel.independent_bits:
            odds = p * (1 - q) / (q * (1 - p))
        elif self.channel.q_non_sensitive is not None:
            odds = p / float(self.channel.q_non_sensitive[at])
        else:
            odds = p / q
            named = f"; {100 * p:.3g} % of reports from behind it name the zone"
        said = f"a report is up to {odds:.3g} times as likely from one zone as from another{named}"
        return f"{len(zones.labels)} behind {self.zoning.pum.tags[tag]}: {said}"

    def learned(self, cells: Counts, n: int) -> dict[int, ZoneShares]:
        """Return what reports and background say of the zones of each nested tag, by the position of the tag.

        Raises:
            ValueError: if ``n`` is not positive.
        """
        require_reports(n)
        if self._nested is None:
            return {}
        channel, found = self.channel, {}
        for at, bot in enumerate(self.zoning.bots, start=self.zoning.pum.size):
            if bot.nest is not None:
                first, last = self._nested.first_payloads[at : at + 2]
                gain, q = float(channel.gain[at]), float(channel.q[at])
                found[bot.tag] = learn(self.zoning, bot.tag, cells[first:last], n, gain, q)
        return found

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        """Return the tables of ``PureDecoder``, and the shares of users who hide their value in each zone."""
        learned, counts = self.learned(cells, n), self.fold(cells)
        tables = self._build(self.bots(learned)).tables(counts, n, estimator, repeats)
        of_bots = next(table for table in tables if table.name is TableName.HIDDEN)
        linear = self._outer.linear(counts, n, repeats)
        changed = {TableName.HIDDEN: self._hidden(of_bots, linear)}
        if self._nested is not None:
            changed[TableName.BAND] = self._band(tables, linear, ZoneMasses(self._nested, linear, cells))
        return (*(changed.get(table.name, table) for table in tables), self._zones(of_bots, learned))

    def _band(self, tables: Sequence[Table], linear: ShareEstimate, zones: ZoneMasses) -> Table:
        """Return the table of bands, where no more users hold a value than are in the zones that hold it.

        Each upper end is the lower one of two: by the masses of tags, and by those of zones as reports have them. Each
        of these misses with half of the probability with which the end may. At few reports tags have the lower one.
        """
        of = {table.name: table for table in tables}
        band, visible = of[TableName.BAND], of[TableName.VISIBLE]
        assert band.low is not None
        coverage = 1 - (1 - band.level) / 2 / (len(band.values) if band.simultaneous else 1)
        by_tags = pum_intervals(self._outer.pum, linear, coverage).band[1]
        by_zones = zones.most(self.zoning.places - self.zoning.pum.size, coverage)
        lower = by_zones.high < by_tags
        return replace(
            band,
            values=np.where(lower, np.minimum(visible.values + by_zones.masses, band.values), band.values),
            stderr=np.where(lower, by_zones.stderr, band.stderr),
            high=np.maximum(np.minimum(by_tags, by_zones.high), band.low).clip(0.0, 1.0),
        )

    def _hidden(self, of_bots: Table, linear: ShareEstimate) -> Table:
        """Return the mass of each tag, which is the sum over its bots, with an interval around the unbiased sum."""
        size, tags = self.zoning.pum.size, self.zoning.pum.tags
        of_tag = np.array([[float(bot.tag == tag) for tag in range(len(tags))] for bot in self.zoning.bots])
        if len(of_tag) == len(tags):
            return of_bots
        places = np.vstack([np.zeros((size, len(tags))), of_tag])
        return table_of(
            TableName.HIDDEN,
            of_bots.values @ of_tag,
            linear,
            w=places,
            simultaneous=of_bots.simultaneous,
            keys=tags,
            of=of_bots.of,
        )

    def _zones(self, of_bots: Table, learned: Mapping[int, ZoneShares]) -> Table:
        """Return the share of users in each zone: of its bot, or the mass of the tag times the share of the zone."""
        names: list[str] = []
        parts: list[tuple[Floats, ...]] = []
        # Bots of one zone use their part of the intervals of all bots, and nested zones share the rest.
        bots, nested = len(self.zoning.bots), sum(nest.zones for nest in self.zoning.nests if nest)
        others = sum(bot.nest is None for bot in self.zoning.bots)
        for at, bot in enumerate(self.zoning.bots):
            assert of_bots.low is not None
            assert of_bots.high is not None
            own = tuple(each[at : at + 1] for each in (of_bots.values, of_bots.stderr, of_bots.low, of_bots.high))
            if bot.nest is not None:
                names += self.zoning.zone_names(bot.tag)
                mass, error = own[:2]
                of = learned[bot.tag]
                # A share is at most 1 off, also if nothing is known of it.
                values, stderr = mass * of.shares, np.hypot(mass * np.minimum(of.stderr, 1.0), error * of.shares)
                parts.append((values, stderr, *_interval(of_bots, values, stderr, nested * bots / (bots - others))))
            elif bot.zone is not None:
                names.append(self.zoning.name(bot))
                parts.append(own)
        values, stderr, low, high = (np.concatenate(each) for each in zip(*parts, strict=True))
        # What is learned of a nested zone draws on its background, so that its share has no unbiased estimate here.
        unbiased = None
        if not nested:
            assert of_bots.unbiased is not None
            unbiased = of_bots.unbiased[[bot.zone is not None for bot in self.zoning.bots]]
        return _table(of_bots, TableName.ZONE, tuple(names), values, stderr, low, high, unbiased)

    def fold(self, cells: Counts) -> Counts:
        """Return the support counts of the values and bots."""
        return cells if self._nested is None else self._nested.fold(cells)

    def bots(self, learned: Mapping[int, ZoneShares]) -> Pum:
        """Return the values and bots, each bot with the background that is known of it; see ``learned``."""
        known = [self._known(at, learned) for at in range(len(self.zoning.bots))]
        background = np.array([row for row, _ in known])
        strength = np.array([strength for _, strength in known])
        names = tuple(map(self.zoning.name, self.zoning.bots))
        return Pum(self.zoning.pum.sensitive, names, background, strength, self._reach)

    @cached_property
    def _reach(self) -> Mask | None:
        """Shape (bots, |X|): whether the users of each bot may hold each value; None if no bot is of one zone."""
        if all(bot.zone is None for bot in self.zoning.bots):
            return None
        return np.array([self.zoning.reach(bot) for bot in self.zoning.bots])

    def _known(self, at: int, learned: Mapping[int, ZoneShares]) -> tuple[Floats, float]:
        bot = self.zoning.bots[at]
        if bot.tag in learned:
            return learned[bot.tag].background, learned[bot.tag].strength
        if bot.zone is not None:
            within, strength = self._within[bot.tag]
            return np.where(self.zoning.reach(bot), within, 0.0), float(strength[bot.zone])
        return self.zoning.pum.background[bot.tag], float(self.zoning.pum.strength[bot.tag])

    @cached_property
    def _within(self) -> Mapping[int, tuple[Floats, Floats]]:
        """By tag with zones, ``Zoning.within`` and ``Zoning.strength_within``."""
        tags: Sequence[int] = [tag for tag, zones in enumerate(self.zoning.zones) if zones is not None]
        return {tag: (self.zoning.within(tag), self.zoning.strength_within(tag)) for tag in tags}


def _interval(like: Table, centre: Floats, stderr: Floats, intervals: float) -> tuple[Floats, Floats]:
    """Return normal intervals of shares with the level of a table, cut to [0, 1].

    Args:
        like: The table.
        centre: The middle of each interval.
        stderr: The standard errors.
        intervals: The number of intervals, if all are to hold at once.
    """
    half = normal_quantile(1 - (1 - like.level) / 2 / (intervals if like.simultaneous else 1)) * stderr
    return (centre - half).clip(0.0, 1.0), (centre + half).clip(0.0, 1.0)


def _table(
    like: Table,
    name: TableName,
    keys: tuple[str, ...],
    values: Floats,
    stderr: Floats,
    low: Floats,
    high: Floats,
    unbiased: Floats | None,
) -> Table:
    """Return a table of one dimension of which some intervals are normal, and all else as in ``like``."""
    shape = values.shape
    return replace(
        like,
        name=name,
        keys=keys,
        shape=shape,
        values=values,
        stderr=stderr,
        unbiased=unbiased,
        low=low,
        high=high,
        basis=Basis.SCORE,
    )

"""The decoder of tags with zones: reports say in which zones users are, and backgrounds where within a zone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import cast

import numpy as np

from uldp.mechanisms.decoders.pure import PureDecoder, ShareEstimate
from uldp.mechanisms.decoders.table_of import coverage_of, share_tables, table_from, table_of
from uldp.mechanisms.estimators.by_name import estimate_intermediate
from uldp.mechanisms.laws.interval import normal_quantile, score_interval
from uldp.mechanisms.laws.law import Cumulants, of_points
from uldp.mechanisms.protocol.decoder import Pooling, require_reports
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.mechanisms.tags.pum import Pum
from uldp.mechanisms.tags.pum_intervals import pum_intervals
from uldp.mechanisms.zones.nested_response import NestedResponse
from uldp.mechanisms.zones.zone_shares import BotReports, Scores, ZoneShares, learn
from uldp.mechanisms.zones.zoning import Zoning
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.table import Basis, Table, TableName


class ZonedDecoder(PureDecoder):
    """Reads the support counts of values and bots, and redistributes bots over the values of their zones.

    The bots of a nested tag's reports are one; the background of this bot is that of the tag, combined with the shares
    of its zones in the reports (``learn``). A bot of one zone has the background within this zone.
    """

    pooling: Pooling | None = None

    def __init__(self, mechanism: Mechanism, zoning: Zoning, *, simultaneous: bool = False) -> None:
        super().__init__(mechanism, zoning.common, simultaneous=simultaneous)
        self.zoning = zoning
        self._nested = cast(NestedResponse, mechanism) if any(zoning.nests) else None

    def tags_at(self, cells: Counts, n: int) -> Pum:
        return self._known(self.learned(cells, n))

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        *facts, errors = super().describe(n, estimator)
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
        of_bot = super().heaviest(table)
        together = table.name is TableName.HIDDEN and not self.channel.one_symbol
        return of_bot * len(self.zoning.bots) if of_bot is not None and together else of_bot

    def price(self, tag: int) -> str:
        """Say how many zones a tag has, and what a report tells of the zone of a hidden value."""
        nest = self.zoning.nests[tag]
        at = self.pum.size + next(index for index, bot in enumerate(self.zoning.bots) if bot.tag == tag)
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
        return f"{len(self.zoning.zones_of(tag).labels)} behind {self.zoning.pum.tags[tag]}: {said}"

    def learned(self, cells: Counts, n: int) -> dict[int, ZoneShares]:
        """Return what is known of the zones of each nested tag, by its position; ValueError if n is 0."""
        require_reports(n)
        bots = zip(self.zoning.bots, self._of_bots(cells, n), strict=True) if self._nested else ()
        return {bot.tag: learn(self.zoning, bot.tag, reports) for bot, reports in bots if bot.nest is not None}

    def _of_bots(self, cells: Counts, n: int) -> Iterator[BotReports]:
        """Yield the reports of each bot, if a tag is nested."""
        assert self._nested is not None
        for at, bot in enumerate(self.zoning.bots, self.pum.size):
            own = cells[slice(*self._nested.first_payloads[at : at + 2])]
            yield BotReports(bot.nest, own, n, float(self.channel.gain[at]), float(self.channel.q[at]))

    def _known(self, learned: Mapping[int, ZoneShares]) -> Pum:
        """Return the values and bots, with the backgrounds that are learned."""
        background, strength = self.pum.background.copy(), self.pum.strength.copy()
        for at, bot in enumerate(self.zoning.bots):
            if bot.tag in learned:
                background[at], strength[at] = learned[bot.tag].background, learned[bot.tag].strength
        return replace(self.pum, background=background, strength=strength)

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        learned, linear = self.learned(cells, n), self.linear(cells, n, repeats)
        r_hat = estimate_intermediate(estimator, self.channel, linear.counts, n, len(self.pum.tags))
        tables = share_tables(self._known(learned), r_hat, linear, simultaneous=self.simultaneous)
        of = {table.name: table for table in tables}
        changed = {TableName.HIDDEN: self._hidden(of[TableName.HIDDEN], linear)}
        if self._nested is not None:
            changed[TableName.BAND] = self._band(of, cells, linear)
        return (*(changed.get(table.name, table) for table in tables), self._zones(of[TableName.HIDDEN], learned))

    def _band(self, of: Mapping[TableName, Table], cells: Counts, linear: ShareEstimate) -> Table:
        """Return the table of bands, where no more users hold a value than are in the zones that hold it.

        Each upper end is the lower one of two: by the masses of tags, and by those of zones as reports have them. Each
        of these misses with half of the probability with which the end may. At few reports tags have the lower one.
        """
        band, visible = of[TableName.BAND], of[TableName.VISIBLE]
        assert band.low is not None
        coverage = (1 + coverage_of(len(band.values), self.simultaneous)) / 2
        by_tags = pum_intervals(self.pum, linear, coverage).band[1]
        most, cumulants, masses = self.most(cells, linear)
        by_zones = score_interval(most, cumulants, coverage)[1]
        lower = by_zones < by_tags
        return table_from(
            TableName.BAND,
            np.where(lower, np.minimum(visible.values + masses, band.values), band.values),
            np.where(lower, np.sqrt(cumulants.variance), band.stderr),
            (band.low, np.minimum(by_tags, by_zones)),
            band.basis,
            n=band.n,
            simultaneous=self.simultaneous,
        )

    def most(self, cells: Counts, linear: ShareEstimate) -> tuple[Floats, Cumulants, Floats]:
        """Return the share of each value if all users in the zones that hold it held it, if a tag is nested.

        A report counts for a value if it names the value, or a point of one of its zones: at most one of these. There
        are unbiased estimates, shape (|X|,), their cumulants, and the parts of zones, each cut to [0, 1].
        """
        size, n, places = self.pum.size, int(linear.n[0]), self.zoning.places - self.pum.size
        each = Scores(*np.hstack([reports.scores() for reports in self._of_bots(cells, n)]))
        _, near, far, on, off = (array[places] for array in each)
        parts = np.vstack([cells[:size] / n, on, off])
        scores = np.vstack([1 / self.channel.gain[:size], near, far, np.zeros(size)])
        one = of_points(np.vstack([parts, 1 - parts.sum(axis=0)]), scores)
        of_mean = one._replace(variance=one.variance / n, third=one.third / n**2, step=one.step / n)
        values = each.values[places]
        return linear.values[:size] + values.sum(axis=0), of_mean, values.clip(0.0, 1.0).sum(axis=0)

    def _hidden(self, of_bots: Table, linear: ShareEstimate) -> Table:
        """Return the mass of each tag, which is the sum over its bots, with an interval around the unbiased sum."""
        tags = self.zoning.pum.tags
        of_tag = np.array([[float(bot.tag == tag) for tag in range(len(tags))] for bot in self.zoning.bots])
        if len(of_tag) == len(tags):
            return of_bots
        places = np.vstack([np.zeros((self.pum.size, len(tags))), of_tag])
        masses = of_bots.values @ of_tag
        return table_of(TableName.HIDDEN, masses, linear, w=places, simultaneous=self.simultaneous, keys=tags)

    def _zones(self, of_bots: Table, learned: Mapping[int, ZoneShares]) -> Table:
        """Return the share of users in each zone: of its bot, or the mass of the tag times the share of the zone."""
        names: list[str] = []
        parts: list[Sequence[Floats]] = []
        assert of_bots.keys is not None
        assert of_bots.low is not None
        assert of_bots.high is not None
        arrays = of_bots.values, of_bots.stderr, of_bots.low, of_bots.high
        for at, bot in enumerate(self.zoning.bots):
            mass, error, low, high = (array[at : at + 1] for array in arrays)
            if bot.nest is not None:
                names += self.zoning.zone_names(bot.tag)
                of = learned[bot.tag]
                # A share is at most 1 off, also if nothing is known of it.
                values, stderr = mass * of.shares, np.hypot(mass * np.minimum(of.stderr, 1.0), error * of.shares)
                half = self._nested_quantile * stderr
                parts.append((values, stderr, values - half, values + half))
            elif bot.zone is not None:
                names.append(of_bots.keys[at])
                parts.append((mass, error, low, high))
        values, stderr, low, high = (np.concatenate(each) for each in zip(*parts, strict=True))
        # What is learned of a nested zone draws on its background, so that its share has no unbiased estimate here.
        assert of_bots.unbiased is not None
        own = of_bots.unbiased[[bot.zone is not None for bot in self.zoning.bots]]
        return table_from(
            TableName.ZONE,
            values,
            stderr,
            (low, high),
            Basis.SCORE,
            n=of_bots.n,
            unbiased=None if learned else own,
            simultaneous=self.simultaneous,
            keys=tuple(names),
        )

    @cached_property
    def _nested_quantile(self) -> float:
        """How many standard errors an interval of a nested zone reaches, by what bots leave."""
        bots, others = len(self.zoning.bots), sum(bot.nest is None for bot in self.zoning.bots)
        nested = sum(nest.zones for nest in self.zoning.nests if nest)
        return normal_quantile((1 + coverage_of(nested * bots / (bots - others), self.simultaneous)) / 2)

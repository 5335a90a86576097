"""The estimate from the reports of all levels of privacy; ``spec`` has the source and the guarantee."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.decoders.pure import ShareEstimate
from uldp.mechanisms.decoders.strata_decoder import SharesOfParts
from uldp.mechanisms.decoders.table_of import share_tables
from uldp.mechanisms.estimators.by_name import estimate_intermediate
from uldp.mechanisms.inference.forecast import one_simulation_text
from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.pooling.versions import by_reports, difference_p_value, pool, pooled_bayes
from uldp.mechanisms.protocol.decoder import heaviest_fact
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.table import Table

#: Levels of users who are alike contradict each other in at most this part of the windows.
DIFFER_LEVEL = 0.05


class LevelsDecoder(SharesOfParts):
    """Estimates the shares of values from the reports of all levels.

    There is one estimate of all users, and one of the users of each level. That of all users over Z is the mean of the
    unbiased estimates of the levels, weighted by their reports. Weights by precision would have less noise, and would
    be biased if who values privacy more holds other values; of few reports no test can exclude that.

    - "empirical": this mean; entries may be negative.
    - "auto": empirical Bayes, as for several versions, which weighs by precision. If the levels differ at
      ``DIFFER_LEVEL`` (``difference_p_value``), the mean by reports of the estimates of the levels.
    """

    drawn = False

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        return by_reports(self._levels(cells, n, repeats)).mean

    def _levels(self, cells: Counts, n: int, repeats: float = 0.0) -> list[ShareEstimate]:
        """Return the unbiased estimates of the levels that have reports."""
        return [own for own in self.estimates(cells, n, repeats) if own]

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        found = super().p_values(cells, n)
        return {**found, Flag.LEVELS_DIFFER: difference_p_value(self._levels(cells, n))} if n else found

    def forecast(self, n: int) -> Floats:
        variances = [(reports / n * decoder.forecast(reports)) ** 2 for decoder, reports in self.expected(n)]
        return np.asarray(np.sqrt(np.sum(variances, axis=0)))

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        for name, (decoder, reports) in zip(self.part_names, self.expected(n), strict=True):
            p, q = decoder.channel.p, decoder.channel.q
            yield "level", f"{name}: {reports:,} of {n:,} reports expected; p {p.max():.6g}, q {q.max():.6g}"
        yield heaviest_fact(self._weight(), n)
        size = self.decoders[0].channel.size
        yield "errors", one_simulation_text(self.simulate, size, estimator, n, self.forecast(n))

    def _weight(self) -> float:
        """Return the number of users for whom the heaviest report counts, in the estimate of all users."""
        return float(max((1 / decoder.channel.gain).max() for decoder in self.decoders))

    def heaviest(self, table: Table) -> float | None:
        """See the base class. In the table of all users, forgers choose the level in which a report counts for most."""
        return super().heaviest(table) if table.of else self._weight() * self.decoders[0].supported_in(table)

    def simulate(self, r: Floats, n: int, estimator: str, rng: Generator) -> Floats:
        """Draw a window of n reports, and return the errors of the published shares; see ``SharesDecoder``."""
        parts, pum = self.draw([r] * len(self.decoders), n, rng), self.pum
        return pum.distribution(self._shares(parts, estimator)) - pum.distribution(r)

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        self.require(estimator)
        parts = self._levels(cells, n, repeats)
        shares, of_all = self._shares(parts, estimator), by_reports(parts).mean
        return (
            *share_tables(self.pum, shares, of_all, simultaneous=self.simultaneous),
            *self.tables_of_parts(cells, n, estimator, repeats),
        )

    def _shares(self, parts: Sequence[ShareEstimate], estimator: str) -> Floats:
        """Return the published estimate of all users over Z."""
        bots = len(self.pum.tags)
        if estimator == "empirical":
            return by_reports(parts).mean.values
        if difference_p_value(parts) <= DIFFER_LEVEL:
            of_each = [
                estimate_intermediate(estimator, each.channel, each.counts, int(each.n[0]), bots) for each in parts
            ]
            return np.average(of_each, axis=0, weights=[int(each.n[0]) for each in parts])
        return pooled_bayes(pool(parts), bots)

    def tags_at(self, cells: Counts, n: int) -> Pum:
        return self.pum

    @property
    def pum(self) -> Pum:
        """The values and tags, which are those of each level."""
        return self.decoders[0].pum

"""The estimate from the reports of all levels of privacy; ``encoding`` has the source and the guarantee."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.decoders.pure import PureDecoder, PureLinear
from uldp.mechanisms.decoders.share_tables import share_tables
from uldp.mechanisms.inference.forecast import one_simulation_text
from uldp.mechanisms.pooling.pooled_bayes import pooled_auto
from uldp.mechanisms.pooling.versions import PooledShares, pool
from uldp.mechanisms.protocol.decoder import Decoder, require_reports
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.table import Basis, Table


class LevelsDecoder(Decoder):
    """Estimates the shares of values from the reports of all levels.

    The estimate over Z is the mean of the unbiased estimates of the levels, weighted by the inverse of their variances
    at one pooled distribution (``pool``). So the level of few users with a small epsilon adds little, and takes nothing
    away. It estimates the distribution of all users if the level does not depend on the value.

    - "empirical": this mean; entries may be negative.
    - "auto": its projection, or where n is small empirical Bayes, as for several versions.

    Args:
        strata: The mechanism.
        names: The name of each level.
        decoders: The decoder of each level.
    """

    estimators = ("auto", "empirical")

    def __init__(self, strata: Strata, names: Sequence[str], decoders: Sequence[PureDecoder]) -> None:
        self._strata, self._names, self._decoders = strata, tuple(names), tuple(decoders)

    def check(self, cells: Counts, n: int) -> None:
        """Raise ValueError if no n reports give these cells: each level is checked, and the sum of their reports."""
        if cells.shape != (self._strata.statistic_size,):
            raise ValueError(f"the cells have shape {cells.shape}, but there are {self._strata.statistic_size} cells")
        split = self._strata.split_cells(cells)
        if min(reports for _, reports in split) < 0 or sum(reports for _, reports in split) != n:
            raise ValueError(f"the numbers of reports of the levels do not sum to n = {n}")
        for name, decoder, (own, reports) in zip(self._names, self._decoders, split, strict=True):
            try:
                decoder.check(own, reports)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error

    def linear(self, cells: Counts, n: int) -> PooledShares:
        """Return the pooled unbiased estimate of the levels that have reports.

        Raises:
            ValueError: if ``n`` is not positive, or the cells do not fit.
        """
        return pool(self._linears(cells, n))[0]

    def _linears(self, cells: Counts, n: int) -> list[PureLinear]:
        self.check(cells, n)
        require_reports(n)
        pairs = zip(self._decoders, self._strata.split_cells(cells), strict=True)
        return [decoder.linear(own, reports) for decoder, (own, reports) in pairs if reports]

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Return the p-values of the levels with Bonferroni's correction. Users choose levels, so no share is wrong."""
        found: dict[Flag, list[float]] = {}
        for decoder, (own, reports) in zip(self._decoders, self._strata.split_cells(cells), strict=True):
            for flag, p_value in decoder.p_values(own, reports).items() if reports else ():
                found.setdefault(flag, []).append(p_value)
        return {flag: min(1.0, len(p_values) * min(p_values)) for flag, p_values in found.items()}

    def forecast(self, n: int) -> Floats:
        """Return the standard errors over Z at n reports of uniform symbols, with the expected shares of levels."""
        precisions = [decoder.forecast(reports) ** -2.0 for decoder, reports in self._expected(n)]
        return np.asarray(np.sum(precisions, axis=0) ** -0.5)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield the share of each level and its p and q, and the error at n reports."""
        for name, (decoder, reports) in zip(self._names, self._expected(n), strict=True):
            p, q = decoder.channel.p, decoder.channel.q
            yield "level", f"{name}: {reports:,} of {n:,} reports expected; p {p.max():.6g}, q {q.max():.6g}"
        size = self._decoders[0].channel.size
        yield "errors", one_simulation_text(self.simulate, size, estimator, n, self.forecast(n))

    def simulate(self, r: Floats, n: int, estimator: str, rng: Generator) -> Floats:
        """Draw a window of n reports, and return the errors of the published shares; see ``SharesDecoder``."""
        parts = [
            PureLinear(decoder.channel, decoder.draw_counts(r, reports, rng), reports)
            for decoder, reports in self._expected(n)
        ]
        pum = self._decoders[0].pum
        return pum.distribution(self._shares(parts, estimator)[1]) - pum.distribution(r)

    def tables(self, cells: Counts, n: int, estimator: str) -> tuple[Table, ...]:
        """Return the tables of shares; see ``share_tables``.

        Raises:
            ValueError: if ``n`` is not positive, the cells do not fit, or the decoder has no such estimator.
        """
        self.require(estimator)
        mean, r_hat = self._shares(self._linears(cells, n), estimator)
        first = self._decoders[0]
        return share_tables(first.pum, r_hat, mean, basis=Basis.NORMAL, simultaneous=first.simultaneous)

    def _shares(self, parts: Sequence[PureLinear], estimator: str) -> tuple[PooledShares, Floats]:
        """Return the pooled unbiased estimate over Z, and the published one."""
        mean, nearest = pool(parts)
        bots = len(self._decoders[0].pum.tags)
        return mean, mean.values if estimator == "empirical" else pooled_auto(mean, nearest, bots)

    def _expected(self, n: int) -> list[tuple[PureDecoder, int]]:
        """Return the decoder of each level, and the expected number of its reports, but at least 1."""
        shares = self._strata.shares.tolist()
        return [(decoder, max(round(n * share), 1)) for decoder, share in zip(self._decoders, shares, strict=True)]

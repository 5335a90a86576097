"""The decoder of mechanisms with designs, each about some symbols: so a symbol has a number of reports of its own."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.decoders.share_tables import table_without_tags
from uldp.mechanisms.decoders.strata_decoder import share_p_value
from uldp.mechanisms.estimators.simplex import onto_simplex
from uldp.mechanisms.inference.forecast import equal_shares, one_simulation_text
from uldp.mechanisms.kernels.intervals import clopper_pearson, outside_p_value
from uldp.mechanisms.protocol.decoder import SharesDecoder, heaviest_fact, require_reports
from uldp.mechanisms.protocol.linear import LowRankLinear
from uldp.mechanisms.protocol.mechanism import BitNoise
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.table import Basis, Table


class DesignDecoder(SharesDecoder):
    """Estimates the shares of values from the bits of each design.

    - "empirical": unbiased; entries may be negative.
    - "auto": the distribution that is nearest to it, weighted by the variances of the noise, as ``wls`` has it.

    Args:
        strata: The mechanism: a ``BitNoise`` for each design.
        simultaneous: Whether all intervals of a table are to cover the truth at once (Bonferroni), or each alone.
    """

    estimators = ("auto", "empirical")

    def __init__(self, strata: Strata, *, simultaneous: bool = False) -> None:
        self.strata = strata
        self._simultaneous = simultaneous
        self._widths = [part.statistic_size for part in strata.parts]
        self._starts = np.cumsum([0, *self._widths[:-1]])
        laws = [part.bit_law for part in strata.parts if isinstance(part, BitNoise)]
        unset, self._q = (np.concatenate(of_bits) for of_bits in zip(*laws, strict=True))
        self._p = 1 - unset

    def check(self, cells: Counts, n: int) -> None:
        """Raise ValueError if no n reports give these cells."""
        if cells.shape != (self.strata.statistic_size,):
            raise ValueError(f"the cells have shape {cells.shape}, but there are {self.strata.statistic_size} cells")
        counts, reports = self._split(cells)
        if min(reports) < 0 or sum(reports) != n:
            raise ValueError(f"the numbers of reports of the designs do not sum to n = {n}")
        if counts.min() < 0 or (counts > np.repeat(reports, self._widths)).any():
            raise ValueError("a count of bits is outside of 0 to the number of reports of its design")

    def linear(self, cells: Counts, n: int) -> LowRankLinear:
        """Return the unbiased estimate of the shares.

        Raises:
            ValueError: if ``n`` is not positive, or the cells do not fit.
        """
        self.check(cells, n)
        require_reports(n)
        counts, reports = self._split(cells)
        return self._linear(counts, np.repeat(reports, self._widths))

    def _linear(self, counts: Counts, n: Counts) -> LowRankLinear:
        """Return the unbiased estimate of shares, where a symbol has n_c reports, those of its design c.

            r-hat_z = (C_z / n_c - q) / (p - q)      Cov[r-hat_y, r-hat_z] = -r_y r_z / n_c in one design, else 0

        given the numbers of reports of the designs, evaluated at r-hat cut to [0, 1]. A design without reports has the
        estimates 0, and intervals that hold every share.

        Args:
            counts: Shape (|Z|,): the number of reports with each bit set.
            n: Shape (|Z|,): the number of reports of the design of each symbol.
        """
        q, gain, trials, some = self._q, self._p - self._q, np.maximum(n, 1), n > 0
        values = np.where(some, (counts / trials - q) / gain, 0.0)
        r = np.clip(values, 0.0, 1.0)
        m = q + gain * r

        def interval(coverage: float) -> tuple[Floats, Floats]:
            low, high = ((end - q) / gain for end in clopper_pearson(counts, trials, coverage))
            return np.where(some, low, np.minimum(low, 0.0)), np.where(some, high, np.maximum(high, 1.0))

        u = (r / np.sqrt(trials))[np.newaxis]
        return LowRankLinear(values, m * (1 - m) / (trials * gain**2), n, interval, u, self._starts)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Return how probable it is that designs have so few or so many reports, and bits are so seldom or often set.

        Whatever users hold, a bit is set with a probability from q to p. So its number is stochastically between
        binomial ones, at every n; Bonferroni's bound takes all bits.
        """
        self.check(cells, n)
        if n <= 0:
            return {}
        counts, reports = self._split(cells)
        of_bits = np.repeat(reports, self._widths)
        found = {Flag.IMPROBABLE_COUNTS: outside_p_value(counts, of_bits, self._q, self._p)}
        if len(reports) > 1:
            found[Flag.IMPROBABLE_STRATA] = share_p_value(reports, n, self.strata.shares.tolist())
        return found

    def forecast(self, n: int) -> Floats:
        """Return the standard errors at n reports of uniform values, the same number of each design."""
        return self.stderr(equal_shares(sum(self._widths)), n)

    def simulate(self, r: Floats, n: int, estimator: str, rng: Generator) -> Floats:
        """See the base class."""
        reports = np.repeat(rng.multinomial(n, self.strata.shares), self._widths)
        counts = rng.binomial(reports, self._q + (self._p - self._q) * r)
        return self._shares(self._linear(counts, reports), estimator) - r

    def stderr(self, r: Floats, n: int) -> Floats:
        """See the base class. The designs have the same number of reports."""
        m = self._q + (self._p - self._q) * r
        return np.asarray(np.sqrt(m * (1 - m) * len(self._widths) / n) / (self._p - self._q))

    @property
    def weight(self) -> float:
        """See the base class."""
        return len(self._widths) / float((self._p - self._q).min())

    def heaviest(self, table: Table) -> float | None:
        """See the base class."""
        return self.weight

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield the designs, the probabilities of a bit, and the error at n reports."""
        yield "designs", f"{len(self._widths):,}, each of {self._widths[0]:,} values or fewer"
        first, last = (f"p {self._p[bit]:.6g}, q {self._q[bit]:.6g}" for bit in (0, -1))
        yield "bits", first if first == last else f"{first}; of the last value, which has a design of its own, {last}"
        yield heaviest_fact(self.weight, n)
        yield "errors", one_simulation_text(self.simulate, sum(self._widths), estimator, n, self.forecast(n))

    def tables(self, cells: Counts, n: int, estimator: str) -> tuple[Table, ...]:
        """Return the table of shares.

        Raises:
            ValueError: if ``n`` is not positive, the cells do not fit, or the decoder has no such estimator.
        """
        self.require(estimator)
        linear = self.linear(cells, n)
        shares = self._shares(linear, estimator)
        return (table_without_tags(shares, linear, n, basis=Basis.EXACT, simultaneous=self._simultaneous),)

    def _shares(self, linear: LowRankLinear, estimator: str) -> Floats:
        if estimator == "empirical":
            return linear.values
        noise = 1 / np.maximum(linear.n, 1)  # q (1-q) / (p-q)^2 is the same for all
        return onto_simplex(linear.values, noise, np.zeros_like(noise))

    def _split(self, cells: Counts) -> tuple[Counts, list[int]]:
        """Return the counts of all bits, and the number of reports of each design."""
        counts, reports = zip(*self.strata.split_cells(cells), strict=True)
        return np.concatenate(counts), list(reports)

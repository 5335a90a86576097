"""The shares of more candidates than the cells tell apart: least squares on those found, and on these with each other.

Memory is bounded: the positions of candidates are hashed in blocks, each time that they are needed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from uldp.mechanisms.strings.cohort_channel import CandidateLinear, Candidates, CohortChannel, normal_interval
from uldp.mechanisms.strings.cohorts import hash_positions
from uldp.schemas.arrays import Counts, Floats, Rows, Symbols

# So many positions are hashed at once; they fit a core's cache.
_POSITIONS_AT_ONCE = 1 << 16
# Each round hashes all positions; some are found only when the more frequent ones are fitted.
_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class ManyCandidates:
    """Candidates that are too many for one normal matrix.

    Attributes:
        channel: The law of the cells.
        symbols: Shape (K,): the symbols of the candidates.
        together: How many of them may be fitted together.
    """

    channel: CohortChannel
    symbols: Symbols
    together: int

    def sums(self, *tables: Floats) -> Floats:
        """Return sum_cj B_x(c, j) a(c, j) for each table a, shape (M, L), and each candidate x; shape (tables, K)."""
        sums = np.empty((len(tables), len(self.symbols)))
        # The row behind the others stands for positions that are not to be counted.
        padded = [np.append(table, 0.0) for table in tables]
        for block, rows in self._rows():
            for of_table, table in zip(sums, padded, strict=True):
                of_table[block] = table[rows].sum(axis=1)
        return sums

    def _rows(self) -> Iterator[tuple[slice, Rows]]:
        """Yield some candidates, and their rows in a table, shape (k, M H)."""
        channel = self.channel
        cohorts = np.arange(channel.cohorts)
        at_once = max(_POSITIONS_AT_ONCE // (channel.cohorts * channel.hashes), 1)
        for start in range(0, len(self.symbols), at_once):
            block = slice(start, start + at_once)
            found = hash_positions(cohorts, self.symbols[block, np.newaxis], channel.hashes, channel.positions)
            rows = found + (cohorts * channel.positions)[:, np.newaxis]
            if channel.hashes > 1:
                rows.sort(axis=2)
                # A position of two functions is one position.
                rows[:, :, 1:][rows[:, :, 1:] == rows[:, :, :-1]] = channel.cohorts * channel.positions
            yield block, rows.reshape(len(rows), -1)

    @cached_property
    def units(self) -> Floats:
        """Shape (K,): the diagonal of the normal matrix."""
        channel, beta = self.channel, self.channel.covered
        if channel.hashes == 1:
            own = np.full(len(self.symbols), float(channel.cohorts))
        else:
            (own,) = self.sums(np.ones((channel.cohorts, channel.positions)))
        units: Floats = own * (1 - 2 * beta) / channel.cohorts + channel.positions * beta**2
        return units


@dataclass(frozen=True, eq=False)
class ManyLinear:
    """The estimate of the shares of many candidates; see ``Linear``.

    Let S be the candidates that are found. Each candidate x has the estimate of least squares on S and x, so it has no
    collisions with S. Whether x itself is in S changes nothing, so its estimate is not larger because it was found. All
    others collide with x as strings do that are no candidates.

    S is found in rounds, of estimates that are significant at ``level``. Errors of the first round include all
    collisions, so that strings that only collide with frequent ones are not found. (The candidates with the largest
    estimates would not do as S: chosen by their noise, they take from the shares of frequent strings.)

    For x outside of S, the estimate is D_x . e / (D_x . P D_x), where e are the residuals of S, and P projects onto
    what S leaves of the cells. D_x is random relative to S, so D_x . P D_x is taken as G_xx (1 - |S|/cells). Its
    deviation from that is about sqrt(2 |S|)/cells of it, .003 for 512 of 12,288.

    Attributes:
        candidates: The candidates.
        supports: Shape (M, L): the reports of each cohort that support each position.
        sizes: Shape (M,): the reports of each cohort.
        level: The probability with which chance makes a candidate significant.
    """

    candidates: ManyCandidates
    supports: Counts
    sizes: Counts
    level: float

    @cached_property
    def reports(self) -> int:
        """The number of all reports."""
        return int(self.sizes.sum())

    @cached_property
    def _corrected(self) -> Floats:
        """Shape (M, L): the share of supports that random strings do not explain."""
        channel, sizes = self.candidates.channel, self.sizes[:, np.newaxis]
        corrected: Floats = (self.supports - channel.q * sizes) / (channel.p - channel.q) - channel.covered * sizes
        return corrected / self.reports

    @cached_property
    def _found(self) -> "_Found":
        """The estimates with all that are found."""
        least, found = -NormalDist().inv_cdf(self.level), self._given(np.zeros(0, dtype=np.int64))
        for _ in range(_ROUNDS):
            z = found.values / np.sqrt(found.variance)
            z[found.together] = np.inf
            following = np.argsort(-z, kind="stable")[: self.candidates.together]
            following = np.sort(following[z[following] > least])
            if len(following) == len(found.together):
                break
            found = self._given(following)
        return found

    def _given(self, together: Rows) -> "_Found":
        """Return the estimates with some candidates that are fitted together."""
        candidates, channel, beta = self.candidates, self.candidates.channel, self.candidates.channel.covered
        fit = CandidateLinear(Candidates(channel, candidates.symbols[together]), self.supports, self.sizes)
        left = candidates.units * channel.left(len(together))
        residuals = self._corrected - (fit.candidates.covered(fit.values) - beta) / channel.cohorts
        variances = channel.row_variance(fit.covered)
        of_residuals, of_variances = candidates.sums(residuals, variances)
        values = (of_residuals - beta * residuals.sum()) / left
        of_scores = (of_variances * (1 - 2 * beta) + beta**2 * variances.sum()) / channel.cohorts
        shares = np.clip(values, 0.0, 1.0)
        of_users = (0.0 if channel.one_position else shares) - shares**2
        variance = (of_scores / candidates.units / left + of_users) / self.reports
        variance += fit.collisions * channel.scatter / channel.cohorts / left
        values[together], variance[together] = fit.values, fit.variance
        return _Found(fit, together, values, variance)

    @property
    def values(self) -> Floats:
        """Shape (K,): the estimates; may be negative."""
        return self._found.values

    @property
    def variance(self) -> Floats:
        """Shape (K,): their variances."""
        return self._found.variance

    @property
    def together(self) -> Rows:
        """S, in ascending order."""
        return self._found.together

    @property
    def n(self) -> Counts:
        """Shape (K,): the number of all reports, for each candidate."""
        return np.full(len(self.candidates.symbols), self.reports)

    def interval(self, coverage: float) -> tuple[Floats, Floats]:
        """Return normal intervals."""
        return normal_interval(self.values, self.variance, coverage)

    def times(self, w: Floats) -> Floats:
        """Return Cov @ w for w of shape (K, j). Estimates of those not found are taken as uncorrelated with others."""
        fit, together, _, variance = self._found
        product: Floats = variance[:, np.newaxis] * w
        product[together] = fit.times(w[together])
        return product


class _Found(NamedTuple):
    """The fit of the candidates that are together, these, and the estimates and variances of all, shape (K,)."""

    fit: CandidateLinear
    together: Rows
    values: Floats
    variance: Floats

"""The shares of more candidates than the cells tell apart: least squares on those found, and on these with each other.

Memory is bounded: the positions of candidates are hashed in blocks, each time that they are needed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from uldp.mechanisms.laws.estimate import part_of
from uldp.mechanisms.laws.interval import normal_quantile
from uldp.mechanisms.strings.candidate_law import CandidateEstimate, CandidateLaw, CohortLaw, estimate_together
from uldp.mechanisms.strings.cohort_channel import Candidates, CohortCells, CohortChannel
from uldp.mechanisms.strings.cohorts import hash_positions
from uldp.schemas.arrays import Floats, Rows, Symbols

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
        level: The probability with which chance makes a candidate significant.
    """

    channel: CohortChannel
    symbols: Symbols
    together: int
    level: float

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

    def estimate(self, cells: CohortCells) -> CandidateEstimate:
        """Return the estimate of the shares of all candidates, of reports of different devices.

        Let S be the candidates that are found. Each candidate x has the estimate of least squares on S and x, so it has
        no collisions with S. Whether x itself is in S changes nothing, so its estimate is not larger because it was
        found. All others collide with x as strings do that are no candidates.

        S is found in rounds, of estimates that are significant at ``level``. Errors of the first round include all
        collisions, so that strings that only collide with frequent ones are not found. (The candidates with the largest
        estimates would not do as S: chosen by their noise, they take from the shares of frequent strings.)
        """
        least, found = -normal_quantile(self.level), self._given(np.zeros(0, dtype=np.int64), cells)
        for _ in range(_ROUNDS):
            z = found.values / np.sqrt(found.repeated(cells.repeats).variance)
            z[found.together] = np.inf
            following = np.argsort(-z, kind="stable")[: self.together]
            following = np.sort(following[z[following] > least])
            if len(following) == len(found.together):
                break
            found = self._given(following, cells)
        return found

    def _given(self, together: Rows, cells: CohortCells) -> CandidateEstimate:
        """Return the estimates with some candidates that are fitted together.

        For x outside of S, the estimate is D_x . e / (D_x . P D_x), where e are the residuals of S, and P projects onto
        what S leaves of the cells. D_x is random relative to S, so D_x . P D_x is taken as G_xx (1 - |S|/cells). Its
        deviation from that is about sqrt(2 |S|)/cells of it, .003 for 512 of 12,288.
        """
        channel, beta, n = self.channel, self.channel.covered, cells.n
        candidates, left = Candidates(channel, self.symbols[together]), self.units * channel.left(len(together))
        fit = estimate_together(candidates, cells)
        own = candidates.cut(fit.values)
        residuals = candidates.residuals(fit.values, channel.corrected(cells))
        laws = [CandidateLaw(candidates, channel, n * channel.colliding(fit.collisions))]
        laws += [] if cells.response is None else [CandidateLaw(candidates, cells.response)]
        of_rows = [each.channel.row_variance(candidates.covered(own)) for each in laws]
        of_residuals, *sums = self.sums(residuals, *of_rows)
        values = (of_residuals - beta * residuals.sum()) / left
        values[together] = fit.values
        shares, law = np.clip(values, 0.0, 1.0), None
        for of_fit, of_sums, rows in [*zip(laws, sums, of_rows, strict=True)][::-1]:
            of_users = (0.0 if channel.one_position else shares) - shares**2
            variance = of_fit.channel.of_scores(of_sums, rows) / self.units / left + of_users + of_fit.fixed / left
            variance[together] = of_fit.variance(own)
            law = ManyLaw(of_fit, together, variance, law)
        assert law is not None
        parts = (part_of(law, shares, n),)
        return CandidateEstimate(values, np.full(len(values), n), parts, together=together, collisions=fit.collisions)


class ManyLaw(CohortLaw):
    """The law of a report about candidates of which some are fitted together, at the shares of an estimate alone.

    Estimates of those that are not fitted together are taken as uncorrelated with others.

    Args:
        fit: The law of those that are fitted together.
        together: Their positions among all.
        variance: Shape (K,): the variances of all.
        response: See ``Law``.
    """

    def __init__(self, fit: CandidateLaw, together: Rows, variance: Floats, response: CohortLaw | None = None) -> None:
        super().__init__(len(variance), fit.channel, response)
        self._fit, self._together, self._variance = fit, together, variance

    def variance(self, theta: Floats) -> Floats:
        """See the base class."""
        return self._variance

    def times(self, w: Floats, theta: Floats) -> Floats:
        """See the base class."""
        product: Floats = self._variance[:, np.newaxis] * w
        own = self._fit.candidates.cut(theta[self._together])
        product[self._together] = self._fit.times(w[self._together], own)
        return product

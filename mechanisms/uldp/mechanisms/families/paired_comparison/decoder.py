"""Who beats whom, and the mean Borda scores, from answers about single pairs of candidates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np

from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.decoders.strata_decoder import StrataDecoder
from uldp.mechanisms.protocol.decoder import Decoder, heaviest_fact, require_reports
from uldp.mechanisms.protocol.linear import normal
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.table import INTERVAL_LEVEL, Basis, Table, TableName


class Wins(NamedTuple):
    """For each pair of candidates, the share of users who rank the first above the second; shape (pairs,) each.

    Of a pair without reports nothing is known: the share is 1/2, its error 1/2, and its interval from 0 to 1.

    Attributes:
        shares: The unbiased estimates.
        variance: Their variances.
        low: The lower ends of their intervals.
        high: The upper ends.
    """

    shares: Floats
    variance: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class ScoresLinear:
    """The unbiased mean Borda scores; see ``Linear``.

    A user gives a candidate a point for each other that stands below it, so a score is the sum of a row of the matrix
    of who beats whom. A point for one of a pair is a point less for the other: scores of two have the covariance that
    is the negative variance of their pair.

    Attributes:
        beats: Shape (k, k): the share of users who rank the candidate of the row above that of the column.
        errors: Shape (k, k): the variances.
        reports: The number of reports about all pairs.
    """

    beats: Floats
    errors: Floats
    reports: int

    @cached_property
    def values(self) -> Floats:
        """Shape (k,): the scores."""
        scores: Floats = self.beats.sum(axis=1)
        return scores

    @cached_property
    def variance(self) -> Floats:
        """Shape (k,): their variances."""
        variance: Floats = self.errors.sum(axis=1)
        return variance

    @property
    def n(self) -> Counts:
        """Shape (k,): the number of all reports."""
        return np.full(len(self.beats), self.reports)

    def interval(self, coverage: float) -> tuple[Floats, Floats]:
        """Return normal intervals: a score is a sum over the answers about several pairs."""
        return normal(self.values, self.variance)(coverage)

    def times(self, w: Floats) -> Floats:
        """Return Cov @ w."""
        product: Floats = self.variance[:, np.newaxis] * w - self.errors @ w
        return product


class RankingDecoder(Decoder):
    """Reads the answers about all pairs: the matrix of who beats whom, and the Borda scores, which are its row sums.

    The answers about a pair are randomized responses of users drawn at random, so the estimates of pairs are
    independent and unbiased. Intervals of shares are Clopper and Pearson's, those of scores normal.

    - "empirical": the unbiased estimates. Shares may be outside of 0 to 1.
    - "auto": least squares over shares from 0 to 1 in the metric of the answers. Pairs are independent, so each share
      is cut on its own.

    Args:
        candidates: The names of the candidates.
        of_pair: The decoder of a pair, the same for each.
        strata: The mechanism, with a part for each pair, in the order of ``combinations``.
        simultaneous: Whether all intervals of a table are to cover the truth at once (Bonferroni), or each alone.
    """

    estimators = ("auto", "empirical")
    quantity = TableName.SCORE

    def __init__(
        self, candidates: Sequence[str], of_pair: PureDecoder, strata: Strata, *, simultaneous: bool = False
    ) -> None:
        self._candidates, self._simultaneous = tuple(candidates), simultaneous
        self._pairs = np.array(list(combinations(range(len(candidates)), 2)))
        names = [f"{candidates[first]} > {candidates[second]}" for first, second in self._pairs]
        self._parts = StrataDecoder(names, [of_pair] * len(names), strata)
        self._gain = float(of_pair.channel.gain[0])

    def check(self, cells: Counts, n: int) -> None:
        """Raise ValueError if no n reports give these cells: those of each pair are checked, and their sum."""
        self._parts.check(cells, n)

    def linear(self, cells: Counts, n: int) -> ScoresLinear:
        """Return the unbiased Borda scores.

        Raises:
            ValueError: if ``n`` is not positive, or the cells do not fit.
        """
        require_reports(n)
        wins = self._wins(cells, n)
        return ScoresLinear(self._matrix(wins.shares, 1 - wins.shares), self._matrix(wins.variance, wins.variance), n)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Return the p-values of the pairs with Bonferroni's correction, and that of the numbers of their reports."""
        return self._parts.p_values(cells, n)

    def heaviest(self, table: Table) -> float:
        """See the base class. A forger chooses the pair, and a pair has few of the reports."""
        return len(self._pairs) / self._gain

    def forecast(self, n: int) -> Floats:
        """Return the standard errors of the scores to expect, each pair at the expected number of its reports."""
        k = len(self._candidates)
        return np.full(k, self._error_of_pair(n) * np.sqrt(k - 1))

    def _error_of_pair(self, n: int) -> float:
        return float(self._parts.forecast(n)[0])

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield the number of pairs, and the errors of shares and scores at n reports."""
        pairs, candidates = len(self._pairs), len(self._candidates)
        yield "pairs", f"{pairs} of {candidates} candidates, each with {max(round(n / pairs), 1):,} of the reports"
        yield heaviest_fact(pairs / self._gain, n)
        share, score = self._error_of_pair(n), self.forecast(n)[0]
        yield (
            "errors",
            f"standard error of a share who prefer one of two {share:.3g}, of a mean Borda score {score:.3g}",
        )

    def tables(self, cells: Counts, n: int, estimator: str) -> tuple[Table, ...]:
        """Return the matrix of who beats whom, and the scores.

        Raises:
            ValueError: if ``n`` is not positive, the cells do not fit, or the decoder has no such estimator.
        """
        require_reports(n)
        self.require(estimator)
        wins = self._wins(cells, n)
        published = wins.shares if estimator == "empirical" else wins.shares.clip(0.0, 1.0)
        k, names = len(self._candidates), self._candidates
        scores, rows = self.linear(cells, n), self._matrix(published, 1 - published)
        low, high = scores.interval(self._coverage(k))
        score = Table(
            TableName.SCORE,
            rows.sum(axis=1),
            np.sqrt(scores.variance),
            n,
            shape=(k,),
            keys=names,
            low=low.clip(0.0, k - 1.0),
            high=high.clip(0.0, k - 1.0),
            basis=Basis.NORMAL,
            simultaneous=self._simultaneous,
            unbiased=scores.values,
        )
        beats = Table(
            TableName.BEATS,
            rows.ravel(),
            np.sqrt(scores.errors).ravel(),
            n,
            shape=(k, k),
            keys=tuple(f"{winner} > {loser}" for winner in names for loser in names),
            low=self._matrix(wins.low, 1 - wins.high).clip(0.0, 1.0).ravel(),
            high=self._matrix(wins.high, 1 - wins.low).clip(0.0, 1.0).ravel(),
            basis=Basis.EXACT,
            simultaneous=self._simultaneous,
            unbiased=scores.beats.ravel(),
        )
        return score, beats

    def _wins(self, cells: Counts, n: int) -> Wins:
        """Return the share of each pair from its own reports."""
        coverage = self._coverage(len(self._pairs))
        found = []
        for part in self._parts.parts(cells, n):
            if not part.n:
                found.append((0.5, 0.25, 0.0, 1.0))
                continue
            linear = part.decoder.linear(part.cells, part.n)
            low, high = linear.interval(coverage)
            found.append((linear.values[0], linear.variance[0], low[0], high[0]))
        return Wins(*np.array(found).T)

    def _matrix(self, above: Floats, below: Floats) -> Floats:
        """Return what pairs say as a matrix, with 0 on its diagonal.

        Args:
            above: Shape (pairs,): of the first candidate over the second.
            below: Shape (pairs,): of the second over the first.
        """
        matrix = np.zeros((len(self._candidates),) * 2)
        first, second = self._pairs.T
        matrix[first, second], matrix[second, first] = above, below
        return matrix

    def _coverage(self, intervals: int) -> float:
        return 1 - (1 - INTERVAL_LEVEL) / intervals if self._simultaneous else INTERVAL_LEVEL

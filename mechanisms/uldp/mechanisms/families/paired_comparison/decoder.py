"""Who beats whom, and the mean Borda scores, from answers about single pairs of candidates."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.decoders.strata_decoder import SharesOfParts
from uldp.mechanisms.decoders.table_of import coverage_of, table_from, table_of
from uldp.mechanisms.families.paired_comparison.scores import borda
from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.protocol.decoder import heaviest_fact, require_reports
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.table import Basis, Table, TableName


class RankingDecoder(SharesOfParts):
    """Reads the answers about all pairs: the matrix of who beats whom, and the Borda scores.

    The answers about a pair are randomized responses of users drawn at random, so the estimates of pairs with reports
    are independent and unbiased. Scores are unbiased whether or not all pairs have reports; see ``scores``. Intervals
    of shares are Clopper and Pearson's, unless devices keep responses; those of scores follow from their cumulants.

    - "empirical": the unbiased estimates. Shares may be outside of 0 to 1.
    - "auto": each share cut to 0 to 1, and each score to 0 to k - 1.
    """

    quantity = TableName.SCORE

    def __init__(self, candidates: Sequence[str], of_pair: PureDecoder, strata: Strata) -> None:
        self._candidates = tuple(candidates)
        self._pairs = np.array(list(combinations(range(len(candidates)), 2)))
        names = [f"{candidates[first]} > {candidates[second]}" for first, second in self._pairs]
        super().__init__(names, [of_pair] * len(names), strata)
        response, one = of_pair.response, np.eye(len(candidates))
        self._gain = float(of_pair.channel.gain[0])
        self._of_response = None if response is None else float(response.channel.gain[0])
        self._signs = one[:, self._pairs[:, 0]] - one[:, self._pairs[:, 1]]

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        require_reports(n)
        answers = np.stack([part.cells for part in self.parts(cells, n)], axis=1)
        return borda(answers, self._signs, self._gain, self._of_response).repeated(repeats)

    def heaviest(self, table: Table) -> float:
        """See the base class. A forger chooses the pair, and a pair has few of the reports."""
        return len(self._pairs) / self._gain

    def forecast(self, n: int) -> Floats:
        k = len(self._candidates)
        return np.full(k, np.sqrt(len(self._pairs) * (k - 1) / n) / (2 * self._gain))

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        pairs, candidates = len(self._pairs), len(self._candidates)
        yield "pairs", f"{pairs} of {candidates} candidates, each with {max(round(n / pairs), 1):,} of the reports"
        yield heaviest_fact(pairs / self._gain, n)
        of_pair, reports = self.expected(n)[0]
        share, score = of_pair.forecast(reports)[0], self.forecast(n)[0]
        of_share = f"standard error of a share who prefer one of two {share:.3g}"
        yield "errors", f"{of_share}, of a mean Borda score {score:.3g}"

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        self.require(estimator)
        shares, variance, low, high = self._wins(cells, n, repeats)
        scores, k, names = self.linear(cells, n, repeats), len(self._candidates), self._candidates
        of_pairs, of_scores = shares, scores.values
        if estimator != "empirical":
            of_pairs, of_scores = of_pairs.clip(0.0, 1.0), of_scores.clip(0.0, k - 1.0)
        score = table_of(
            TableName.SCORE, of_scores, scores, simultaneous=self.simultaneous, bounds=(0.0, k - 1.0), keys=names
        )
        beats = table_from(
            TableName.BEATS,
            self._matrix(of_pairs, 1 - of_pairs),
            np.sqrt(self._matrix(variance, variance)),
            (self._matrix(low, 1 - high), self._matrix(high, 1 - low)),
            Basis.SCORE if repeats else Basis.EXACT,
            n=n,
            shape=(k, k),
            keys=tuple(f"{winner} > {loser}" for winner in names for loser in names),
            simultaneous=self.simultaneous,
            unbiased=self._matrix(shares, 1 - shares),
        )
        return score, beats

    def _wins(self, cells: Counts, n: int, repeats: float) -> Floats:
        """Return estimates, variances and ends of each pair, (4, pairs); 1/2, 1/4, 0 and 1 without reports."""
        coverage, unknown = coverage_of(len(self._pairs), self.simultaneous), [0.5, 0.25, 0.0, 1.0]
        return np.array(
            [
                unknown
                if own is None
                else [own.values[0], own.variance[0], *(end[0] for end in own.interval(coverage))]
                for own in self.estimates(cells, n, repeats)
            ]
        ).T

    def _matrix(self, above: Floats, below: Floats) -> Floats:
        """Return pairs as a flat matrix, ``above`` of first over second, with 0 on its diagonal."""
        matrix = np.zeros((len(self._candidates),) * 2)
        first, second = self._pairs.T
        matrix[first, second], matrix[second, first] = above, below
        return matrix.ravel()

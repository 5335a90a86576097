"""Who beats whom, and unbiased mean Borda scores, from answers about single pairs of candidates.

A score less (k-1)/2 is the sum of b_v over the pairs v of a candidate, where b_v is the share of users who rank it
above the other one, less 1/2. A report draws one of P pairs, and debiased it is z = 1/(2g) or -1/(2g), of mean b_v,
with the gain g = p - q. Horvitz & Thompson's sum (P/n) sum z (JASA 47, 1952) is unbiased, while a mean of each pair is
not: of a pair without reports it has to be guessed. The former pays for the drawn numbers of reports, unless each z is
taken from a centre c_v near b_v that does not depend on it. So the estimate is the mean over reports i, of pair v, of

    phi_i = S c + P S_v (z_i - c_v)              c from all reports but i

where column v of S is 1 for its first candidate and -1 for its second. Given the other reports, the mean of phi_i over
the pair and the answer is S b, whatever c is. Reports of one cell have the same centre, so there are 2P of them.

With f = 1/(4g^2) - 1/4, the variance of an answer about a pair on which all users agree, the covariance of phi_i is

    P S diag(f + e) S' - (S (b - c))(S (b - c))'         e_v = 1/4 - 2 c_v b_v + c_v^2

The second term is what the numbers of reports cost less, because they sum to n. b follows from all reports, as c does.
The part of f is exact. The other is scaled so that the variances sum to those of the phi_i, which are unbiased, but of
one candidate rest on few reports. Two phi depend on each other by the part that each has in the centre of the other,
which is of the order 1/n^2, and is left out.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.decoders.strata_decoder import SharesOfParts
from uldp.mechanisms.decoders.table_of import coverage_of, table_from, table_of
from uldp.mechanisms.laws.estimate import Estimate, part_of
from uldp.mechanisms.laws.law import Cumulants, Law
from uldp.mechanisms.protocol.decoder import heaviest_fact, require_reports
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.table import Basis, Table, TableName


class RankingDecoder(SharesOfParts):
    """Reads the answers about all pairs: the matrix of who beats whom, and the Borda scores.

    The answers about a pair are randomized responses of users drawn at random, so the estimates of pairs with reports
    are independent and unbiased. Scores are unbiased whether or not all pairs have reports; see the module. Intervals
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


# Differences of scores are stretched by each of these, because users may agree more or less about each pair.
_STRETCHES = (1.0, 2.0, 4.0, 16.0)
# So many fits at once stay in the cache of a core.
_TOGETHER = 32


class ScoresLaw(Law):
    """The law of phi of one report, whose covariance is known from all; it is taken as symmetric around its mean."""

    def __init__(self, covariance: Floats, response: Law | None = None) -> None:
        self._covariance, self.size, self.response = covariance, len(covariance), response

    def each(self, theta: Floats) -> Cumulants:
        return self.one(np.eye(self.size), theta)

    def one(self, w: Floats, theta: Floats) -> Cumulants:
        variance = np.maximum((w * self.times(w, theta)).sum(axis=0), 0.0)
        none = np.full(len(variance), np.nan)
        return Cumulants(variance, np.zeros(len(variance)), np.sqrt(variance), none, none)

    def times(self, w: Floats, theta: Floats) -> Floats:
        return np.asarray(self._covariance @ w)


def borda(answers: Counts, signs: Floats, gain: float, of_response: float | None = None) -> Estimate:
    """Estimate the scores, by the S of ``signs``, shape (k, P), and the gain g; see the module.

    ``answers``, shape (2, P), are how many reports rank the first of each pair higher, and how many the second; one or
    more in all. ``of_response`` is the gain of the responses that devices keep, with their pair; None without any.
    """
    (k, pairs), n = signs.shape, int(answers.sum())
    side, pair = np.nonzero(answers)
    often, z = answers[side, pair], np.where(side == 0, 0.5, -0.5) / gain
    starts = range(0, len(pair), _TOGETHER)
    centres = np.concatenate(
        [_centres_without(answers, side[at : at + _TOGETHER], pair[at : at + _TOGETHER], signs, gain) for at in starts]
    )
    alone = z - centres[np.arange(len(pair)), pair]
    phi = centres @ signs.T + pairs * alone[:, np.newaxis] * signs[:, pair].T
    scores = often @ phi / n
    agreed = _agreed(gain) * pairs * signs @ signs.T
    b = _centres(answers[:, np.newaxis], signs, gain)[0]
    off, spread = b - centres, np.maximum(0.25 - 2 * centres * b + centres**2, 0.0)
    off = off @ signs.T
    rest = pairs * (signs * (often @ spread / n)) @ signs.T - (off * often[:, np.newaxis]).T @ off / n
    found = float((often @ (phi - scores) ** 2).sum()) / max(n - 1, 1) - float(np.trace(agreed))
    known = float(np.trace(rest))
    scale = max(found, 0.0) / known if known > 0 else 0.0
    response = None
    if of_response is not None:
        response = ScoresLaw(_agreed(of_response) * pairs * signs @ signs.T + scale * rest)
    values = (k - 1) / 2 + scores
    return Estimate(values, np.full(k, n), (part_of(ScoresLaw(agreed + scale * rest, response), values, n),))


def _agreed(gain: float) -> float:
    return 1 / (4 * gain**2) - 0.25


def _centres_without(answers: Counts, side: Counts, pair: Counts, signs: Floats, gain: float) -> Floats:
    """Fit b once without a report of each of some cells; shape (cells, P)."""
    others = np.repeat(answers[:, np.newaxis], len(pair), axis=1)
    others[side, np.arange(len(pair)), pair] -= 1
    return _centres(others, signs, gain)


def _centres(answers: Counts, signs: Floats, gain: float) -> Floats:
    """Fit b to the answers of several samples; shape (2, samples, P) becomes (samples, P).

    Each candidate has the mean of its z, shrunk by the part of their variance that is noise. The differences of these
    are stretched, in the mean over ``_STRETCHES`` by their normal likelihoods, and each pair moves from there towards
    its own mean as far as the pairs differ more from the fit than by noise (DerSimonian & Laird, 1986).
    """
    reports, total = answers.sum(axis=0), (answers[0] - answers[1]) / (2 * gain)
    n, noise = np.maximum(reports.sum(axis=1, keepdims=True), 1), 1 / (4 * gain**2)
    of_each = np.maximum(reports @ (signs**2).T, 1)
    means = total @ signs.T / of_each
    size = np.maximum((means**2).mean(axis=1, keepdims=True), np.finfo(float).tiny)
    means *= np.maximum(1 - noise * (1 / of_each).mean(axis=1, keepdims=True) / size, 0.0)
    fits = [np.clip(stretch * (means @ signs), -0.5, 0.5) for stretch in _STRETCHES]
    losses = np.stack([((reports * fit - 2 * total) * fit).sum(axis=1, keepdims=True) / (2 * noise) for fit in fits])
    weights = np.exp(losses.min(axis=0) - losses)
    fit = sum(weight * each for weight, each in zip(weights / weights.sum(axis=0), fits, strict=True))
    own, some = total / np.maximum(reports, 1), reports > 0
    chance = np.maximum(noise - fit**2, 0.0)
    beyond = ((own - fit) ** 2 * reports - chance * some).sum(axis=1, keepdims=True) / n
    beyond = np.maximum(beyond, 0.0)
    trust = some * beyond / np.maximum(beyond + chance / np.maximum(reports, 1), np.finfo(float).tiny)
    centres: Floats = np.clip(fit + trust * (own - fit), -0.5, 0.5)
    return centres

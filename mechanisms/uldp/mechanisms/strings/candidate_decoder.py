"""The shares of candidates among strings that nobody lists beforehand, and the share of all other strings."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import cast

import numpy as np

from uldp.mechanisms.decoders.table_of import FALSELY_FOUND, table_from, table_of
from uldp.mechanisms.estimators.simplex import onto_simplex
from uldp.mechanisms.kernels.intervals import lower_tail
from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.laws.interval import normal_quantile
from uldp.mechanisms.protocol.decoder import FindingDecoder, heaviest_fact, require_reports, two_digits
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.mechanisms.strings.candidate_shares import CandidateEstimate, CandidateShares
from uldp.mechanisms.strings.cohort_channel import CohortCells
from uldp.mechanisms.strings.cohort_sizes import fitted_together
from uldp.mechanisms.strings.cohorts import string_symbol
from uldp.mechanisms.strings.string_mechanism import StringMechanism
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.table import INTERVAL_LEVEL, Basis, Table, TableName

#: Candidates with a smaller share than this are what a collection of strings is for.
LARGE_SHARE = 0.1


class CandidateDecoder(FindingDecoder):
    """Estimates which share of the users holds each candidate, from the cells of cohorts.

    - ``share``: the share of each candidate. "empirical" is unbiased, and "auto" is the nearest to it of all shares
      that are 0 or more and sum, with the unexplained one, to 1, weighted by the variances. Of more candidates than are
      fitted together, "auto" has 0 for all that are not found: else their noise, which only 0 bounds, would take the
      shares of the others. The intervals lie around the unbiased estimate, and are cut to [0, 1].
    - ``unexplained``: the share of users who hold none of the candidates.
    - ``p_value``: the probability of so large an estimate, or a larger one, if nobody holds the candidate.
    - ``found``: 1 for the candidates whose p-value is at most 0.05 / K, else 0. So the probability that any is found
      which nobody holds is at most 5 % (Bonferroni).

    If devices hold up to l strings, shares sum to l or less, and no cell says how many users hold none of the
    candidates. In place of ``unexplained`` there is ``mean_size``: how many of the strings in the tables a user reports
    in the mean.

    The candidates may change at any time, because no cell depends on them.
    """

    estimators = ("auto", "empirical")
    names: tuple[str, ...]

    def __init__(
        self, mechanism: Mechanism, candidates: Sequence[str], longest: int, *, simultaneous: bool = False
    ) -> None:
        """Build the decoder of a ``StringMechanism``; ValueError if a candidate is too long."""
        response = cast(StringMechanism | None, mechanism.inner)
        self.channel = cast(StringMechanism, mechanism.bare).cohort_channel
        self.names = tuple(candidates)
        self.simultaneous = simultaneous
        self._longest, self._response = longest, None if response is None else response.cohort_channel
        self._counted = not mechanism.partitions

    @cached_property
    def _candidates(self) -> CandidateShares:
        """The candidates, hashed with the first statistic, as devices build this decoder too."""
        symbols = np.array([string_symbol(name, self._longest) for name in self.names], dtype=np.int64)
        return CandidateShares(self.channel, symbols, self._together, FALSELY_FOUND / max(len(symbols), 1))

    @property
    def _together(self) -> int:
        """How many candidates are fitted together."""
        channel = self.channel
        return fitted_together(len(self.names), channel.independent, channel.cohorts * channel.hashes)

    def _split(self, cells: Counts, n: int) -> tuple[Counts, Counts]:
        """Return the supports, shape (M, L), and the reports of each cohort, shape (M,); ValueError as ``check``."""
        columns = self.channel.positions + self._counted
        if cells.shape != (self.channel.cohorts * columns,):
            raise ValueError(f"the cells have shape {cells.shape}, not {self.channel.cohorts} x {columns}")
        of_cohorts = cells.reshape(self.channel.cohorts, columns)
        supports = of_cohorts[:, int(self._counted) :]
        sizes = of_cohorts[:, 0] if self._counted else supports.sum(axis=1)
        if cells.min() < 0 or sizes.sum() != n or (supports > sizes[:, np.newaxis]).any():
            raise ValueError(f"no {n} reports give these cells of {self.channel.cohorts} cohorts")
        return supports, sizes

    def check(self, cells: Counts, n: int) -> None:
        self._split(cells, n)

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        return self.estimate(cells, n, repeats).repeated(repeats)

    def estimate(self, cells: Counts, n: int, repeats: float = 0.0) -> CandidateEstimate:
        """Return ``linear`` with the errors of reports of different devices, and with what is known of collisions."""
        require_reports(n)
        return self._candidates.estimate(self.cells_of(cells, n, repeats))

    def cells_of(self, cells: Counts, n: int, repeats: float = 0.0) -> CohortCells:
        """Return the cells by their cohorts; ValueError as ``check``."""
        return CohortCells(*self._split(cells, n), self._response, repeats)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Return how probable it is that n honest reports give a cell so small or so large a count.

        A report is in each cohort with the probability 1/M, and supports a position of it with one from q to p,
        whatever the string is. So each cell is stochastically between binomial ones. The test takes all cells, with
        Bonferroni's bound, at every n.
        """
        supports, sizes = self._split(cells, n)
        if n <= 0:
            return {}
        channel = self.channel
        p, q = channel.p / channel.cohorts, channel.least / channel.cohorts
        tails = [lower_tail(int(supports.min()), n, q), lower_tail(n - int(supports.max()), n, 1 - p)]
        if channel.cohorts > 1:
            alone = 1 / channel.cohorts
            tails += [lower_tail(int(sizes.min()), n, alone), lower_tail(n - int(sizes.max()), n, 1 - alone)]
        return {Flag.IMPROBABLE_COUNTS: min(1.0, 2 * (supports.size + sizes.size) * min(tails))}

    def forecast(self, n: int) -> Floats:
        """Return the errors of K rare candidates at n reports, without collisions, shape (K,)."""
        return np.full(len(self.names), self.error(n))

    def error(self, n: int) -> float:
        return self.channel.error(n, self._together)

    def least_found(self, n: int, tested: int | None = None) -> float:
        """Return the share that n reports find with probability 1/2, among ``tested`` strings."""
        tested = len(self.names) if tested is None else tested
        return -normal_quantile(FALSELY_FOUND / max(tested, 1)) * self.error(n)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        channel = self.channel
        kind = "buckets" if channel.one_position else f"bits, {channel.hashes} hashes"
        law = f"p {channel.p:.6g}, q {channel.q:.6g}"
        yield "cohorts", f"{channel.cohorts:,} of {channel.positions:,} {kind}: {law}"
        asked = f"{len(self.names):,} of the strings"
        if self._together < len(self.names):
            asked = f"{asked}, of which up to {self._together:,} that are found are fitted together"
        yield "candidates", asked if self.names else "none; estimates need candidates"
        if self.names:
            yield self.forged_fact(n, len(self.names))
        yield heaviest_fact(self.weight, n)
        shown = f"half of the candidates with a share of {min(self.least_found(n), 1):.3g} are found"
        yield "errors", f"of the share of a rare string at n = {n:,}: {self.error(n):.3g}; {shown}"

    def forged_fact(self, n: int, tested: int, parts: int = 1) -> tuple[str, str]:
        """Return the fact how many forged reports, in all parts of n each, find a string that nobody holds."""
        users = parts * n * min(self.least_found(n, tested), 1.0)
        forged = math.ceil(users / self.weight)
        return "forged", f"about {forged:,} reports find a string that nobody holds, as {math.ceil(users):,} users do"

    @property
    def weight(self) -> float:
        return self.channel.weight / self.channel.left(self._together)

    def heaviest(self, table: Table) -> float | None:
        if table.name in (TableName.UNEXPLAINED, TableName.MEAN_SIZE):
            return self._candidates.reach_of_sum if self.names else None
        return self.weight if table.name is TableName.SHARE else None

    def warnings(self, n: int, users: int, estimator: str) -> Iterator[str]:
        if not self.names:
            yield "no candidates: reports are counted, but estimates need candidates; add them to the spec at any time"
        elif (least := self.least_found(n)) > LARGE_SHARE:
            yield (
                f"a candidate is found only from a share of about {min(least, 1):.2g} on: take"
                f" {two_digits(users * (least / LARGE_SHARE) ** 2):,} users or more in a window, or a larger epsilon"
            )

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        return self.tables_of_found(cells, n, estimator, repeats, asked=len(self.names))

    def tables_of_found(
        self, cells: Counts, n: int, estimator: str, repeats: float, *, asked: int
    ) -> tuple[Table, ...]:
        """Return the tables of some candidates whether or not they are found, and of the others that are found.

        Intervals of those that are found for being large would cover too seldom. So they have the level 1 - .05 R/K, if
        R of K candidates are shown: of all shown intervals, 5 % miss the truth in the mean (Benjamini & Yekutieli,
        "False Discovery Rate-Adjusted Multiple Confidence Intervals for Selected Parameters", JASA 2005).

        The first ``asked`` candidates are in the tables in any case; see ``tables`` for the other arguments.
        """
        self.require(estimator)
        once, k = self.estimate(cells, n, repeats), len(self.names)
        linear, held = once.repeated(repeats), self.channel.held
        p_value = self._chance(once, linear, n)
        found = p_value <= FALSELY_FOUND / max(k, 1)
        shown = np.flatnonzero(found | (np.arange(k) < asked))
        if not len(shown):
            name, nothing = (TableName.UNEXPLAINED, 1.0) if held == 1 else (TableName.MEAN_SIZE, 0.0)
            return (Table(name, np.array([nothing]), np.zeros(1), n, shape=(1,)),)
        share, total = once.values, float(once.values[shown].sum())
        rest = 1 - total
        if estimator == "auto":
            share, rest = _nearest(once, held)
            rest += np.delete(share, shown).sum()
        missed = (1 - INTERVAL_LEVEL) * (1 if self.simultaneous else len(shown)) / k
        low, high = linear.interval(1 - missed)
        names = tuple(self.names[i] for i in shown.tolist())
        shares = table_from(
            TableName.SHARE,
            share[shown],
            np.sqrt(linear.variance[shown]),
            (low[shown], high[shown]),
            Basis.SCORE,
            n=n,
            keys=names,
            unbiased=once.values[shown],
            level=INTERVAL_LEVEL if self.simultaneous else 1 - missed,
            simultaneous=self.simultaneous,
        )
        inside = np.zeros((k, 1))
        inside[shown] = 1
        if held == 1:
            others = linear.mapped(np.array([1 - total]), lambda w: -inside * w, lambda moved: -inside.T @ moved)
            of_all = table_of(TableName.UNEXPLAINED, np.array([rest]), others)
        else:
            size = np.clip([total], 0.0, held)
            of_all = table_of(TableName.MEAN_SIZE, size, linear, w=inside, bounds=(0.0, float(held)))
        test = partial(Table, stderr=np.zeros(len(names)), n=n, shape=(len(names),), keys=names)
        tests = test(TableName.P_VALUE, p_value[shown]), test(TableName.FOUND, found[shown].astype(np.float64))
        return shares, of_all, *tests

    def _chance(self, once: Estimate, linear: Estimate, n: int) -> Floats:
        """Return the probability of such estimates, or larger ones, of strings that nobody holds.

        The supports of a string that nobody holds are about binomial, n H trials of the probability by which chance
        supports a position. Where they are few, their law is less even than the normal one. Reports of devices that
        keep responses count as so many of different devices as have the variance of their mean.
        """
        from scipy import special  # takes a quarter of a second, and devices need none

        chance = self.channel.chance
        trials = n * self.channel.hashes * once.variance / linear.variance
        supports = trials * chance + linear.values * np.sqrt(trials * chance * (1 - chance) / linear.variance)
        inside = np.clip(supports, np.finfo(np.float64).tiny, trials)
        return np.asarray(np.where(supports <= 0, 1.0, special.betainc(inside, trials - inside + 1, chance)))


def _nearest(linear: CandidateEstimate, held: int) -> tuple[Floats, float]:
    """Return the shares of "auto", (K,), and the unexplained one; of l strings, each in [0, 1], of a sum up to l."""
    chosen, shares = linear.together, np.zeros(len(linear.values))
    values, variances, inside = linear.values[chosen], linear.variance[chosen], np.zeros((len(shares), 1))
    if held > 1:
        nearest = np.clip(values, 0.0, 1.0)
        shares[chosen] = nearest if nearest.sum() <= held else onto_simplex(values, variances, total=held)
        return shares, 0.0
    rest = float(np.clip(1 - linear.values.sum(), 0.0, 1.0))
    if not len(chosen):  # all is unexplained, and has no variance
        return shares, rest
    inside[chosen] = 1
    nearest = onto_simplex(np.append(values, 1 - values.sum()), np.append(variances, linear.variance_of(inside)))
    shares[chosen] = nearest[:-1]
    # The shares of those not found are in neither.
    return shares, min(rest, float(nearest[-1])) if len(chosen) < len(shares) else float(nearest[-1])

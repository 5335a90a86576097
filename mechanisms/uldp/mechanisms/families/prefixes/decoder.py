"""The decoder that finds strings: it walks down their prefixes, and tests what it finds by reports of whole strings."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial

import numpy as np

from uldp.mechanisms.decoders.strata_decoder import PartsDecoder
from uldp.mechanisms.decoders.table_of import FALSELY_FOUND
from uldp.mechanisms.encodings.string_encodings import PrefixEncoding
from uldp.mechanisms.inference.plausibility import ALARM_LEVEL
from uldp.mechanisms.laws.estimate import Estimate, weighted
from uldp.mechanisms.laws.interval import p_value
from uldp.mechanisms.protocol.decoder import Cost, FindingDecoder, require_reports, two_digits
from uldp.mechanisms.randomizers.strata import Strata
from uldp.mechanisms.strings.candidate_decoder import LARGE_SHARE, CandidateDecoder
from uldp.mechanisms.strings.candidate_shares import CandidateShares
from uldp.mechanisms.strings.cohort_channel import CohortCells
from uldp.mechanisms.strings.cohort_sizes import fitted_together
from uldp.mechanisms.strings.walk import Walk
from uldp.schemas.arrays import Counts, Floats, Rows
from uldp.schemas.flags import Flag
from uldp.schemas.table import Table, TableName


class PrefixShares:
    """The shares of the prefixes of K strings, of each length, from the reports about this length.

    Whoever holds a string holds each of its prefixes. So its share is at most that of its prefix of any length, and at
    most the mean of those of all lengths. Forgers who report the whole string more often than its prefixes, as is
    cheapest, break this.
    """

    def __init__(self, walk: Walk, texts: Sequence[str]) -> None:
        self._of_lengths = [self._of_length(walk, number, texts) for number in range(len(walk.lengths))]

    @staticmethod
    def _of_length(walk: Walk, number: int, texts: Sequence[str]) -> tuple[CandidateShares, Rows]:
        """Return the different prefixes, and which of them each string has."""
        encoding = PrefixEncoding(number, walk.lengths[number], walk.spelling, walk.longest)
        symbols, places = np.unique([encoding.symbol(text) for text in texts], return_inverse=True)
        channel, k = walk.channel, len(symbols)
        together = fitted_together(k, channel.independent, channel.cohorts * channel.hashes)
        return CandidateShares(channel, symbols, together, FALSELY_FOUND / k), places

    def excess_p_values(self, whole: Estimate, levels: Sequence[CohortCells]) -> Floats:
        """Return how probable such excesses of strings over their prefixes are, or larger ones, shape (K,).

        The excess is the share of the string less the mean of those of its prefixes; its mean is 0 or less. Its
        one-sided p-value is that of its cumulants; different devices report of each length, so these add up.
        """
        pairs = zip(self._of_lengths, levels, strict=True)
        shares = [_spread(each.estimate(cells), places) for (each, places), cells in pairs if cells.n]
        if not shares:
            return np.ones(len(whole.values))
        weights = np.array([1.0] + [-1 / len(shares)] * len(shares))[:, np.newaxis]
        excess = weighted([whole, *shares], weights)
        return np.where(excess.values > 0, p_value(excess.values, excess.cumulants) / 2, 1.0)


def _spread(estimate: Estimate, places: Rows) -> Estimate:
    """Return the estimate of the values at these places, some of them several times."""
    size = len(estimate.values)

    def forward(w: Floats) -> Floats:
        sums = np.zeros((size, w.shape[1]))
        np.add.at(sums, places, w)
        return sums

    return estimate.mapped(estimate.values[places], forward, lambda moved: moved[places], single=True)


# Each pane compares candidates with their prefixes if these have so many positions together: for some 50 ms.
_MOST_COMPARED = 1 << 22


class WalkDecoder(PartsDecoder[CandidateDecoder], FindingDecoder):
    """Finds strings that nobody has listed, and estimates which share of the users holds each.

    The reports about prefixes show which strings may be frequent; see ``Walk``. These, and the candidates of the spec,
    are then tested by the reports of whole strings. Their users had no part in the choice, so Bonferroni's bound over
    the tested strings holds: that any string is found which nobody holds has a probability of at most 5 %.

    A string that is held more often than its own prefixes is forged; see ``PrefixShares``. Such a one of the search is
    left out, and such a candidate raises the flag ``improbable_counts``.

    The tables are those of ``CandidateDecoder``, of the candidates and of all other strings that are found.
    ``unexplained`` is the share of users who hold none of these; of sets of strings, ``mean_size`` is in its place.
    """

    names: tuple[str, ...]

    def __init__(self, strata: Strata, walk: Walk, candidates: Sequence[str], *, simultaneous: bool) -> None:
        """Build the decoder of strata of equal parts: one for each length of prefixes, and one for whole strings."""
        self.names = tuple(candidates)
        self.walk, self._channel = walk, walk.channel
        self._build = partial(CandidateDecoder, strata.parts[0], longest=walk.longest, simultaneous=simultaneous)
        self._asked = self._build(self.names)
        parts = [*(f"prefixes of {length:,}" for length in walk.lengths), "whole strings"]
        super().__init__(parts, [*[self._build(())] * len(walk.lengths), self._asked], strata)

    def cost(self, estimator: str) -> Cost:
        return Cost.FINAL

    def reports(self, cells: Counts, n: int) -> tuple[int, ...]:
        return tuple(part.n for part in self.parts(cells, n))

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        """Return the unbiased estimate of the shares of the candidates, from the reports of whole strings."""
        whole = self.parts(cells, n)[-1]
        return self._asked.linear(whole.cells, whole.n, repeats)

    def part_of(self, table: Table) -> int:
        """See the base class: all tables are of whole strings."""
        return len(self.decoders) - 1

    def heaviest(self, table: Table) -> float | None:
        """See the base class; of sums of shares it depends on what is found."""
        return super().heaviest(table) if table.name is TableName.SHARE else None

    def forged_ends(self, table: Table, cells: Counts, forged: float) -> tuple[Floats, Floats] | None:
        return super().forged_ends(table, cells, forged) if table.name is TableName.SHARE else None

    @property
    def _most_tested(self) -> int:
        return len(self.names) + self.walk.most

    def tested(self, table: Table) -> int:
        """See the base class: the tables leave out strings of the search that are not found."""
        return self._most_tested

    def forecast(self, n: int) -> Floats:
        return self._asked.forecast(self._of_a_part(n))

    def _of_a_part(self, n: int) -> int:
        return self.expected(n)[-1][1]

    def found(self, cells: Counts, n: int) -> list[str]:
        """Return the strings that the reports about prefixes show, but for the candidates."""
        shape = self._channel.cohorts, self._channel.positions
        walked = self.walk.run([part.cells.reshape(shape) for part in self.parts(cells, n)[:-1]])
        return [text for text in walked if text not in self.names]

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        self.require(estimator)
        whole = self.parts(cells, n)[-1]
        require_reports(whole.n)
        tested = self._build(self.credible((*self.names, *self.found(cells, n)), cells, n, repeats))
        return tested.tables_of_found(whole.cells, whole.n, estimator, repeats, asked=len(self.names))

    def credible(self, names: Sequence[str], cells: Counts, n: int, repeats: float = 0.0) -> list[str]:
        """Return the candidates, and the others of some strings that are not more frequent than their prefixes."""
        if len(names) == len(self.names):
            return list(names)
        p_values = self._excess_p_values(PrefixShares(self.walk, names), self._build(names), cells, n, repeats)
        doubted = (p_values < ALARM_LEVEL / len(names)) & (np.arange(len(names)) >= len(self.names))
        return [name for name, doubt in zip(names, doubted.tolist(), strict=True) if not doubt]

    def _excess_p_values(
        self, prefixes: PrefixShares, tested: CandidateDecoder, cells: Counts, n: int, repeats: float = 0.0
    ) -> Floats:
        *of_lengths, whole = self.parts(cells, n)
        pairs = zip(self.decoders[:-1], of_lengths, strict=True)
        levels = [decoder.cells_of(part.cells, part.n, repeats) for decoder, part in pairs]
        return prefixes.excess_p_values(tested.linear(whole.cells, whole.n, repeats), levels)

    @cached_property
    def _prefixes(self) -> PrefixShares | None:
        """The prefixes of the candidates; None if there are no candidates, or too many to compare in each pane."""
        compared = len(self.names) * len(self.walk.lengths) * self._channel.cohorts
        return PrefixShares(self.walk, self.names) if 0 < compared <= _MOST_COMPARED else None

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """See the base class; with a test of whether a candidate is more frequent than its prefixes."""
        found = dict(super().p_values(cells, n))
        if self._prefixes is not None and self.parts(cells, n)[-1].n:
            p_values = self._excess_p_values(self._prefixes, self._asked, cells, n)
            least = min(found.get(Flag.IMPROBABLE_COUNTS, 1.0), len(self.names) * float(p_values.min()))
            found[Flag.IMPROBABLE_COUNTS] = min(1.0, 2 * least)
        return found

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        walk, spelling, of_each = self.walk, self.walk.spelling, self._of_a_part(n)
        lengths = " to ".join(f"{length:,}" for length in sorted({walk.lengths[0], walk.lengths[-1]}))
        of_all = f"each length, and whole strings, have {1 / len(self.decoders):.3g} of the reports"
        yield "prefixes", f"of {lengths} of {len(spelling.pieces):,} pieces; {of_all}"
        yield "discover", f"keeps {walk.keep:,} prefixes of each length, and tests up to {walk.most:,} strings"
        facts = dict(self._asked.describe(of_each, estimator))
        del facts["errors"]
        facts.pop("forged", None)
        if not self.names:
            del facts["candidates"]
        yield from facts.items()
        yield self._asked.forged_fact(of_each, self._most_tested, len(self.decoders))
        shown = f"half of the strings with a share of {min(self.least_found(n), 1):.3g} are found"
        yield "errors", f"of the share of a rare string at n = {of_each:,}: {self.error(n):.3g}; {shown}"

    def error(self, n: int) -> float:
        return self._asked.error(self._of_a_part(n))

    def least_found(self, n: int) -> float:
        return self._asked.least_found(self._of_a_part(n), self._most_tested)

    @property
    def weight(self) -> float:
        return self._asked.weight

    def warnings(self, n: int, users: int, estimator: str) -> Iterator[str]:
        least = self.least_found(n)
        if least > LARGE_SHARE:
            yield (
                f"a string is found only from a share of about {min(least, 1):.2g} on: take"
                f" {two_digits(users * (least / LARGE_SHARE) ** 2):,} users or more in a window, a larger epsilon, or a"
                " smaller depth"
            )
        elif (enough := self._enough_cohorts(n)) > self._channel.cohorts:
            yield (
                f"{self._channel.cohorts:,} cohorts are few for {users:,} users: collisions of strings that are not"
                f" found may add more than a quarter to the variance of scores; write cohorts: {enough}"
            )

    def _enough_cohorts(self, n: int) -> int:
        """Return how many cohorts keep the variance of collisions below a quarter of that of the noise.

        The squared shares of strings that are too rare to be found sum to no more than the largest of these, times how
        many strings a device holds.
        """
        channel = self._channel
        rows = float(channel.row_variance(np.array(channel.covered)))
        squares = channel.held * min(self.least_found(n), 1.0)
        return two_digits(4 * squares * channel.scatter * self._of_a_part(n) / rows)

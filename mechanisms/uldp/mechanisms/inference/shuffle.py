"""What a report gives away to those who see only the published tables, and not whose report it is.

Who drops the ids, times and senders of n reports (a shuffler; here the collector, which adds the reports up) hides each
report among the others: whatever another user holds, the report is with a known probability a clone, one that both
values of the user give alike. So the n reports are together (epsilon', delta)-differentially private, with an epsilon'
far below the epsilon of each.

Source: Feldman, McMillan & Talwar, "Hiding Among the Clones" (FOCS 2021), and "Stronger Privacy Amplification by
Shuffling for Renyi and Approximate Differential Privacy" (SODA 2023). With p = 1 / (e^epsilon + 1), the number of
clones is C ~ Bin(n - 1, 2 p). A ~ Bin(C, 1/2) of them are as the first value, and C - A as the second; the user adds
one to the number of the own value with probability e^epsilon p, else to the other. What tells the two values apart best
are these two numbers. The hockey-stick divergence of their laws is computed from its sums, because the closed form is 3
to 6 times larger.

The proof asks of two values x and x' of the user, and of any value z of another one:

    P(y | z) >= max(P(y | x), P(y | x')) / e^epsilon        for all y.

An (X_S, Y_P, epsilon)-ULDP mechanism has this for x and x' in X_S, whose reports are all in Y_P. It also has this among
the reports in Y_P alone, because P(y | z, Y_P) >= P(y | z). So these are the n that count.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.shuffled import Shuffled

#: The delta of all promises.
DELTA = 1e-6
#: More reports get the promise of so many: where delta is as large as the share of one report, less epsilon says less.
MOST_REPORTS = 10**6

# Numbers of clones are taken together in so many ranges, but for numbers that are less probable than this.
_RANGES, _TAIL = 256, 1e-16
# A bound on the relative error of floats in the divergence.
_SUM_ERROR = 1e-6
# The least epsilon' is epsilon less so many powers of ten.
_DECADES = 8


def shuffled(
    mechanism: Mechanism,
    names: Sequence[str],
    cells: Counts,
    n: int,
    *,
    forged: int = 0,
    slices: Sequence[tuple[str, ...]] = (),
) -> Iterator[Shuffled]:
    """Yield the promise about one report of a window; of a record, or of levels, for each part that has any reports.

    Yields none where the proof does not hold: without privacy, if epsilon is for a unit of distance, or if fewer than
    two values are protected. Parts have names if a reader may know which part a user has: of an attribute, or of a
    level. The slice of each user, if reports have public attributes, is known to a reader. So many reports may be
    ``forged``, by somebody who then knows them; all may be of one part.
    """
    if slices:
        for name, part, (own, reports) in zip(slices, mechanism.parts, mechanism.split_cells(cells), strict=True):
            for each in shuffled(part, names, own, reports, forged=forged):
                yield replace(each, of=(*each.of, *name))
        return
    parts: Iterable[tuple[tuple[str, ...], Mechanism, tuple[Counts, int]]] = [((), mechanism, (cells, n))]
    if names and mechanism.parts:
        parts = zip(((name,) for name in names), mechanism.parts, mechanism.split_cells(cells), strict=True)
    for of, part, (own, reports) in parts:
        revealed = part.revealed(own)
        if reports and part.guarantee.epsilon is not None and revealed is not None:
            yield _promise(of, part.guarantee.epsilon, reports - revealed - forged)


def forecast_shuffled(
    mechanism: Mechanism, names: Sequence[str], n: int, *, forged: int = 0
) -> Iterator[tuple[tuple[str, ...], Shuffled | None]]:
    """Yield each part with the promise to expect of n reports of equal shares; None as of ``shuffled``."""
    parts: Iterable[tuple[tuple[str, ...], Mechanism, float]] = [((), mechanism, 1.0)]
    if names and mechanism.parts:
        parts = zip(((name,) for name in names), mechanism.parts, mechanism.shares.tolist(), strict=True)
    for of, part, share in parts:
        epsilon, revealed = part.guarantee.epsilon, part.revealed_share()
        if epsilon is None or revealed is None:
            yield of, None
        else:
            yield of, _promise(of, epsilon, round(n * share * (1 - revealed)) - forged)


def _promise(of: tuple[str, ...], epsilon: float, protected: int) -> Shuffled:
    protected = max(protected, 0)
    return Shuffled(of=of, reports=protected, epsilon=shuffled_epsilon(epsilon, max(protected, 1)), delta=DELTA)


def shuffled_epsilon(epsilon: float, reports: int) -> float:
    """Return epsilon' such that the multiset of so many reports is (epsilon', ``DELTA``)-DP; at most ``epsilon``.

    It is an upper bound in nats, rounded up to three digits. It does not grow with the number of reports, 1 or more, of
    which the first two digits count. Each is by the same mechanism and independent of all others.
    """
    reports = min(reports, MOST_REPORTS)
    step = 10 ** max(len(str(reports)) - 2, 0)
    return _searched(epsilon, reports // step * step)


@lru_cache(maxsize=1 << 12)
def _searched(epsilon: float, reports: int) -> float:
    clones, above = Clones(epsilon, reports), _place(epsilon)
    numbers = range(above - _DECADES * 900, above)
    found = bisect_left(numbers, True, key=lambda place: clones.hockey_stick(_three_digits(place)) <= DELTA)
    return min(_three_digits(numbers.start + found), epsilon)


def _three_digits(place: int) -> float:
    """Return a number by its place among those of three digits, of which each power of ten has 900; 0 is 100."""
    decade, digits = divmod(place, 900)
    return float(f"{100 + digits}e{decade}")


def _place(number: float) -> int:
    """Return the place of a number, rounded up to three digits."""
    decade = math.floor(math.log10(number)) - 2
    return 900 * decade + math.ceil(number * 10.0**-decade) - 100


class Clones:
    """The law of the number of clones, in ranges, each taken as its least number, which tells the most."""

    def __init__(self, epsilon: float, reports: int) -> None:
        from scipy import special  # takes a quarter of a second, and devices need none

        others, chance = reports - 1, 2 / (math.exp(epsilon) + 1)
        mean, width = others * chance, _width(others * chance * (1 - chance))
        least, most = max(math.floor(mean - width), 0), min(math.ceil(mean + width), others)
        self._epsilon = epsilon
        self._clones = np.unique(np.linspace(least, most, _RANGES).astype(np.int64))
        below = np.where(self._clones > 0, special.bdtr(self._clones - 1.0, others, chance), 0.0)
        self._chances: Floats = np.diff(below, append=1.0)
        self._fewer = float(below[0])
        self._log_halves: Floats = special.gammaln(self._clones + 1.0) - self._clones * math.log(2)

    def hockey_stick(self, shuffled: float) -> float:
        """Return an upper bound on the hockey-stick divergence at epsilon' = ``shuffled``, which is delta."""
        from scipy import special

        epsilon = self._epsilon
        excess = math.exp(shuffled) * math.expm1(epsilon - shuffled)  # e^epsilon - e^epsilon'
        # Two numbers are more than e^epsilon' times as likely under the first value, if less than this share of their
        # sum is as the second value. Let ``first`` be one less than the least number that is then as the first.
        share = excess / (math.expm1(epsilon) * (math.exp(shuffled) + 1))
        second = np.ceil((self._clones + 1) * share) - 1
        first = self._clones - second
        at = np.exp(self._log_halves - special.gammaln(first + 1) - special.gammaln(second + 1))
        above = np.where(second > 0, special.bdtrc(first, self._clones, 0.5), 0.0)
        of_clones = excess / (math.exp(epsilon) + 1) * at - math.expm1(shuffled) * above
        return (float(self._chances @ np.maximum(of_clones, 0.0)) + self._fewer) * (1 + _SUM_ERROR)


def _width(variance: float) -> float:
    """Return by how much a binomial count differs from its mean with ``_TAIL`` or less on each side (Bernstein)."""
    nats = -math.log(_TAIL)
    return nats / 3 + math.sqrt(nats**2 / 9 + 2 * variance * nats)

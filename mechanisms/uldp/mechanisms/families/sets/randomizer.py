"""Mechanisms of devices that hold several symbols: subset selection for sets, and hashing for sets, Collision.

Sources: Wang et al., "PrivSet: Set-Valued Data Analyses with Locale Differential Privacy" (INFOCOM 2018), for the law
of subset selection; with one held symbol it is that of Ye & Barg (2018). Wang et al., "Differentially Private Numerical
Vector Analyses in the Local and Shuffle Model" (arXiv 2304.04410), for that of hashing. The order of draws, the size,
and the dummies, by which all devices hit as many buckets, are ours.
"""

import math
from functools import lru_cache
from itertools import accumulate
from math import comb
from typing import NamedTuple

import numpy as np

from uldp.mechanisms.families.local_hashing.randomizer import SeededHashing, pack
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.kernels.hashing import MOST_BUCKETS, SEEDS, hash_symbols
from uldp.mechanisms.laws.channel import Channel, part_without
from uldp.mechanisms.protocol.device_form import DeviceForm, threshold
from uldp.mechanisms.protocol.mechanism import Guarantee, Randomness
from uldp.schemas.arrays import Counts, Floats, Mask, Packed, Symbols, Values

#: The number of held symbols in a report, or the kind of its bucket, is drawn by an integer below this.
DRAWS = 1 << 53
# perturb of hashing holds which buckets are hit, for so many buckets at once.
_AT_ONCE = 1 << 24
#: The shares of an item at which the variance counts, each alike: an item that nobody holds, and frequent ones.
SHARES = (0.0, 0.05, 0.2)
#: Those of a key, which has two symbols.
SHARES_OF_KEYS = (0.0, 0.05)
# Sizes are tried one by one up to so many, and beyond in steps of so large a part of them, and then those between.
_ONE_BY_ONE, _STEP = 2048, 1 / 64


class SetSelection(SubsetSelection):
    """Subset selection over D symbols, of which a device holds l different ones.

    A report is a set of w of the D symbols. With E = e^epsilon, each set with one or more of the l held symbols is E
    times as probable as each set with none of them. The device draws a set of w symbols, uniform and independent of
    what it holds. With probability 1/(1 + (E-1) A), where A is the part of all sets that have a held symbol, it reports
    this set (noise). Otherwise it reports it too if it has a held symbol. If not, it draws how many held symbols the
    report has, h, with the probabilities of a uniform set that has one or more, and puts h of the held symbols, chosen
    uniformly, in place of h uniform members. So a report without noise is uniform among the sets with a held symbol.

    Guarantee: one report is epsilon-LDP for any two sets of l *different* symbols, whatever they have in common. If two
    of the l symbols were one, a set would be hit less often, and the ratio would exceed E; ``perturb`` refuses such
    sets. The probabilities of h are rounded down to multiples of 2^-53, and what is left keeps the set as it is, which
    is independent of the held symbols. So the finite resolution keeps the guarantee.

    A payload is one bit per symbol, as of ``SubsetSelection``; exactly w bits are set.
    """

    def __init__(self, size: int, epsilon: float, held: int, chosen: int | None = None) -> None:
        if not 1 <= held < size:
            raise ValueError(f"a device holds 1 to {size - 1} of {size} symbols, got {held}")
        super().__init__(size, epsilon, best_chosen(size, held, epsilon) if chosen is None else chosen)
        self.held = held
        law = set_law(size, held, np.array([float(self.chosen)]), epsilon)
        if law.p[0] <= law.q[0]:
            raise ValueError(
                f"w {self.chosen:,}: of all sets of so many of the {size:,} symbols, so few are without any of the"
                f" {held:,} that a device holds, that a report says nothing with epsilon {epsilon:g}; take a smaller w"
            )
        self.noise_probability = 1 / (1 + math.expm1(epsilon) * float(law.hit[0]))
        self.channel = Channel(
            np.full(size, law.p[0]), np.full(size, law.q[0]), independent_bits=False, supported=self.chosen, held=held
        )
        self._numbers = _numbers_of_hits(size, held, self.chosen)

    def perturb(self, symbols: Values, randomness: Randomness) -> Packed:
        return super().perturb(self.held_symbols(symbols, self.held), randomness)

    def device_form(self) -> DeviceForm:
        return {
            "form": "set",
            "size": self.size,
            "held": self.held,
            "chosen": self.chosen,
            "noise": threshold(self.noise_probability),
            "hits": self._numbers.tolist(),
        }

    def _drawn(self, symbols: Values, randomness: Randomness) -> Mask:
        n, most = len(symbols), min(self.held, self.chosen)
        reports = np.arange(n)[:, np.newaxis]
        sets, members = self._uniform_sets(n, randomness)
        noisy = randomness.random(n) < self.noise_probability
        hits = 1 + (randomness.integers(0, DRAWS, n)[:, np.newaxis] >= self._numbers).sum(axis=1)
        leaving, coming = _first_shuffled(members, most, randomness), _first_shuffled(symbols, most, randomness)
        kept = noisy | sets[reports, symbols].any(axis=1) | (hits > most)
        # A member that is not held leaves for one that is, so no symbol both leaves and comes.
        moved = (np.arange(most) < hits[:, np.newaxis]) & ~kept[:, np.newaxis]
        rows = np.broadcast_to(reports, moved.shape)[moved]
        sets[rows, leaving[moved]] = False
        sets[rows, coming[moved]] = True
        return sets


def _numbers_of_hits(size: int, held: int, chosen: int) -> Counts:
    """Return the integers below 2^53 from which on a report without noise has two, three, ... held symbols.

    From the last of the min(l, w) on, the report is kept as it is. The integers with h held symbols are
    2^53 C(l, h) C(D-l, w-h) / (C(D, w) - C(D-l, w)), rounded down.
    """
    total = comb(size, chosen) - comb(size - held, chosen)
    hits = range(1, min(held, chosen) + 1)
    return np.array(
        [*accumulate(DRAWS * comb(held, h) * comb(size - held, chosen - h) // total for h in hits)], dtype=np.int64
    )


def _first_shuffled(rows: Values, first: int, randomness: Randomness) -> Symbols:
    """Return the first entries of each row after a uniform shuffle, shape (n, first)."""
    shuffled, reports = np.array(rows, dtype=np.int64), np.arange(len(rows))
    width = rows.shape[1]
    for place in range(first):
        other = place + randomness.integers(0, width - place, len(rows))
        coming = shuffled[reports, other]
        shuffled[reports, other] = shuffled[reports, place]
        shuffled[reports, place] = coming
    return shuffled[:, :first]


class SetHashing(SeededHashing):
    """Local hashing over D symbols, of which a device holds l different ones.

    The device draws a seed, uniform and independent of what it holds, and hashes its l symbols into t buckets with the
    function of this seed. If some of them collide, the lowest free buckets are hit too, so that l buckets are. With
    E = e^epsilon and O = lE + t - l, it reports the seed and

        each bucket that is hit     with probability E/O
        any other bucket, each      with probability 1/O

    A report supports the symbols that its function hashes into its bucket: a held one with p = E/O, and any other with
    q = 1/t, because its bucket is uniform and independent of all else. So a report supports two symbols with q^2 if the
    device holds neither, and else with p q.

    Guarantee: one report is epsilon-LDP for any two sets of l symbols. Whatever the seed, the probability of a bucket
    is E/O or 1/O. E/O is rounded down to a multiple of 2^-53, from a double, so the ratio may exceed E by a factor of
    about 1 + E 2^-52: 1 + 1e-7 at epsilon 20, the most that a spec takes.
    """

    def __init__(self, size: int, epsilon: float, held: int, buckets: int | None = None) -> None:
        if not 1 <= held < size:
            raise ValueError(f"a device holds 1 to {size - 1} of {size} symbols, got {held}")
        super().__init__(size, best_buckets(held, epsilon) if buckets is None else buckets)
        if self.buckets <= held:
            raise ValueError(f"hashing of {held} symbols has more buckets, got {self.buckets}")
        self.held = held
        self.guarantee = Guarantee.of(self.sensitive, epsilon)
        # With E^-1 in place of E nothing overflows.
        self.hit = math.floor(DRAWS / (held + (self.buckets - held) * math.exp(-epsilon)))
        self.channel = Channel(
            p=np.full(size, self.hit / DRAWS), q=np.full(size, 1 / self.buckets), independent_bits=True, held=held
        )

    def perturb(self, symbols: Values, randomness: Randomness) -> Packed:
        symbols = self.held_symbols(symbols, self.held)
        n, rows = len(symbols), max(_AT_ONCE // self.buckets, 1)
        seeds, kinds = randomness.integers(0, SEEDS, n), randomness.integers(0, DRAWS, n)
        places = randomness.integers(0, self.buckets - self.held, n)
        # Which of the l buckets that are hit; l for another one.
        chosen = (kinds[:, np.newaxis] >= self.hit * np.arange(1, self.held + 1)).sum(axis=1)
        buckets = np.empty(n, dtype=np.int64)
        for start in range(0, n, rows):
            part = slice(start, start + rows)
            hit = self._hit(hash_symbols(seeds[part, np.newaxis], symbols[part], self.buckets))
            # The hit buckets in ascending order, and behind them the others.
            order = np.argsort(~hit, axis=1, kind="stable")
            place = np.where(chosen[part] < self.held, chosen[part], self.held + places[part])
            buckets[part] = order[np.arange(len(order)), place]
        return pack(seeds, buckets)

    def _hit(self, hashed: Symbols) -> Mask:
        """Return which buckets are hit, shape (n, t), l in each row, by the hashes of the held ones, shape (n, l)."""
        hit = np.zeros((len(hashed), self.buckets), dtype=np.bool_)
        hit[np.arange(len(hashed))[:, np.newaxis], hashed] = True
        missing = self.held - hit.sum(axis=1)
        hit |= np.cumsum(~hit, axis=1) <= missing[:, np.newaxis]
        return hit

    @property
    def uniform_probability(self) -> float:
        """The probability of a uniform bucket, t/O; otherwise it is a uniform one of those that are hit."""
        return self.buckets * (DRAWS - self.held * self.hit) / ((self.buckets - self.held) * DRAWS)

    def device_form(self) -> DeviceForm:
        return {"form": "hits", "buckets": self.buckets, "held": self.held, "hit": self.hit}


@lru_cache(maxsize=256)
def best_buckets(held: int, epsilon: float) -> int:
    """Return the number of buckets with the least mean variance of a share, over those of ``SHARES``, for l held."""
    buckets = np.arange(held + 1.0, MOST_BUCKETS + 1)
    variance = variance_of_items(1 / (held + (buckets - held) * math.exp(-epsilon)), 1 / buckets)
    return int(buckets[variance.argmin()])


class SetLaw(NamedTuple):
    """The law of a report of w of D symbols, if the device holds l of them, with E = e^epsilon."""

    p: Floats  # the probability that a report has a symbol that the device holds
    q: Floats  # the probability that it has a symbol that the device does not hold
    hit: Floats  # the part of all sets of w symbols with one or more of those that the device holds


def set_law(size: int, held: int, chosen: Floats, epsilon: float) -> SetLaw:
    """Return the law of reports of each of some sizes w = ``chosen``, over D = ``size`` symbols of which l are held.

    A set with one of the l symbols has E times the probability of any other. Of all C(D, w) sets, the part
    miss = C(D-l, w)/C(D, w) has none of them, and of the C(D-1, w-1) sets with a given other symbol, the part
    C(D-1-l, w-1)/C(D-1, w-1). So with Z = E - (E-1) miss,

        p = (w/D) E/Z        q = (w/D) (E - (E-1) C(D-1-l, w-1)/C(D-1, w-1))/Z
    """
    share = chosen / size
    miss, other = part_without(size, held, chosen), part_without(size - 1, held, chosen - 1)
    # With E^-1 in place of E nothing overflows.
    rest = math.exp(-epsilon)
    z = 1 - (1 - rest) * miss
    return SetLaw(share / z, share * (1 - (1 - rest) * other) / z, 1 - miss)


@lru_cache(maxsize=256)
def best_chosen(size: int, held: int, epsilon: float, *, signed: bool = False) -> int:
    """Return the w from 1 to D-1 of least variance at ``SHARES``; of keys, ``signed``, at ``SHARES_OF_KEYS``."""
    variance = _variance_of_keys if signed else _variance
    sizes = np.arange(1.0, min(size, _ONE_BY_ONE + 1))
    if size - 1 > len(sizes):
        ends = np.geomspace(sizes[-1], size - 1, int(math.log(size / sizes[-1]) / _STEP) + 2)
        coarse = np.unique(np.concatenate([sizes, np.rint(ends)]))
        at = int(np.argmin(variance(size, held, coarse, epsilon)))
        low, high = coarse[max(at - 1, 0)], coarse[min(at + 1, len(coarse) - 1)]
        sizes = np.arange(low, high + 1)
    return int(sizes[np.argmin(variance(size, held, sizes, epsilon))])


def _variance(size: int, held: int, chosen: Floats, epsilon: float) -> Floats:
    law = set_law(size, held, chosen, epsilon)
    return variance_of_items(law.p, law.q)


def variance_of_items(p: Floats, q: Floats) -> Floats:
    """Return the variance of a report about items, summed over ``SHARES``, for each p and q of supports."""
    total = np.zeros_like(p)
    for share in SHARES:
        m = q + (p - q) * share
        total += m * (1 - m)
    return _over_gain(total, p - q)


def _variance_of_keys(size: int, held: int, chosen: Floats, epsilon: float) -> Floats:
    """Return the variance of the sum of two symbols that nobody holds both, each held by half of the share.

    A report has both with the probability b + (a-b) share. If a device holds one of them, all sets with both have one
    probability, so a = p (w-1)/(D-1). If it holds none, a set with both and no held symbol is E times less probable.
    """
    law, rest = set_law(size, held, chosen, epsilon), math.exp(-epsilon)
    a = law.p * (chosen - 1) / (size - 1)
    without = np.where(chosen > 1, part_without(size - 2, held, chosen - 2), 1.0)
    b = a * (1 - (1 - rest) * without)
    total = np.zeros_like(chosen)
    for share in SHARES_OF_KEYS:
        m = law.q + (law.p - law.q) * share / 2
        total += 2 * m * (1 - m) + 2 * (b + (a - b) * share - m**2)
    return _over_gain(total, law.p - law.q)


def _over_gain(total: Floats, gain: Floats) -> Floats:
    """Return a variance of supports as that of shares; infinite where supports say nothing."""
    variance: Floats = np.divide(total, gain**2, out=np.full_like(total, np.inf), where=gain > 0)
    return variance

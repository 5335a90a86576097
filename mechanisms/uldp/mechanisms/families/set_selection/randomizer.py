"""A mechanism that reports a set of symbols of a fixed size, of devices that hold several: subset selection for sets.

Sources: Wang et al., "PrivSet: Set-Valued Data Analyses with Locale Differential Privacy" (INFOCOM 2018), for the law;
with one held symbol it is subset selection (Ye & Barg, 2018). The order of draws, and the size, are ours.
"""

import math
from itertools import accumulate
from math import comb

import numpy as np

from uldp.mechanisms.families.set_selection.sizes import best_chosen, set_law
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.device_form import DeviceForm, threshold
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.schemas.arrays import Counts, Mask, Packed, Symbols, Values

# The number of held symbols in a report is drawn by an integer below this.
_DRAWS = 1 << 53


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
        if not epsilon > 0:
            raise ValueError(f"epsilon must be positive, got {epsilon}")
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
        hits = 1 + (randomness.integers(0, _DRAWS, n)[:, np.newaxis] >= self._numbers).sum(axis=1)
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
        [*accumulate(_DRAWS * comb(held, h) * comb(size - held, chosen - h) // total for h in hits)], dtype=np.int64
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

"""A mechanism that reports a set of symbols of a fixed size: subset selection.

Sources: Ye & Barg, "Optimal Schemes for Discrete Distribution Estimation under Locally Differential Privacy" (IEEE
Transactions on Information Theory 64, 2018); Wang et al., "Mutual Information Optimally Local Private Discrete
Distribution Estimation" (2016). Wang, Zhang, Feng & Yang, "A Comprehensive Survey on Local Differential Privacy toward
Data Statistics and Analysis" (Sensors 20, 2020), section 3.1.5, has p and q as here. In the probabilities of its
equation (48) the factor w must be k, so that they sum to 1.
"""

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from uldp.mechanisms.cells import Cells
from uldp.mechanisms.channel import Channel
from uldp.mechanisms.mechanism import Guarantee, PayloadForm, PureMechanism, Randomness, UniformNoise
from uldp.mechanisms.packed_bits import pack_rows, row_totals, tally_bits
from uldp.schemas.arrays import Mask, Packed, Payloads, Symbols, Values

# perturb holds a byte for each bit until it packs the bits; those for this many bits fit a core's cache.
_BITS_AT_ONCE = 1 << 20


def best_chosen(size: int, epsilon: float) -> int:
    """Return about the number of symbols in a set with the least variance: |Z|/(e^epsilon + 1), rounded."""
    return max(round(size / (math.exp(epsilon) + 1)), 1)


class SubsetSelection(PureMechanism, UniformNoise):
    """Subset selection, also called the w-subset mechanism: a report is a set of w of the k symbols of Z.

    With E = e^epsilon, w is ``best_chosen``, which is about the size with the least variance. The device draws a set of
    w symbols, uniform and independent of its true symbol z. With probability k/(wE+k-w) it reports this set.
    Otherwise it reports it too if z is in it, and if not, with z in place of a uniform member. So each set with z is E
    times as probable as each set without z. A report supports the symbols of its set, with

        p = wE/(wE+k-w)    for z,    q = (p (w-1) + (1-p) w)/(k-1)    for any other symbol

    With w = 1 this is randomized response.

    Guarantee: one report is epsilon-LDP. For any set, its likelihoods under two true symbols differ by at most a factor
    E. The drawn set is independent of z, and the device rounds the probability of reporting it up, so the finite
    resolution of the noise keeps the guarantee (``SystemRandomness``).

    A payload is one bit per symbol, most significant bit first, padded with zeros to whole bytes; exactly w bits are
    set. Do not send the members as a list in the order of their choice: Algorithm 2 of the survey inserts the true
    symbol first, so such a list reveals it.

    Attributes:
        chosen: w.
        noise_probability: k/(wE+k-w), the probability that the report is independent of the true symbol.
    """

    chosen: int
    noise_probability: float
    partitions = False

    def __init__(self, size: int, epsilon: float, chosen: int | None = None) -> None:
        """Build the mechanism over Z.

        Args:
            size: |Z|.
            epsilon: Budget of one report in nats.
            chosen: w, from 1 to |Z| - 1; ``best_chosen`` if it is None.

        Raises:
            ValueError: if size is less than 2, epsilon is not positive, or w is out of range.
        """
        if size < 2:
            raise ValueError(f"subset selection needs two symbols or more, got size {size}")
        if not epsilon > 0:
            raise ValueError(f"epsilon must be positive, got {epsilon}")
        self.size = self.statistic_size = size
        self.chosen = w = best_chosen(size, epsilon) if chosen is None else chosen
        if not 1 <= w < size:
            raise ValueError(f"a set has 1 to {size - 1} of {size} symbols, got {w}")
        self.chance_support = (w - 1) / (size - 1)
        self.sensitive = np.ones(size, dtype=np.bool_)
        self.form = PayloadForm(width=-(-size // 8))
        self.guarantee = Guarantee.of(self.sensitive, epsilon)
        self.noise_probability = size / (w * math.expm1(epsilon) + size)
        p = 1 - self.noise_probability * (size - w) / size
        q = (p * (w - 1) + self.noise_probability * (size - w) / size * w) / (size - 1)
        self.channel = Channel(np.full(size, p), np.full(size, q), independent_bits=False, supported=w)
        self._padding_bits = ~np.packbits(np.ones(size, dtype=np.bool_))[-1]

    def perturb(self, symbols: Values, randomness: Randomness) -> Packed:
        """Perturb true symbols of shape (n,) into packed bits of shape (n, ceil(|Z|/8)).

        The method draws the same numbers for each report, whatever its symbol.

        Raises:
            ValueError: if a symbol is outside of Z.
        """
        self.check_symbols(symbols)
        return pack_rows(len(symbols), self.size, lambda block: self._sets(symbols[block], randomness), _BITS_AT_ONCE)

    def _sets(self, symbols: Values, randomness: Randomness) -> Mask:
        """Draw the sets of the reports, shape (n, |Z|)."""
        reports = np.arange(len(symbols))
        sets, members = self._uniform_sets(len(symbols), randomness)
        noisy = randomness.random(len(symbols)) < self.noise_probability
        replaced = members[reports, randomness.integers(0, self.chosen, len(symbols))]
        sets[reports, replaced] = noisy | sets[reports, symbols]
        sets[reports, symbols] |= ~noisy
        return sets

    @property
    def uniform_probability(self) -> float:
        """The probability of a uniform set; otherwise a set is uniform among those with the true symbol."""
        return self.noise_probability

    @property
    def log_payloads(self) -> float:
        """The logarithm of the number of sets of w symbols."""
        w = self.chosen
        return math.lgamma(self.size + 1) - math.lgamma(w + 1) - math.lgamma(self.size - w + 1)

    def uniform(self, n: int, randomness: Randomness) -> Packed:
        """Draw n sets of w symbols, shape (n, ceil(|Z|/8)), uniformly from all of them."""
        return pack_rows(
            n, self.size, lambda block: self._uniform_sets(len(range(n)[block]), randomness)[0], _BITS_AT_ONCE
        )

    def _uniform_sets(self, n: int, randomness: Randomness) -> tuple[Mask, Symbols]:
        """Draw n uniform sets, and return their bits, shape (n, |Z|), and their members, shape (n, w).

        Each set is drawn by Floyd's algorithm (Bentley & Floyd, "Programming Pearls: A Sample of Brilliance", 1987):
        step j adds a uniform symbol of the first j+1, or symbol j if that is in the set. All sets are equally probable.
        """
        reports = np.arange(n)
        sets = np.zeros((n, self.size), dtype=np.bool_)
        members = np.empty((n, self.chosen), dtype=np.int64)
        for step, last in enumerate(range(self.size - self.chosen, self.size)):
            drawn = randomness.integers(0, last + 1, n)
            members[:, step] = np.where(sets[reports, drawn], last, drawn)
            sets[reports, members[:, step]] = True
        return sets, members

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        """Count the reports with each bit set."""
        return tally_bits(cast(Sequence[Packed], parts), groups, k, self.size)

    def possible(self, payloads: Payloads) -> Mask:
        """Return which payloads have zero padding and exactly w bits set."""
        sets = cast(Packed, payloads)
        possible: Mask = (sets[:, -1] & self._padding_bits == 0) & (row_totals(sets) == self.chosen)
        return possible

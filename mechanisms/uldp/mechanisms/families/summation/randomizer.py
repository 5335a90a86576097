"""Summation with histogram encoding, SHE: a report is a noisy histogram of one user, and the statistic its sum.

Source: Wang et al., "Locally Differentially Private Protocols for Frequency Estimation" (USENIX Security 2017),
section 4.2, with Laplace noise. The two-sided geometric distribution in its place is of Ghosh, Roughgarden &
Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms" (STOC 2009).
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, cast

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.families.bit_flip.randomizer import FlippedBits
from uldp.mechanisms.protocol.cells import Cells
from uldp.mechanisms.protocol.device_form import DeviceForm, threshold
from uldp.mechanisms.protocol.mechanism import (
    IMPOSSIBLE_TAIL,
    IMPROBABLE_TAIL,
    Guarantee,
    PayloadForm,
    Privacy,
    Randomness,
)
from uldp.mechanisms.protocol.noise import BitNoise
from uldp.schemas.arrays import Counts, Floats, Mask, Packed, Payloads, Symbols, Values


def noise_variance(epsilon: float) -> float:
    """Return the variance of an entry of a payload, 2a/(1-a)^2 with a = e^(-epsilon/2)."""
    a = math.exp(-epsilon / 2)
    return 2 * a / (1 - a) ** 2


def tail_of_sum(distance: float, n: int, variance: float) -> float:
    """Return Chernoff's bound of the probability that n two-sided geometric noises sum to a distance or more.

    With v = 2a/(1-a)^2, the generating function of a noise is 1/(1 - v (cosh t - 1)). The bound is the least at the t
    where the mean of the tilted noise, v sinh t/(1 - v (cosh t - 1)), is the distance over n.
    """
    mean = distance / n
    # With c = cosh t and b = mean (1/v + 1), the equation is sinh t = b - mean c. Its square has this root:
    b = mean * (1 / variance + 1)
    c = max((1 + b * b) / (math.sqrt(1 + b * b - mean * mean) + mean * b), 1.0)
    t = math.acosh(c)
    return math.exp(min(n * (-t * mean - math.log1p(-variance * (c - 1))), 0.0))


@dataclass(frozen=True)
class Reach:
    """How far the noise of one report goes."""

    entry: int  # the most by which an entry is above or below the 0 or 1 of the truth
    total: int  # the most by which the sum of the entries is above or below 1

    @classmethod
    def of(cls, entries: int, epsilon: float, tail: float) -> Self:
        """Return the reach of all but a share ``tail`` of honest reports of so many entries, at least.

        The noise of one entry is above m with the probability a^(m+1)/(1+a), and below -m with the same. So some of k
        is beyond with at most 2k times this. This has half of the tail, and the sum the other.
        """
        a = math.exp(-epsilon / 2)
        entry = max(math.ceil(math.log(4 * entries / tail / (1 + a)) / (epsilon / 2)) - 1, 0)
        variance = noise_variance(epsilon)
        # No sum of such entries is farther than that of all at their end.
        farthest = range(entries * entry)
        total = bisect_left(farthest, True, key=lambda sum_: tail_of_sum(sum_ + 1, entries, variance) <= tail / 4)
        return cls(entry, total)


#: The least epsilon. Below it, entries of a report could exceed two bytes.
MIN_EPSILON = 0.0025
#: The largest entry that two bytes can hold, and a device sends.
LARGEST_ENTRY = (1 << 15) - 1

# perturb holds some floats for each entry; those of so many entries fit a core's cache.
_ENTRIES_AT_ONCE = 1 << 15

Shorts = npt.NDArray[np.int16]


class Summation(BitNoise):
    """SHE with integers: a 1 for the true symbol and a 0 for each other one, all plus two-sided geometric noise.

    With a = e^(-epsilon/2), the noise is x with probability (1-a)/(1+a) a^|x|. Its variance is .98 of that of Laplace
    noise with the scale 2/epsilon at epsilon 1, and .72 at epsilon 4.

    The device draws an entry in two parts that are independent of each other. It flips the 0 or 1 with the probability
    of noise a/(1+a), and draws a magnitude M, which is j with probability (1-a) a^j. It sends 1 + M for a 1, and -M for
    a 0. This is the law above, and draws integers alone: the bits of M are independent, and bit i is set with the
    probability a^(2^i)/(1 + a^(2^i)).

    Guarantee: one report is epsilon-LDP. The magnitudes are independent of the symbol, whatever their law, so a report
    says of it what the flipped bits say, and their likelihoods under two symbols differ by at most the factor (1/a)^2 =
    e^epsilon. So reports are symmetric unary encoding (``sue``) and then noise without use: SHE is for comparisons.

    With a lasting budget, the device keeps flipped bits, and each report flips them again and draws new magnitudes (see
    ``Memoized``). All reports of one symbol follow from the kept bits and from draws that are independent of it, so
    together they have the budget of these bits. An entry of the mean of all reports of a device is (B - f)/(1 - 2f) for
    a kept bit B that is flipped with probability f = a/(1+a), where a = e^(-lasting/2). Its variance is a/(1-a)^2.

    A payload has two bytes for each symbol: an integer with sign, little-endian, cut to -32767 and 32767. One that is
    farther from the truth than all but a share ``IMPOSSIBLE_TAIL`` of honest reports is not possible, for a forged
    entry counts as so many users as it says.
    """

    partitions = False

    def __init__(self, size: int, epsilon: float) -> None:
        if size < 2:
            raise ValueError(f"a domain has at least two symbols, got size {size}")
        if not epsilon >= MIN_EPSILON:
            raise ValueError(f"epsilon must be {MIN_EPSILON} or more, got {epsilon}")
        self.size = self.bits = self.statistic_size = size
        self.form = PayloadForm(width=2 * size)
        self.guarantee = Guarantee(Privacy.LDP, epsilon)
        self._possible, self._probable = (Reach.of(size, epsilon, tail) for tail in (IMPOSSIBLE_TAIL, IMPROBABLE_TAIL))
        self.largest_step = min(1 + self._possible.entry, LARGEST_ENTRY)
        self._flipped = FlippedBits(size, epsilon)
        self.flip_probability = 1 / (1 + math.exp(epsilon / 2))
        bits = [1 / (1 + math.exp(min(epsilon / 2 * 2**bit, 700.0))) for bit in range(15)]
        self.bit_probabilities = tuple(probability for probability in bits if probability >= 2**-53)

    @property
    def bit_law(self) -> tuple[Floats, Floats]:
        """The probability of a flip, twice."""
        return self.alone.bit_law

    @property
    def alone(self) -> FlippedBits:
        """The mechanism of the flipped bits, of which a device keeps those of its permanent response."""
        return self._flipped

    def perturb(self, symbols: Values, randomness: Randomness) -> Packed:
        self.check_symbols(symbols)
        return self.reported(self._flipped.perturb(symbols, randomness), randomness)

    def reported(self, bits: Packed, randomness: Randomness) -> Packed:
        n = len(bits)
        payloads = np.empty((n, self.size), dtype="<i2")
        rows = max(1, _ENTRIES_AT_ONCE // self.size)
        for start in range(0, n, rows):
            block = slice(start, start + rows)
            ones = np.unpackbits(bits[block], axis=1, count=self.size)
            magnitudes = np.zeros(ones.shape, dtype=np.int64)
            for place, probability in enumerate(self.bit_probabilities):
                magnitudes |= (randomness.random(ones.shape) < probability).astype(np.int64) << place
            payloads[block] = np.minimum(np.where(ones, 1 + magnitudes, -magnitudes), LARGEST_ENTRY)
        return payloads.view(np.uint8)

    def differences(self, first: Payloads, other: Payloads) -> Counts:
        """See the base class: in how many signs of entries."""
        signs = (_entries(first) > 0) != (_entries(other) > 0)
        return np.asarray(signs.sum(axis=1, dtype=np.int64))

    def device_form(self) -> DeviceForm:
        return {
            "form": "integers",
            "size": self.size,
            "flip": threshold(self.flip_probability),
            "magnitudes": [threshold(each) for each in self.bit_probabilities],
        }

    def possible(self, payloads: Payloads) -> Mask:
        return self.inspect(payloads)[0]

    def inspect(self, payloads: Payloads) -> tuple[Mask, Mask]:
        entries = _entries(payloads)
        ends = entries.min(axis=1), entries.max(axis=1), entries.sum(axis=1, dtype=np.int64)
        return _within(self._possible, *ends), ~_within(self._probable, *ends)

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        order = np.argsort(groups, kind="stable")
        entries, groups = _entries(np.concatenate(cast(Sequence[Packed], parts)))[order], groups[order]
        sums: Counts = np.zeros((k, self.size), dtype=np.int64)
        runs = np.flatnonzero(np.diff(groups, prepend=-1))
        for group, run in zip(groups[runs], np.split(entries, runs[1:]), strict=False):
            sums[group] = run.sum(axis=0, dtype=np.int64)
        return list(sums)


def _within(reach: Reach, lowest: Shorts, highest: Shorts, totals: Counts) -> Mask:
    """Return which payloads are within a reach, given the ends and the sum of the entries of each."""
    entry = min(reach.entry, LARGEST_ENTRY - 1)
    return (lowest >= -entry) & (highest <= 1 + entry) & (np.abs(totals - 1) <= reach.total)


def _entries(payloads: Payloads) -> Shorts:
    return np.ascontiguousarray(cast(Packed, payloads)).view("<i2")

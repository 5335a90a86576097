"""Summation with histogram encoding, SHE: a report is a noisy histogram of one user, and the statistic its sum.

Source: Wang et al., "Locally Differentially Private Protocols for Frequency Estimation" (USENIX Security 2017),
section 4.2, with Laplace noise. The two-sided geometric distribution in its place is of Ghosh, Roughgarden &
Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms" (STOC 2009).
"""

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.cells import Cells
from uldp.mechanisms.mechanism import Guarantee, Mechanism, PayloadForm, Privacy, Randomness
from uldp.schemas.arrays import Counts, Mask, Packed, Payloads, Symbols, Values
from uldp.schemas.specs.value_mechanisms import MIN_SUMMATION_EPSILON

#: The largest entry of a payload.
LARGEST_ENTRY = (1 << 15) - 1

# perturb holds some floats for each entry; those of so many entries fit a core's cache.
_ENTRIES_AT_ONCE = 1 << 15


def noise_variance(epsilon: float) -> float:
    """Return the variance of an entry of a payload, 2a/(1-a)^2 with a = e^(-epsilon/2)."""
    a = math.exp(-epsilon / 2)
    return 2 * a / (1 - a) ** 2


class Summation(Mechanism):
    """SHE with integers: a 1 for the true symbol and a 0 for each other one, all plus two-sided geometric noise.

    With a = e^(-epsilon/2), the noise is x with probability (1-a)/(1+a) a^|x|. It has the variance 2a/(1-a)^2, which is
    less than that of Laplace noise with the scale 2/epsilon: .98 of it at epsilon 1, .72 at epsilon 4.

    The device draws an entry in two parts that are independent of each other. It flips the 0 or 1 with the probability
    of noise a/(1+a), and draws a magnitude M, which is j with probability (1-a) a^j. It sends 1 + M for a 1, and -M for
    a 0. This is the law above, and draws integers alone: the bits of M are independent, and bit i is set with the
    probability a^(2^i)/(1 + a^(2^i)).

    Guarantee: one report is epsilon-LDP. The magnitudes are independent of the symbol, whatever their law, so a report
    says of it what the flipped bits say, and their likelihoods under two symbols differ by at most the factor (1/a)^2 =
    e^epsilon. So reports are symmetric unary encoding (``sue``) and then noise without use: SHE is for comparisons.

    A payload has two bytes for each symbol: an integer with sign, little-endian, cut to -32767 and 32767.

    Attributes:
        flip_probability: a/(1+a).
        bit_probabilities: The probability that each bit of M is set, the lowest bit first. Those below 2^-53 are left
            out, and those above 15 bits.
    """

    partitions = False
    largest_step = LARGEST_ENTRY

    def __init__(self, size: int, epsilon: float) -> None:
        """Build the mechanism over Z.

        Args:
            size: |Z|.
            epsilon: Budget of one report in nats.

        Raises:
            ValueError: if size is not positive, or epsilon is below ``MIN_SUMMATION_EPSILON``.
        """
        if size < 1:
            raise ValueError(f"a domain has at least one symbol, got size {size}")
        if not epsilon >= MIN_SUMMATION_EPSILON:
            raise ValueError(f"epsilon must be {MIN_SUMMATION_EPSILON} or more, got {epsilon}")
        self.size = self.statistic_size = size
        self.form = PayloadForm(width=2 * size)
        self.guarantee = Guarantee(Privacy.LDP, epsilon)
        self.flip_probability = 1 / (1 + math.exp(epsilon / 2))
        bits = [1 / (1 + math.exp(min(epsilon / 2 * 2**bit, 700.0))) for bit in range(15)]
        self.bit_probabilities = tuple(probability for probability in bits if probability >= 2**-53)

    def perturb(self, symbols: Values, randomness: Randomness) -> Packed:
        """Perturb true symbols of shape (n,) into payloads of shape (n, 2 |Z|). The draws are the same for all symbols.

        Raises:
            ValueError: if a symbol is outside of Z.
        """
        self.check_symbols(symbols)
        payloads = np.empty((len(symbols), self.size), dtype="<i2")
        rows = max(1, _ENTRIES_AT_ONCE // self.size)
        for start in range(0, len(symbols), rows):
            payloads[start : start + rows] = self._entries(symbols[start : start + rows], randomness)
        return payloads.view(np.uint8)

    def _entries(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.int64]:
        shape = (len(symbols), self.size)
        ones = (np.arange(self.size) == symbols[:, np.newaxis]) ^ (randomness.random(shape) < self.flip_probability)
        magnitudes = np.zeros(shape, dtype=np.int64)
        for bit, probability in enumerate(self.bit_probabilities):
            magnitudes |= (randomness.random(shape) < probability).astype(np.int64) << bit
        return np.minimum(np.where(ones, 1 + magnitudes, -magnitudes), LARGEST_ENTRY)

    def possible(self, payloads: Payloads) -> Mask:
        """Return which payloads have no entry of -32768."""
        return np.asarray((_entries(payloads) >= -LARGEST_ENTRY).all(axis=1))

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        """Sum the entries of each symbol, for each of k groups of payloads."""
        order = np.argsort(groups, kind="stable")
        entries, groups = _entries(np.concatenate(cast(Sequence[Packed], parts)))[order], groups[order]
        sums: Counts = np.zeros((k, self.size), dtype=np.int64)
        runs = np.flatnonzero(np.diff(groups, prepend=-1))
        for group, run in zip(groups[runs], np.split(entries, runs[1:]), strict=False):
            sums[group] = run.sum(axis=0, dtype=np.int64)
        return list(sums)


def _entries(payloads: Payloads) -> npt.NDArray[np.int16]:
    return np.ascontiguousarray(cast(Packed, payloads)).view("<i2")

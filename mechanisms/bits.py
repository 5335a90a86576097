"""Mechanisms whose report is one bit per symbol: unary encoding in all its forms, and the count of packed bits.

Sources: Murakami & Kawamoto, "Utility-Optimized Local Differential Privacy Mechanisms for Distribution Estimation"
(USENIX Security 2019), section 2.4 for the generalized RAPPOR, Definition 5 for uRAP; Wang et al., "Locally
Differentially Private Protocols for Frequency Estimation" (USENIX Security 2017), section 4 for SUE and OUE.
"""

import math
from typing import cast

import numpy as np
import numpy.typing as npt

from mechanisms.channel import Channel
from mechanisms.mechanism import Mask, Mechanism, Payloads, Randomness, Values
from schemas.records import Counts, Floats

#: theta of OUE, which minimizes the variance of the estimate of a rare symbol (Wang et al., section 4.3).
OUE_THETA = 0.5

# perturb holds up to a float and a byte for each bit until it is packed; this many at a time stay in a core's cache.
_BITS_AT_ONCE = 1 << 17


def sue_theta(epsilon: float) -> float:
    """Theta of SUE (basic one-time RAPPOR) and of uRAP by default: sqrt(E)/(sqrt(E)+1), E = e^epsilon."""
    return 1 / (1 + math.exp(-epsilon / 2))


class UnaryEncoding(Mechanism):
    """The utility-optimized RAPPOR, uRAP (Definition 5). The generalized RAPPOR, SUE and OUE are cases of it.

    It reports a bit y_j for each symbol j. With true symbol z and E = e^epsilon, each is drawn on its own:

                Pr(y_j = 1 | z = j)         Pr(y_j = 1 | z != j)
    j in Z_S    theta                       d1 = theta / ((1-theta)E + theta)
    j in Z_N    1 - d2 = theta (1 - 1/E)    0

    If all symbols are sensitive, this is the generalized RAPPOR: SUE with ``sue_theta``, OUE with ``OUE_THETA``. With
    some non-sensitive, ``sue_theta`` gives uRAP as the paper evaluates it, and ``OUE_THETA`` gives uOUE.

    Guarantee: one report is (Z_S, Y_P, epsilon)-ULDP, where Y_P are the reports with no bit of Z_N set (Proposition
    5): whatever the report in Y_P, no two true symbols differ in its likelihood by more than a factor E. A report with
    a bit of Z_N set reveals its true symbol, which is in Z_N too. If all symbols are sensitive, this is epsilon-LDP.

    Attributes:
        theta: Probability that a sensitive true symbol's own bit is set.
        cleared_probability: Shape (|Z|,): probability that a true symbol's own bit is not set, 1 - theta on Z_S and d2
            on Z_N.
    """

    theta: float
    cleared_probability: Floats

    def __init__(self, sensitive: Mask, epsilon: float, theta: float) -> None:
        """Build the mechanism over Z.

        Args:
            sensitive: Shape (|Z|,): the symbols of Z_S.
            epsilon: Budget of one report in nats.
            theta: As in the class; between 0 and 1.

        Raises:
            ValueError: if epsilon is not positive, theta is not inside (0, 1), or nothing is sensitive.
        """
        if not np.any(sensitive):
            raise ValueError("no symbol is sensitive, so epsilon would protect nothing")
        if not 0 < theta < 1:
            raise ValueError(f"theta must be inside (0, 1), got {theta}")
        self.epsilon = epsilon
        self.theta = theta
        self.sensitive = np.array(sensitive, dtype=np.bool_)
        self._sensitive_symbols = np.flatnonzero(self.sensitive)
        d1 = theta / ((1 - theta) * math.exp(epsilon) + theta)
        d2 = (1 - theta) + theta * math.exp(-epsilon)
        # Kept beside p = 1 - it: where p is close to 1, its float has lost the digits that the guarantee needs.
        self.cleared_probability = np.where(self.sensitive, 1 - theta, d2)
        self.channel = Channel(
            p=1 - self.cleared_probability,
            q=np.where(self.sensitive, d1, 0.0),
            independent_bits=True,
        )
        self._non_sensitive_bits = np.packbits(~self.sensitive)
        self._padding_bits = ~np.packbits(np.ones(self.size, dtype=np.bool_))[-1]

    @property
    def payload_shape(self) -> tuple[int, ...]:
        """One bit per symbol, most significant first, padded with zeros to whole bytes."""
        return (len(self._non_sensitive_bits),)

    def perturb(self, values: Values, randomness: Randomness) -> npt.NDArray[np.uint8]:
        """Obfuscate true symbols of shape (n,) into packed bits of shape (n, ceil(|Z|/8)).

        Raises:
            ValueError: if a value is outside of Z.
        """
        self.check_values(values)
        payloads = np.empty((len(values), *self.payload_shape), dtype=np.uint8)
        rows = max(1, _BITS_AT_ONCE // self.size)
        for start in range(0, len(values), rows):
            payloads[start : start + rows] = np.packbits(self._bits(values[start : start + rows], randomness), axis=1)
        return payloads

    def _bits(self, values: Values, randomness: Randomness) -> Mask:
        """Draw the bits of the reports, shape (n, |Z|)."""
        n = len(values)
        bits = np.zeros((n, self.size), dtype=np.bool_)
        # q is 0 on Z_N, so only the sensitive columns hold noise. An own bit then replaces whatever was drawn for it.
        noise = randomness.random((n, len(self._sensitive_symbols)))
        bits[:, self._sensitive_symbols] = noise < self.channel.q[self._sensitive_symbols]
        bits[np.arange(n), values] = randomness.random(n) >= self.cleared_probability[values]
        return bits

    def support(self, payloads: Payloads) -> Counts:
        """Count the reports with each bit set: a report supports every symbol whose bit is 1."""
        return count_bits(cast(npt.NDArray[np.uint8], payloads), self.size)

    def possible(self, payloads: Payloads) -> Mask:
        """Say which payloads have zero padding and, of Z_N, no more than one bit set."""
        non_sensitive = np.bitwise_count(payloads & self._non_sensitive_bits).sum(axis=1)
        possible: Mask = (non_sensitive <= 1) & (payloads[:, -1] & self._padding_bits == 0)
        return possible


def count_bits(packed: npt.NDArray[np.uint8], size: int) -> Counts:
    """Sum packed bits by column.

    Args:
        packed: Shape (n, ceil(size/8)), uint8, most significant bit first.
        size: Columns to count; bits behind them are padding.

    Returns:
        Shape (size,): how many rows have each bit set.
    """
    counts = np.zeros(size, dtype=np.int64)
    # A uint8 column sum holds 255 rows, and adding bytes is much faster than adding wider integers.
    for start in range(0, len(packed), 255):
        counts += np.unpackbits(packed[start : start + 255], axis=1, count=size).sum(axis=0, dtype=np.uint8)
    return counts

"""Mechanisms whose report is one symbol: randomized response in all its forms.

Sources: Murakami & Kawamoto, "Utility-Optimized Local Differential Privacy Mechanisms for Distribution Estimation"
(USENIX Security 2019), section 2.4 for RR, Definition 4 for uRR; Warner (1965); Mangat (1994).
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.channel import Channel
from uldp.mechanisms.mechanism import Mechanism, Randomness
from uldp.mechanisms.support import AnyCounts, count_symbols
from uldp.schemas.arrays import Counts, Mask, Payloads, Symbols, Values


class RandomizedResponse(Mechanism):
    """The utility-optimized randomized response, uRR (Definition 4). RR, Warner, Mangat and identity are cases of it.

    It reports y for the true symbol z, with E = e^epsilon and v = |Z_S|, with probability

                y = z           y in Z_S, y != z    y in Z_N, y != z
    z in Z_S    E/(v+E-1)       1/(v+E-1)           0
    z in Z_N    (E-1)/(v+E-1)   1/(v+E-1)           0

    Both rows are one rule: with probability v/(v+E-1) report a uniform symbol of Z_S, otherwise the truth. RR is
    v = |Z|, Warner's v = |Z| = 2, and Mangat's |Z| = 2, v = 1.

    Guarantee: one report is (Z_S, Z_S, epsilon)-ULDP (Proposition 4): whatever the report in Z_S, no two true symbols
    differ in its likelihood by more than a factor E. A report in Z_N reveals its true symbol, which is in Z_N too. If
    all symbols are sensitive, this is epsilon-LDP.

    Without epsilon every report is the truth: NO PRIVACY, a baseline to measure the others against.

    Attributes:
        noise_probability: v/(v+E-1), the probability with which ``perturb`` replaces the truth; 0 without epsilon.
    """

    noise_probability: float

    def __init__(self, sensitive: Mask, epsilon: float | None) -> None:
        """Build the mechanism over Z.

        Args:
            sensitive: Shape (|Z|,): the symbols of Z_S. Without epsilon it says no more than |Z|.
            epsilon: Budget of one report in nats, or None for no privacy.

        Raises:
            ValueError: if epsilon is not positive, or is given and nothing is sensitive.
        """
        if epsilon is not None and not np.any(sensitive):
            raise ValueError("no symbol is sensitive, so epsilon would protect nothing")
        self.epsilon = epsilon
        self.sensitive = np.array(sensitive, dtype=np.bool_) & (epsilon is not None)
        self._noise_symbols = np.flatnonzero(self.sensitive).astype(np.uint32)
        v = len(self._noise_symbols)
        c2 = 1 / (v + (math.inf if epsilon is None else math.expm1(epsilon)))
        self.noise_probability = v * c2
        self.channel = Channel(
            p=np.where(self.sensitive, 1 - (v - 1) * c2, 1 - v * c2),
            q=np.where(self.sensitive, c2, 0.0),
            independent_bits=False,
        )

    @property
    def payload_shape(self) -> tuple[int, ...]:
        """One symbol per report."""
        return ()

    def perturb(self, values: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
        """Obfuscate true symbols of shape (n,) into symbols of shape (n,).

        Raises:
            ValueError: if a value is outside of Z.
        """
        self.check_values(values)
        symbols = values.astype(np.uint32)
        if self.noise_probability:
            noisy = np.flatnonzero(randomness.random(len(values)) < self.noise_probability)
            symbols[noisy] = self._noise_symbols[randomness.integers(0, len(self._noise_symbols), len(noisy))]
        return symbols

    def support(self, payloads: Payloads) -> Counts:
        """Count the reports of each symbol: a symbol supports itself alone."""
        return np.bincount(payloads, minlength=self.size)

    def support_by_group(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[AnyCounts]:
        """Do as ``support`` for each of k groups of payloads, all at once."""
        return count_symbols(np.concatenate(parts), groups, k, self.size)

    def possible(self, payloads: Payloads) -> Mask:
        """Say which payloads are symbols of Z."""
        return payloads < self.size

"""Mechanisms that report one symbol: all forms of randomized response.

Sources: Murakami & Kawamoto, "Utility-Optimized Local Differential Privacy Mechanisms for Distribution Estimation"
(USENIX Security 2019), section 2.4 for RR, Definition 4 for uRR; Warner (1965); Mangat (1994).
"""

import math

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.device_form import DeviceForm, sensitive_symbols, threshold
from uldp.mechanisms.protocol.mechanism import Guarantee, PureMechanism, Randomness
from uldp.mechanisms.protocol.noise import UniformNoise
from uldp.mechanisms.randomizers.reports import CountedReports
from uldp.schemas.arrays import Floats, Mask, Values


class RandomizedResponse(PureMechanism, CountedReports, UniformNoise):
    """The utility-optimized randomized response, uRR (Definition 4), with the cases RR, Warner, Mangat and identity.

    With E = e^epsilon and v = |Z_S|, the mechanism reports y for the true symbol z with probability

                y = z           y in Z_S, y != z    y in Z_N, y != z
    z in Z_S    E/(v+E-1)       1/(v+E-1)           0
    z in Z_N    (E-1)/(v+E-1)   1/(v+E-1)           0

    Both rows follow one rule: with probability v/(v+E-1) report a uniform symbol of Z_S, otherwise the true symbol. RR
    has v = |Z|, Warner's mechanism has v = |Z| = 2, and Mangat's has |Z| = 2 and v = 1.

    Guarantee: one report is (Z_S, Z_S, epsilon)-ULDP (Proposition 4). For every report in Z_S, its likelihoods under
    any two true symbols differ by at most a factor E. A report in Z_N reveals its true symbol, which is in Z_N too. If
    all symbols are sensitive, this is epsilon-LDP.

    Without epsilon, every report is the true symbol: NO PRIVACY, only a baseline for comparisons.
    """

    reports_symbols = True

    def __init__(self, sensitive: Mask, epsilon: float | None) -> None:
        self.sensitive = np.array(sensitive, dtype=np.bool_) & (epsilon is not None)
        self.size = len(self.sensitive)
        self._of_payloads(self.size)
        self.guarantee = Guarantee.of(self.sensitive, epsilon)
        self._noise_symbols = np.flatnonzero(self.sensitive).astype(np.uint32)
        v = len(self._noise_symbols)
        c2 = 1 / (v + (math.inf if epsilon is None else math.expm1(epsilon)))
        self.noise_probability = v * c2
        self.channel = Channel(
            p=np.where(self.sensitive, 1 - (v - 1) * c2, 1 - v * c2),
            q=np.where(self.sensitive, c2, 0.0),
            independent_bits=False,
        )

    def perturb(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
        self.check_symbols(symbols)
        if not self.noise_probability:
            return symbols.astype(np.uint32)
        noisy = randomness.random(len(symbols)) < self.noise_probability
        return np.where(noisy, self.uniform(len(symbols), randomness), symbols).astype(np.uint32)

    def uniform(self, n: int, randomness: Randomness) -> npt.NDArray[np.uint32]:
        drawn: npt.NDArray[np.uint32] = self._noise_symbols[randomness.integers(0, len(self._noise_symbols), n)]
        return drawn

    def law(self, r: Floats) -> Floats:
        return self.channel.support_probability(r)

    def device_form(self) -> DeviceForm:
        if not self.noise_probability:
            return {"form": "identity"}
        return {
            "form": "response",
            "size": self.size,
            "sensitive": sensitive_symbols(self.sensitive),
            "noise": threshold(self.noise_probability),
        }

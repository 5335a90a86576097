"""Mechanisms that report one bit per symbol: all forms of unary encoding.

Sources: Murakami & Kawamoto, "Utility-Optimized Local Differential Privacy Mechanisms for Distribution Estimation"
(USENIX Security 2019), section 2.4 for the generalized RAPPOR, Definition 5 for uRAP; Wang et al., "Locally
Differentially Private Protocols for Frequency Estimation" (USENIX Security 2017), section 4 for SUE, OUE and THE.
"""

import math
from functools import cached_property
from typing import cast

import numpy as np

from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.device_form import DeviceForm, sensitive_symbols, thresholds
from uldp.mechanisms.protocol.mechanism import Guarantee, PureMechanism, Randomness
from uldp.mechanisms.protocol.noise import BitNoise
from uldp.mechanisms.randomizers.packed_bits import row_totals
from uldp.mechanisms.randomizers.reports import BitReports, BitTotals
from uldp.schemas.arrays import Counts, Floats, Mask, Packed, Payloads, Values

#: theta of OUE, which minimizes the variance of the estimate of a rare symbol (Wang et al., section 4.3).
OUE_THETA = 0.5


def sue_theta(epsilon: float) -> float:
    """Return the theta of SUE (basic one-time RAPPOR), the default for uRAP: sqrt(E)/(sqrt(E)+1), E = e^epsilon."""
    return 1 / (1 + math.exp(-epsilon / 2))


class UnaryEncoding(PureMechanism, BitReports, BitNoise):
    """The utility-optimized RAPPOR, uRAP (Definition 5), with the cases generalized RAPPOR, SUE and OUE.

    The mechanism reports a bit y_j for each symbol j. With true symbol z and E = e^epsilon, it draws each bit
    independently:

                Pr(y_j = 1 | z = j)         Pr(y_j = 1 | z != j)
    j in Z_S    theta                       d1 = theta / ((1-theta)E + theta)
    j in Z_N    1 - d2 = theta (1 - 1/E)    0

    If all symbols are sensitive, this is the generalized RAPPOR: SUE with ``sue_theta``, OUE with ``OUE_THETA``. If
    some symbols are not sensitive, ``sue_theta`` gives uRAP as the paper evaluates it, and ``OUE_THETA`` gives uOUE.

    Guarantee: one report is (Z_S, Y_P, epsilon)-ULDP, where Y_P are the reports with no bit of Z_N set (Proposition
    5). For every report in Y_P, its likelihoods under any two true symbols differ by at most a factor E. A report with
    a bit of Z_N set reveals its true symbol, which is in Z_N too. If all symbols are sensitive, this is epsilon-LDP.
    """

    theta: float

    def __init__(self, sensitive: Mask, epsilon: float, theta: float) -> None:
        if not 0 < theta < 1:
            raise ValueError(f"theta must be inside (0, 1), got {theta}")
        self.theta = theta
        sensitive = np.array(sensitive, dtype=np.bool_)
        guarantee = Guarantee.of(sensitive, epsilon)
        d1 = theta / ((1 - theta) * math.exp(epsilon) + theta)
        d2 = (1 - theta) + theta * math.exp(-epsilon)
        cleared, q = np.where(sensitive, 1 - theta, d2), np.where(sensitive, d1, 0)
        if (1 - cleared <= q).any():
            raise ValueError(
                f"theta {theta} is so near an end that with epsilon {epsilon:g} a true symbol's bit is not set more"
                " often than others; take a theta nearer to 0.5"
            )
        self._set(guarantee, sensitive, cleared, q)

    def _set(self, guarantee: Guarantee, sensitive: Mask, cleared: Floats, q: Floats) -> None:
        """Set all attributes but theta, from the probabilities of the bits."""
        self.guarantee, self.sensitive = guarantee, sensitive
        self.size = self.bits = len(sensitive)
        self._of_bits(self.size)
        self._sensitive_symbols = np.flatnonzero(sensitive)
        # Keep this beside p = 1 - cleared_probability, because a float p close to 1 lacks the digits that the guarantee
        # needs.
        self.cleared_probability = cleared
        self.channel = Channel(p=1 - cleared, q=q, independent_bits=True)

    @property
    def bit_law(self) -> tuple[Floats, Floats]:
        """The probability that the device clears the bit of a true symbol, and that it sets another, shape (|Z|,)."""
        return self.cleared_probability, self.channel.q

    def _drawn(self, symbols: Values, randomness: Randomness) -> Mask:
        n = len(symbols)
        bits = np.zeros((n, self.size), dtype=np.bool_)
        # q is 0 on Z_N, so only the sensitive columns need noise. The true symbol's own bit then replaces its noise.
        noise = randomness.random((n, len(self._sensitive_symbols)))
        bits[:, self._sensitive_symbols] = noise < self.channel.q[self._sensitive_symbols]
        bits[np.arange(n), symbols] = randomness.random(n) >= self.cleared_probability[symbols]
        return bits

    def device_form(self) -> DeviceForm:
        return {
            "form": "bits",
            "size": self.size,
            "sensitive": sensitive_symbols(self.sensitive),
            "set": thresholds(self.channel.q),
            "clear": thresholds(self.cleared_probability),
        }

    def possible(self, payloads: Payloads) -> Mask:
        return self.inspect(payloads)[0]

    def inspect(self, payloads: Payloads) -> tuple[Mask, Mask]:
        well_formed, totals = self.form_and_totals(payloads)
        possible, improbable = self.bit_totals.judge(totals)
        return well_formed & possible, improbable

    @cached_property
    def bit_totals(self) -> BitTotals:
        """The numbers of bits that reports set."""
        return BitTotals.of_symbols(*self.bit_law)

    def form_and_totals(self, payloads: Payloads) -> tuple[Mask, Counts]:
        """Return which payloads have zero padding and at most one bit of Z_N set, and how many bits each has set."""
        bits = cast(Packed, payloads)
        return self.padded(bits) & (self.named(bits) <= 1), row_totals(bits)


def best_threshold(epsilon: float) -> float:
    """Return the theta with the least variance of the estimate of a rare symbol, between 1/2 and 1.

    With u = e^(epsilon theta/2) and c = e^(-epsilon/2), the variance q (1 - q)/(p - q)^2 is
    (2u - 1)/(1 + c u^2 - 2u)^2, which is the least where 3 c u^2 - 2 (1 + c) u + 1 = 0.
    """
    c = math.exp(-epsilon / 2)
    return 2 * math.log((1 + c + math.sqrt(1 - c + c * c)) / (3 * c)) / epsilon


def thresholding(sensitive: Mask, epsilon: float, theta: float) -> UnaryEncoding:
    """Return THE, thresholding with histogram encoding, over Z, where all symbols are ``sensitive``.

    A device adds Laplace noise with the scale 2/epsilon to each entry of a histogram that is 1 for its symbol and 0 for
    others, and sets a bit where the sum is above theta (Wang et al., section 4.2). Bits are independent, and set with

        p = 1 - e^((epsilon/2)(theta - 1))/2    for its symbol,    q = e^(-epsilon theta/2)/2    for any other symbol.

    A device draws these bits, and no noise of real numbers, whose floats would reveal more than the mathematics says
    (Mironov, "On Significance of the Least Significant Bits for Differential Privacy", CCS 2012).

    Guarantee: one report is epsilon'-LDP with e^epsilon' = p (1 - q)/((1 - p) q), the largest ratio of the
    probabilities of two bits under two symbols. epsilon' is below epsilon, the budget of the noise in nats, because a
    threshold drops a part of what the sums say. The guarantee of the mechanism is epsilon'. ValueError if epsilon is
    not positive, or theta is not inside (0, 1).
    """
    if not epsilon > 0:
        raise ValueError(f"epsilon must be positive, got {epsilon}")
    if not 0 < theta < 1:
        raise ValueError(f"theta must be inside (0, 1), got {theta}")
    unset, q = math.exp(epsilon / 2 * (theta - 1)) / 2, math.exp(-epsilon * theta / 2) / 2
    return UnaryEncoding(sensitive, math.log((1 - unset) * (1 - q) / (unset * q)), 1 - unset)

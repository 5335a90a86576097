"""Thresholding with histogram encoding, THE: which unary encoding it is.

Source: Wang et al., "Locally Differentially Private Protocols for Frequency Estimation" (USENIX Security 2017),
section 4.2. A device adds Laplace noise with the scale 2/epsilon to each entry of a histogram that is 1 for its symbol
and 0 for others, and sets a bit where the sum is above theta. So bits are independent, and set with the probability

    p = 1 - e^((epsilon/2)(theta - 1))/2    for its symbol,    q = e^(-epsilon theta/2)/2    for any other symbol.

A device draws these bits, and no noise of real numbers, whose floats would reveal more than the mathematics says
(Mironov, "On Significance of the Least Significant Bits for Differential Privacy", CCS 2012).
"""

import math

from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding
from uldp.schemas.arrays import Mask


def best_threshold(epsilon: float) -> float:
    """Return the theta with the least variance of the estimate of a rare symbol, between 1/2 and 1.

    With u = e^(epsilon theta/2) and c = e^(-epsilon/2), the variance q (1 - q)/(p - q)^2 is
    (2u - 1)/(1 + c u^2 - 2u)^2, which is the least where 3 c u^2 - 2 (1 + c) u + 1 = 0.
    """
    c = math.exp(-epsilon / 2)
    return 2 * math.log((1 + c + math.sqrt(1 - c + c * c)) / (3 * c)) / epsilon


def thresholding(sensitive: Mask, epsilon: float, theta: float) -> UnaryEncoding:
    """Return THE over Z, the unary encoding with p and q of this module, where all symbols are ``sensitive``.

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

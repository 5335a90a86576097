"""The noise of a report of SHE: how far entries and their sum are from the truth, but for an improbable tail."""

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Self


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
    """How far the noise of one report goes.

    Attributes:
        entry: The most by which an entry is above or below the 0 or 1 of the truth.
        total: The most by which the sum of the entries is above or below 1.
    """

    entry: int
    total: int

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

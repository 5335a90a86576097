"""Unary encoding in which each group of values has an epsilon of its own: input-discriminative LDP.

Source: Gu, Li, Xiong & Cao, "Providing Input-Discriminative Protection for Local Differential Privacy" (ICDE 2020), for
the definition, the mechanism (IDUE) and its two convex programs; section 2.3.7 of the survey of Wang et al. (Sensors
20, 2020) for the definition.
"""

import decimal
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding
from uldp.mechanisms.protocol.mechanism import Guarantee, Privacy
from uldp.schemas.arrays import Symbols

#: Probabilities are integers over this, as the draws of a device are.
RESOLUTION = 1 << 53
# Decimals of so many digits are the same on every machine; the functions of NumPy are not.
_DIGITS = decimal.Context(prec=50)
# Rounding at so many digits is less than this.
_ROUNDED = Decimal(10) ** -40
# Probabilities of bits that differ by less are those of one group.
_SAME = 1e-9


class Bits(NamedTuple):
    """The probabilities that a bit of one group is set, over ``RESOLUTION``: p for the true symbol, q for any other."""

    p: int
    q: int


class InputDiscriminativeEncoding(UnaryEncoding):
    """IDUE: a bit for each symbol, set with probability p if it is the true one, and with q otherwise, by its group.

    Guarantee: one report is MinID-LDP (the survey's Definition 8). Its likelihoods under two true symbols x and x'
    differ by at most the factor exp(min(epsilon_x, epsilon_x')). So each symbol has its own epsilon against every other
    symbol. ``best_bits`` says why this holds exactly, for probabilities that the device draws exactly. In particular,
    one report is LDP with the largest of these minima.

    The epsilons and groups are public, and must not depend on users' values.
    """

    def __init__(self, epsilons: Sequence[float], group: Symbols) -> None:
        sizes = np.bincount(group, minlength=len(epsilons))
        if len(sizes) != len(epsilons) or not sizes.all():
            raise ValueError(f"{len(epsilons)} groups need symbols each, got groups of {sizes.tolist()}")
        self.laws, self.group, self._epsilons = best_bits(epsilons, sizes.tolist()), group, tuple(epsilons)
        p, q = np.array(self.laws, dtype=np.float64).T / RESOLUTION
        # The largest epsilon of a group is that of a pair only if the group has a pair.
        largest = epsilons[-1] if sizes[-1] > 1 or len(sizes) == 1 else epsilons[-2]
        budgets = ", ".join(f"{epsilon:g} for {size:,}" for epsilon, size in zip(epsilons, sizes.tolist(), strict=True))
        terms = f"the smaller epsilon of the two values holds: {budgets} of the values"
        guarantee = Guarantee(Privacy.ID_LDP, largest, terms=terms)
        self._set(guarantee, np.ones(len(group), dtype=np.bool_), (1 - p)[group], q[group])

    def device_facts(self) -> Iterator[tuple[str, str]]:
        for epsilon, (p, q) in zip(self._epsilons, self.laws, strict=True):
            yield "bits", f"epsilon {epsilon:g}: p {p}/2^53, q {q}/2^53"

    def warnings(self, n: int) -> Iterator[str]:
        if np.ptp(self.channel.q) < _SAME:
            yield (
                "the groups of idue gain nothing: all values are protected as by oue with the least epsilon; take oue,"
                " or fewer values with the least epsilon"
            )


def best_bits(epsilons: Sequence[float], sizes: Sequence[int]) -> tuple[Bits, ...]:
    """Return the probabilities of each group with the least sum of variances, from the paper's two convex programs.

    For two symbols of groups i and j, the largest ratio of likelihoods is that of a report with the bit of the one and
    without that of the other, (p_i/q_i) (1-q_j)/(1-p_j), so the constraints are that it is at most

        E_ij = exp(min(epsilon_i, epsilon_j))    for all i and j.

    The variance of the estimate of a rare symbol is q (1-q)/(p-q)^2 a report; the programs minimize its sum over all
    symbols. Each program fixes p as a function of q. Let b be the smallest q, which is that of the largest epsilon. By
    the constraints with b, and because these imply all others, the best q of a group with E = exp(epsilon) is

        opt1, p + q = 1 (as SUE):    q/(1-q) = max(t, 1/(t E))    with t = b/(1-b)
        opt2, p = 1/2 (as OUE):      q = max(b, 1 - b E)

    The sum is a convex function of b, so a search over one integer solves either program. (The paper has a third
    program, opt0, for any p; it is not convex.) The result is the better of the two. All q are rounded up to a multiple
    of 2^-53, and all p are exact, so that the constraints hold exactly: a larger q lowers both factors. ValueError if
    the epsilons of the groups, in nats, do not rise, or are not positive.
    """
    if not epsilons or not (epsilons[0] > 0 and all(one < other for one, other in pairwise(epsilons))):
        raise ValueError(f"the epsilons of groups must be positive and rise, got {list(epsilons)}")
    with decimal.localcontext(_DIGITS):
        odds = [Decimal(epsilon).exp() * (1 - _ROUNDED) for epsilon in epsilons]

        def symmetric(b: int) -> tuple[Bits, ...]:
            t = Decimal(b) / (RESOLUTION - b)
            ratios = [max(t, 1 / (t * of)) for of in odds]
            qs = [_rounded_up(ratio / (1 + ratio)) for ratio in ratios]
            return tuple(Bits(RESOLUTION - q, q) for q in qs)

        def optimized(b: int) -> tuple[Bits, ...]:
            smallest = Decimal(b) / RESOLUTION
            return tuple(Bits(RESOLUTION // 2, _rounded_up(max(smallest, 1 - smallest * of))) for of in odds)

        def variance(bits: tuple[Bits, ...]) -> Decimal:
            # No gain is no estimate: the ends of the search may have none.
            if any(q >= p for p, q in bits):
                return Decimal("Infinity")
            return sum(
                (Decimal(size * q * (RESOLUTION - q)) / (p - q) ** 2 for size, (p, q) in zip(sizes, bits, strict=True)),
                Decimal(0),
            )

        least, root = 1 / (odds[0] + 1), odds[0].sqrt()
        found = (
            _least(symmetric, variance, _rounded_up(least), _rounded_up(1 / (root + 1))),
            _least(optimized, variance, _rounded_up(1 / (2 * odds[0])), _rounded_up(least)),
        )
        return min(found, key=variance)


def _rounded_up(probability: Decimal) -> int:
    return int((probability * RESOLUTION).to_integral_value(decimal.ROUND_CEILING))


def _least(
    bits: Callable[[int], tuple[Bits, ...]], variance: Callable[[tuple[Bits, ...]], Decimal], low: int, high: int
) -> tuple[Bits, ...]:
    """Return the bits with the least variance from low to high, by ternary search: it is convex in b."""
    while high - low > 2:
        third = (high - low) // 3
        if variance(bits(low + third)) <= variance(bits(high - third)):
            high -= third
        else:
            low += third
    return min((bits(b) for b in range(low, high + 1)), key=variance)

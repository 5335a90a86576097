"""Numbers: docs/client/numbers.md."""

from bisect import bisect_right
from decimal import Decimal, localcontext
from itertools import accumulate
from math import ceil, exp
from secrets import randbelow


def on_grid(x: float, low: float, high: float, steps: int) -> int:
    """Round a number to a grid, at random and without bias."""
    parts = round((min(max(x, low), high) - low) / (high - low) * (steps << 36))
    return parts + randbelow(1 << 36) >> 36


def duchi(x: float, low: float, high: float, epsilon: float) -> int:
    """Report one bit about a number."""
    bit = randbelow(1 << 16) < on_grid(x, low, high, 1 << 16)
    return bit ^ (randbelow(2**53) < ceil(2**53 / (exp(epsilon) + 1)))


def noise_below(epsilon: float, bins: int, width: int) -> int:
    """Return below which of 2^53 integers the draw of ``block`` is noise."""
    return ceil(2**53 * Decimal(bins + width) / (bins + width * Decimal(epsilon).exp()))


def block(x: float, low: float, high: float, epsilon: float, bins: int, width: int) -> int:
    """Report one of the symbols near a number, or as noise any."""
    near = on_grid(x, low, high, bins) + randbelow(width)
    anywhere = randbelow(bins + width)
    return anywhere if randbelow(2**53) < noise_below(epsilon, bins, width) else near


def weights_of(epsilon: float, steps: int) -> list[int]:
    """Return the weights of noise, from -N to N."""
    with localcontext(prec=40):
        factor = (Decimal(epsilon) / steps).exp() * (1 - Decimal(10) ** -30)
        last = int(64 / (factor - 1) ** 2) + 1
        side = [int((factor - 1) * last), last]
        while 2 * (sum(side) + int(factor * side[0])) <= 2**53:
            side.insert(0, int(factor * side[0]))
    return [*side[:0:-1], *side]


def geometric(x: float, low: float, high: float, epsilon: float, steps: int) -> int:
    """Report a number on a grid, with noise."""
    sums = list(accumulate(weights_of(epsilon, steps)))
    margin = len(sums) // 2 - steps
    noise = bisect_right(sums, randbelow(sums[-1])) - len(sums) // 2
    return min(max(on_grid(x, low, high, steps) + noise + margin, 0), steps + 2 * margin)

"""Rankings: docs/client/records.md."""

from itertools import combinations
from math import exp
from secrets import randbelow


def pairs(order: list[int], epsilon: float) -> int:
    """Report a ranking: the indices of all candidates, the best first."""
    chosen = list(combinations(range(len(order)), 2))
    number = randbelow(len(chosen))
    first, second = chosen[number]
    true, noise = int(order.index(first) > order.index(second)), randbelow(2)
    noisy = randbelow(1 << 53) < (1 << 53) * 2 / (exp(epsilon) + 1)
    return 2 * number + (noise if noisy else true)

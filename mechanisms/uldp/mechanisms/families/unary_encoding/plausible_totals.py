"""Plausible totals: how many bits an honest report of a unary encoding sets, but for an improbable tail."""

import numpy as np
from scipy import special

from uldp.schemas.arrays import Counts, Floats, Mask


def plausible_bit_totals(sensitive: Mask, cleared: Floats, q: Floats, tail: float) -> tuple[int, int]:
    """Bound the number of set bits in one honest report.

    The device sets the true symbol's own bit with probability p, a binomial number of the other bits of Z_S, and no
    other bit of Z_N. So the total has two distributions, one for all true symbols in Z_S and one for those in Z_N.

    Args:
        sensitive: Shape (|Z|,): whether each symbol is in Z_S.
        cleared: Shape (|Z|,): the probability that the device clears the own bit of the true symbol.
        q: Shape (|Z|,): the probability that it sets another bit.
        tail: Upper bound of the probability that an honest report is outside the bounds, for every true symbol; half
            of it for each side.

    Returns:
        The tightest (low, high) with Pr(total < low) <= tail / 2 and Pr(total > high) <= tail / 2 for every true
        symbol.

    Raises:
        ValueError: if ``tail`` is not inside (0, 1).
    """
    if not 0 < tail < 1:
        raise ValueError(f"tail must be inside (0, 1), got {tail}")
    v, other = int(sensitive.sum()), q[sensitive][0]
    lows, highs = [], []
    for protected in np.unique(sensitive):
        own = cleared[sensitive == protected][0]
        others = v - 1 if protected else v
        binomial = np.arange(others)
        at_most = np.concatenate([[0.0], special.bdtr(binomial, others, other), [1.0]])  # Pr(others <= j), from j = -1
        at_least = np.concatenate([[1.0], special.bdtrc(binomial, others, other), [0.0]])  # Pr(others >= j), from j = 0
        total_at_most = own * at_most[1:] + (1 - own) * at_most[:-1]  # from j = 0
        total_at_least = own * at_least[1:] + (1 - own) * at_least[:-1]  # from j = 1
        lows.append(int(np.count_nonzero(total_at_most <= tail / 2)))
        highs.append(int(np.count_nonzero(total_at_least > tail / 2)))
    return min(lows), max(highs)


def plausible_totals_of_groups(cleared: Floats, q: Floats, sizes: Counts, tail: float) -> tuple[int, int]:
    """Bound the number of set bits in one honest report whose bits are in groups; see ``plausible_bit_totals``.

    The number of other bits is a sum of binomial numbers, one of each group.

    Args:
        cleared: Shape (groups,): the probability that the device clears the own bit of the true symbol.
        q: Shape (groups,): the probability that it sets another bit of the group.
        sizes: Shape (groups,): the number of symbols of each group.
        tail: Upper bound of the probability that an honest report is outside the bounds, for every true symbol.
    """
    lows, highs = [], []
    for own in range(len(sizes)):
        total = np.array([cleared[own], 1 - cleared[own]])
        for group, size in enumerate(sizes.tolist()):
            others = size - (group == own)
            binomial = np.diff(special.bdtr(np.arange(others + 1), others, q[group]), prepend=0.0)
            total = np.convolve(total, binomial)
        lows.append(int(np.count_nonzero(np.cumsum(total) <= tail / 2)))
        highs.append(int(np.count_nonzero(np.cumsum(total[::-1])[::-1] > tail / 2)) - 1)
    return min(lows), max(highs)

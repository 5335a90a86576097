"""The probabilities of subset selection for sets, and the size of its reports with the least variance."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from uldp.mechanisms.laws.channel import part_without
from uldp.schemas.arrays import Floats

#: The shares of an item at which the variance counts, each alike: an item that nobody holds, and frequent ones.
SHARES = (0.0, 0.05, 0.2)
#: Those of a key, which has two symbols.
SHARES_OF_KEYS = (0.0, 0.05)
# Sizes are tried one by one up to so many, and beyond in steps of so large a part of them, and then those between.
_ONE_BY_ONE, _STEP = 2048, 1 / 64


class SetLaw(NamedTuple):
    """The law of a report of w of D symbols, if the device holds l of them, with E = e^epsilon."""

    p: Floats  # the probability that a report has a symbol that the device holds
    q: Floats  # the probability that it has a symbol that the device does not hold
    hit: Floats  # the part of all sets of w symbols with one or more of those that the device holds


def set_law(size: int, held: int, chosen: Floats, epsilon: float) -> SetLaw:
    """Return the law of reports of each of some sizes w = ``chosen``, over D = ``size`` symbols of which l are held.

    A set with one of the l symbols has E times the probability of any other. Of all C(D, w) sets, the part
    miss = C(D-l, w)/C(D, w) has none of them, and of the C(D-1, w-1) sets with a given other symbol, the part
    C(D-1-l, w-1)/C(D-1, w-1). So with Z = E - (E-1) miss,

        p = (w/D) E/Z        q = (w/D) (E - (E-1) C(D-1-l, w-1)/C(D-1, w-1))/Z
    """
    share = chosen / size
    miss, other = part_without(size, held, chosen), part_without(size - 1, held, chosen - 1)
    # With E^-1 in place of E nothing overflows.
    rest = math.exp(-epsilon)
    z = 1 - (1 - rest) * miss
    return SetLaw(share / z, share * (1 - (1 - rest) * other) / z, 1 - miss)


@lru_cache(maxsize=256)
def best_chosen(size: int, held: int, epsilon: float, *, signed: bool = False) -> int:
    """Return the w from 1 to D-1 of least variance at ``SHARES``; of keys, ``signed``, at ``SHARES_OF_KEYS``."""
    variance = _variance_of_keys if signed else _variance
    sizes = np.arange(1.0, min(size, _ONE_BY_ONE + 1))
    if size - 1 > len(sizes):
        ends = np.geomspace(sizes[-1], size - 1, int(math.log(size / sizes[-1]) / _STEP) + 2)
        coarse = np.unique(np.concatenate([sizes, np.rint(ends)]))
        at = int(np.argmin(variance(size, held, coarse, epsilon)))
        low, high = coarse[max(at - 1, 0)], coarse[min(at + 1, len(coarse) - 1)]
        sizes = np.arange(low, high + 1)
    return int(sizes[np.argmin(variance(size, held, sizes, epsilon))])


def _variance(size: int, held: int, chosen: Floats, epsilon: float) -> Floats:
    law = set_law(size, held, chosen, epsilon)
    return variance_of_items(law.p, law.q)


def variance_of_items(p: Floats, q: Floats) -> Floats:
    """Return the variance of a report about items, summed over ``SHARES``, for each p and q of supports."""
    total = np.zeros_like(p)
    for share in SHARES:
        m = q + (p - q) * share
        total += m * (1 - m)
    return _over_gain(total, p - q)


def _variance_of_keys(size: int, held: int, chosen: Floats, epsilon: float) -> Floats:
    """Return the variance of the sum of two symbols that nobody holds both, each held by half of the share.

    A report has both with the probability b + (a-b) share. If a device holds one of them, all sets with both have one
    probability, so a = p (w-1)/(D-1). If it holds none, a set with both and no held symbol is E times less probable.
    """
    law, rest = set_law(size, held, chosen, epsilon), math.exp(-epsilon)
    a = law.p * (chosen - 1) / (size - 1)
    without = np.where(chosen > 1, part_without(size - 2, held, chosen - 2), 1.0)
    b = a * (1 - (1 - rest) * without)
    total = np.zeros_like(chosen)
    for share in SHARES_OF_KEYS:
        m = law.q + (law.p - law.q) * share / 2
        total += 2 * m * (1 - m) + 2 * (b + (a - b) * share - m**2)
    return _over_gain(total, law.p - law.q)


def _over_gain(total: Floats, gain: Floats) -> Floats:
    """Return a variance of supports as that of shares; infinite where supports say nothing."""
    variance: Floats = np.divide(total, gain**2, out=np.full_like(total, np.inf), where=gain > 0)
    return variance

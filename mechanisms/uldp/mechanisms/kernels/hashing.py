"""The hash functions of local hashing: SplitMix64, and the number of buckets that is best for an epsilon."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Symbols, Values, Words

#: A bucket is sent in two bytes. A number has as many bins at the most.
MOST_BUCKETS = 1 << 16

# The constants of SplitMix64.
_STEP = 0x9E3779B97F4A7C15
_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))

SEEDS = 1 << 32
_LOW_WORD = np.uint64(SEEDS - 1)
_HALF = np.uint64(32)


def default_buckets(epsilon: float) -> int:
    """Return e^epsilon + 1 buckets, rounded, at most ``MOST_BUCKETS``: the least variance (Wang et al. 2017, 4.4)."""
    return min(round(math.exp(epsilon)) + 1, MOST_BUCKETS)


def buckets_of_spec(data: dict[str, Any]) -> int:
    """Return the default of ``buckets`` in a spec with these parameters."""
    # Older versions of pydantic ask even if epsilon is wrong and missing here; the error about it is enough.
    return default_buckets(data.get("epsilon", 1.0))


def hash_symbols(seeds: npt.NDArray[np.integer], symbols: Values, buckets: int) -> Symbols:
    """Return the bucket of each symbol under the hash function of its seed; the two shapes broadcast.

    SplitMix64 starts with the state seed * 2^32. Its output number z (the first is number 0) is the hash of symbol z.
    The bucket is (hash mod 2^32) * buckets / 2^32, rounded down.

    Source: Steele, Lea & Flood, "Fast Splittable Pseudorandom Number Generators" (OOPSLA 2014); the constants are those
    of Vigna's ``splitmix64.c`` (2015), variant 13 of Stafford's mixers.
    """
    states = states_of(seeds) + steps_of(symbols)
    scramble(states, np.empty_like(states))
    return ((states & _LOW_WORD) * np.uint64(buckets) >> _HALF).astype(np.int64)


def states_of(seeds: npt.NDArray[np.integer]) -> Words:
    """Return the state with which SplitMix64 starts for each seed."""
    return seeds.astype(np.uint64) << _HALF


def steps_of(symbols: Values) -> Words:
    """Return by how much SplitMix64 has moved its state when it gives the output for each symbol."""
    return (symbols.astype(np.uint64) + np.uint64(1)) * np.uint64(_STEP)


def scramble(states: Words, buffer: Words) -> None:
    """Turn states of SplitMix64 into its outputs, in place; ``buffer`` is overwritten."""
    for shift, multiplier in zip(_SHIFTS, (*_MULTIPLIERS, None), strict=True):
        np.right_shift(states, shift, out=buffer)
        states ^= buffer
        if multiplier is not None:
            states *= multiplier

"""Local hashing for sets: its law over all hash functions and all sets, and its draws."""

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from uldp.mechanisms.families.sets.randomizer import DRAWS, SetHashing, best_buckets


def law_of(function: Sequence[int], held: Sequence[int], buckets: int, hit: Fraction) -> list[Fraction]:
    """The probability of each bucket under a hash function, after the class."""
    found = {function[symbol] for symbol in held}
    for bucket in range(buckets):
        if len(found) < len(held):
            found.add(bucket)
    other = (1 - len(held) * hit) / (buckets - len(held))
    return [hit if bucket in found else other for bucket in range(buckets)]


@pytest.mark.parametrize(("size", "held", "buckets", "epsilon"), [(4, 2, 4, 1.0), (5, 2, 3, 0.5), (4, 3, 4, 2.0)])
def test_supports_have_p_and_q_over_all_hash_functions(size: int, held: int, buckets: int, epsilon: float) -> None:
    mechanism = SetHashing(size, epsilon, held, buckets)
    hit, functions = Fraction(mechanism.hit, DRAWS), list(itertools.product(range(buckets), repeat=size))
    channel = mechanism.channel
    p, q = float(channel.p[0]), float(channel.q[0])
    a, b, _ = channel.pair_probabilities()
    for own in itertools.combinations(range(size), held):
        supports = {(i, j): Fraction(0) for i in range(size) for j in range(i, size)}
        for function in functions:
            law = law_of(function, own, buckets, hit)
            for i, j in supports:
                supports[i, j] += law[function[i]] * (function[i] == function[j])
        for (i, j), total in supports.items():
            alone = p if i in own else q
            both = a if {i, j} & set(own) else b
            assert float(total / len(functions)) == pytest.approx(alone if i == j else both, rel=1e-12)


@pytest.mark.parametrize(("held", "epsilon"), [(1, 1.0), (8, 1.0), (8, 2.0), (3, 4.0)])
def test_the_best_number_of_buckets_has_the_least_mean_variance(held: int, epsilon: float) -> None:
    def variance(buckets: int) -> float:
        channel = SetHashing(60, epsilon, held, buckets).channel
        return sum(float(channel.variance(np.full(60, share), 1)[0]) for share in (0.0, 0.05, 0.2))

    best = best_buckets(held, epsilon)
    assert variance(best) <= min(map(variance, range(held + 1, 4 * best)))

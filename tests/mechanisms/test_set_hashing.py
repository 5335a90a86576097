"""Local hashing for sets: its law over all hash functions and all sets, and its draws."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from tests import build
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.families.set_hashing.randomizer import DRAWS, SetHashing, best_buckets
from uldp.pipelines.clients.vectors import Recorded
from uldp.schemas.specs.specfile import SpecError


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


@pytest.mark.parametrize(("items", "held", "buckets", "epsilon"), [(4, 2, 5, 1.0), (3, 2, 7, 0.5), (5, 2, 3, 3.0)])
def test_no_two_sets_of_any_size_differ_by_more_than_epsilon_and_some_do(
    items: int, held: int, buckets: int, epsilon: float
) -> None:
    mechanism, worst = SetHashing(items + held, epsilon, held, buckets), Fraction(0)
    hit = Fraction(mechanism.hit, DRAWS)
    for function in itertools.product(range(buckets), repeat=items + held):
        laws = set()
        for size in range(items + 1):  # below, at and above what a device reports
            for whole in itertools.combinations(range(items), size):
                cuts = list(itertools.combinations(whole, min(size, held)))
                of_cuts = [
                    law_of(function, [*cut, *range(items, items + held - len(cut))], buckets, hit) for cut in cuts
                ]
                laws.add(tuple(sum(each) / len(cuts) for each in zip(*of_cuts, strict=True)))
        worst = max(worst, *(max(each) / min(each) for each in zip(*laws, strict=True)))
        if function > (1, 1, 1):  # of the functions, those that begin so have all kinds of collisions
            break
    assert -1e-14 <= epsilon - math.log(worst) <= 1e-12


def test_the_draws_of_a_device_do_not_depend_on_its_set() -> None:
    spec = build.spec(domain={"set": {"of": {"size": 9}, "at_most": 3}}, mechanism={"name": "set-olh", "epsilon": 1.0})
    ranges = set()
    for size, seed in itertools.product(range(10), range(4)):
        randomness = Recorded(f"{size} {seed}", large=seed % 2 == 1)
        Device(spec, {}, randomness).report(set(range(size)), build.START)
        ranges.add(tuple(below for below, _ in randomness.draws))
    assert ranges == {(1 << 32,) * 3 + (1 << 32, DRAWS, best_buckets(3, 1.0) - 3)}


@pytest.mark.parametrize(("held", "epsilon"), [(1, 1.0), (8, 1.0), (8, 2.0), (3, 4.0)])
def test_the_best_number_of_buckets_has_the_least_mean_variance(held: int, epsilon: float) -> None:
    def variance(buckets: int) -> float:
        channel = SetHashing(60, epsilon, held, buckets).channel
        return sum(float(channel.variance(np.full(60, share), 1)[0]) for share in (0.0, 0.05, 0.2))

    best = best_buckets(held, epsilon)
    assert variance(best) <= min(map(variance, range(held + 1, 4 * best)))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"lasting_epsilon": 0.5}, "must be at least epsilon"),
        ({"buckets": 3}, "buckets: must be more than at_most, 3, and at most 65,536, or auto"),
    ],
)
def test_each_mistake_is_named(more: dict[str, float], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        build.spec(
            domain={"set": {"of": {"size": 9}, "at_most": 3}}, mechanism={"name": "set-olh", "epsilon": 1.0, **more}
        )

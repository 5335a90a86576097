"""SHE and THE: their published laws, what they promise, and their payloads."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.summation.randomizer import (
    LARGEST_ENTRY,
    MIN_EPSILON,
    Reach,
    Summation,
    noise_variance,
    tail_of_sum,
)
from uldp.mechanisms.families.thresholding.randomizer import best_threshold, thresholding
from uldp.schemas.flags import Flag

EPSILONS = (0.01, 0.5, 1.0, 2.0, 4.0, 10.0, 20.0)
ALL = np.ones(3, dtype=np.bool_)


def published(epsilon: float, theta: float) -> tuple[float, float]:
    """p and q: that Laplace noise of the scale 2/epsilon around 1, and around 0, is above theta."""
    return 1 - math.exp(epsilon / 2 * (theta - 1)) / 2, math.exp(-epsilon / 2 * theta) / 2


@pytest.mark.parametrize("theta", [0.55, 0.7, 0.99])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_bits_of_the_are_those_of_a_threshold(epsilon: float, theta: float) -> None:
    channel = thresholding(ALL, epsilon, theta).channel
    assert (channel.p[0], channel.q[0]) == pytest.approx(published(epsilon, theta), rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_best_threshold_has_the_least_variance(epsilon: float) -> None:
    def variance(theta: float) -> float:
        p, q = published(epsilon, theta)
        return q * (1 - q) / (p - q) ** 2

    found = minimize_scalar(variance, bounds=(0.5, 1), method="bounded")
    assert 0.5 < best_threshold(epsilon) < 1
    assert variance(best_threshold(epsilon)) <= found.fun * (1 + 1e-9)


def geometric(epsilon: float, one: bool, entries: Any) -> Any:
    """The law of an entry: two-sided geometric noise around 1 or 0."""
    a = math.exp(-epsilon / 2)
    return (1 - a) / (1 + a) * a ** np.abs(entries - one)


@pytest.mark.parametrize("epsilon", [0.0025, 0.01, 1.0, 20.0])
def test_the_bits_of_a_magnitude_have_its_mean_and_variance(epsilon: float) -> None:
    a, bits = math.exp(-epsilon / 2), np.array(Summation(5, epsilon).bit_probabilities)
    steps = 2.0 ** np.arange(len(bits))
    assert (steps * bits).sum() == pytest.approx(a / (1 - a), rel=1e-9)
    assert (steps**2 * bits * (1 - bits)).sum() == pytest.approx(a / (1 - a) ** 2, rel=1e-9)


def beyond(epsilon: float, entries: int, distance: int) -> float:
    """Bound the probability that the noise of some entry is farther than this."""
    a = math.exp(-epsilon / 2)
    return 2 * entries * a ** (distance + 1) / (1 + a)


@pytest.mark.parametrize("entries", [1, 8, 100_000])
@pytest.mark.parametrize("tail", [1e-6, 1e-12])
@pytest.mark.parametrize("epsilon", [MIN_EPSILON, *EPSILONS])
def test_the_reach_of_noise_is_the_tightest_with_its_tail(epsilon: float, tail: float, entries: int) -> None:
    reach, variance = Reach.of(entries, epsilon, tail), noise_variance(epsilon)
    assert beyond(epsilon, entries, reach.entry) <= tail / 2
    assert reach.entry == 0 or beyond(epsilon, entries, reach.entry - 1) > tail / 2
    assert reach.entry + 1 <= LARGEST_ENTRY  # two bytes are enough for all epsilons and domains of a spec
    assert reach.total == reach.entry * entries or tail_of_sum(reach.total + 1, entries, variance) <= tail / 4
    assert reach.total == 0 or tail_of_sum(reach.total, entries, variance) > tail / 4


@pytest.mark.parametrize(("epsilon", "heaviest"), [(0.5, 123), (1.0, 62), (4.0, 16), (10.0, 7)])
def test_an_entry_beyond_the_noise_is_impossible(epsilon: float, heaviest: int) -> None:
    mechanism = Summation(8, epsilon)
    assert mechanism.largest_step == heaviest

    def verdict(*entries: int) -> str:
        payload = np.array([*entries, *[0] * (8 - len(entries))], dtype="<i2").view(np.uint8)[np.newaxis]
        possible, improbable = mechanism.inspect(payload)
        assert mechanism.possible(payload) == possible
        return "impossible" if not possible else "improbable" if improbable else "probable"

    least = 1 - heaviest
    assert verdict(1) == verdict(0, 1) == verdict(0) == "probable"
    assert verdict(heaviest) == verdict(0, least) == verdict(heaviest, least) == "improbable"
    far = [heaviest + 1, least - 1, 20_000, LARGEST_ENTRY, -LARGEST_ENTRY, -LARGEST_ENTRY - 1]
    assert {verdict(0, entry) for entry in far} == {"impossible"}
    # Each alone is possible, but noise does not raise or lower all at once.
    assert verdict(*[heaviest] * 8) == verdict(*[least] * 8) == "impossible"


@pytest.mark.parametrize(("n", "epsilon"), [(1, 1.0), (30, 1.0), (30, 6.0), (400, 3.0)])
def test_the_tail_of_sums_is_bounded(n: int, epsilon: float) -> None:
    a = math.exp(-epsilon / 2)
    law = geometric(epsilon, False, np.arange(-400, 401))
    total = np.array([1.0])
    for _ in range(n):
        total = np.convolve(total, law, mode="full")
        middle = len(total) // 2
        total = total[max(0, middle - 400) : middle + 401]
    upper = total[::-1].cumsum()[::-1][len(total) // 2 :]
    for distance in (0, 1, 5, 20, 60):
        bound = tail_of_sum(distance, n, 2 * a / (1 - a) ** 2)
        assert upper[distance] <= bound * (1 + 1e-9)
        # Chernoff's bound has the right exponent.
        assert math.log(bound) > math.log(upper[distance]) - 6 or upper[distance] < 1e-12


def test_forged_sums_are_improbable() -> None:
    decoder, n = (
        build_protocol(build.spec(domain={"size": 20}, mechanism={"name": "she", "epsilon": 1.0})).decoder,
        1000,
    )
    honest = np.full(20, n // 20)
    assert decoder.p_values(honest, n)[Flag.IMPROBABLE_COUNTS] == 1
    for forged in (honest + 400 * np.eye(20, dtype=np.int64)[0] * 20, honest - 700 * np.eye(20, dtype=np.int64)[1]):
        assert decoder.p_values(forged, n)[Flag.IMPROBABLE_COUNTS] < 1e-9

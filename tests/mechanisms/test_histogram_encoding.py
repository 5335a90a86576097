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
from uldp.mechanisms.families.unary_encoding.randomizer import best_threshold, thresholding
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


def test_forged_sums_are_improbable() -> None:
    decoder, n = (
        build_protocol(build.spec(domain={"size": 20}, mechanism={"name": "she", "epsilon": 1.0})).decoder,
        1000,
    )
    honest = np.full(20, n // 20)
    assert decoder.p_values(honest, n)[Flag.IMPROBABLE_COUNTS] == 1
    for forged in (honest + 400 * np.eye(20, dtype=np.int64)[0] * 20, honest - 700 * np.eye(20, dtype=np.int64)[1]):
        assert decoder.p_values(forged, n)[Flag.IMPROBABLE_COUNTS] < 1e-9

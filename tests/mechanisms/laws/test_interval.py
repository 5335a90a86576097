"""Score intervals cover, and p-values are their duals."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from uldp.mechanisms.decoders.pure import share_estimate
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.laws.channel_laws import law_of
from uldp.mechanisms.laws.interval import p_value, score_interval
from uldp.mechanisms.laws.law import Cumulants

NONE = np.array([np.nan])


def cumulants(variance: float, third: float, step: float) -> Cumulants:
    return Cumulants(np.array([variance]), np.array([third]), np.array([step]), NONE, NONE)


@pytest.mark.parametrize("coverage", [0.5, 0.95, 0.999])
def test_without_skewness_and_steps_it_is_the_normal_interval(coverage: float) -> None:
    low, high = score_interval(np.array([3.0]), cumulants(4.0, 0.0, 0.0), coverage)
    half = stats.norm.ppf(0.5 + coverage / 2) * 2
    assert (low[0], high[0]) == pytest.approx((3 - half, 3 + half), rel=1e-9)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 20, 100])
def test_of_a_count_without_noise_it_is_near_that_of_poisson(count: int) -> None:
    """The exact interval of a mean: gamma quantiles (Garwood, Biometrika 28, 1936). It covers more than it says."""
    low, high = score_interval(np.array([float(count)]), cumulants(count, count, 1.0), 0.95)
    ends = stats.gamma.ppf(0.025, count) if count else 0.0, stats.gamma.ppf(0.975, count + 1)
    assert ends[0] - 1 <= max(low[0], 0.0) <= ends[0] + 0.8
    assert ends[1] - 0.8 <= high[0] <= ends[1] + 0.8


@given(
    value=st.floats(-20, 20),
    variance=st.floats(0.01, 100),
    skewness=st.floats(-1.5, 1.5),
    step=st.floats(0, 3),
    coverage=st.floats(0.5, 0.999),
)
def test_p_values_are_small_where_the_interval_does_not_hold_zero(
    value: float, variance: float, skewness: float, step: float, coverage: float
) -> None:
    of_sum = cumulants(variance, skewness * variance**1.5, step)
    low, high = score_interval(np.array([value]), of_sum, coverage)
    outside = low[0] > 0 or high[0] < 0
    p = p_value(np.array([value]), of_sum)[0]
    assert outside == (p < 1 - coverage) or min(abs(low[0]), abs(high[0])) < 1e-6 or abs(p - (1 - coverage)) < 1e-6


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_intervals_of_any_sum_of_symbols_cover(epsilon: float) -> None:
    """The coverage of every sum, from the multinomial probability of every outcome of n reports."""
    n, k, e = 20, 3, np.exp(epsilon)
    channel = Channel(np.full(k, e / (e + k - 1)), np.full(k, 1 / (e + k - 1)), False)
    w, law = np.array([[1.0, 0.5], [-0.5, 0.25], [0.2, -1.0]]), law_of(channel)
    outcomes = [(a, b, n - a - b) for a, b in product(range(n + 1), repeat=2) if a + b <= n]
    ends = [share_estimate(law, np.array(counts), n).interval(0.95, w) for counts in outcomes]
    covered = []
    for r in ([0.6, 0.3, 0.1], [0.9, 0.05, 0.05], [0.34, 0.33, 0.33]):
        m, truth = channel.support_probability(np.array(r)), np.array(r) @ w
        chances = [comb(n, a) * comb(n - a, b) * np.prod(m ** np.array([a, b, c])) for a, b, c in outcomes]
        inside = np.array([(low <= truth) & (truth <= high) for low, high in ends])
        covered.append(np.array(chances) @ inside)
    assert np.min(covered) >= 0.92
    assert np.mean(covered) <= 0.99

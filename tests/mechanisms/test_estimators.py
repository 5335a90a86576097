"""Estimators by hand, by brute force and by Monte Carlo."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from uldp.mechanisms.estimators.by_name import THRESHOLD_ALPHA, empirical, estimate_intermediate, threshold
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.mechanisms.laws.channel import Channel
from uldp.schemas.arrays import Counts, Floats

SENSITIVE = np.array([True, True, True, False, False])
URR = RandomizedResponse(SENSITIVE, 2.0)
URAP = UnaryEncoding(SENSITIVE, 2.0, sue_theta(2.0))
# p - q = 1/2 everywhere, and one symbol without noise: numbers for a calculation by hand.
BITS = Channel(p=np.array([0.75, 0.75, 0.5]), q=np.array([0.25, 0.25, 0.0]), independent_bits=True)


def on_simplex(r: Floats) -> bool:
    return bool((r >= 0).all()) and float(r.sum()) == pytest.approx(1, abs=1e-12)


@st.composite
def symbol_counts(draw: st.DrawFn) -> Counts:
    return draw(npst.arrays(np.int64, 5, elements=st.integers(0, 1000)).filter(lambda counts: counts.sum() > 0))


def test_threshold_by_hand() -> None:
    # sd = sqrt(1/4 * 3/4 / 10^4) / (1/2) = 0.00866, T = Phi^-1(1 - 0.05/3) sd = 2.128 sd = 0.01843 on the first two.
    # r-hat = (0.4, 0.0182, 0.002): the second is cut and takes what remains, the third has q = 0 and stays.
    counts = np.array([4500, 2591, 10])
    assert threshold(BITS, counts, 10_000) == pytest.approx([0.4, 0.598, 0.002])
    # One step above T nothing is cut, and the whole is scaled to one.
    counts = np.array([4500, 2593, 10])
    assert threshold(BITS, counts, 10_000) == pytest.approx(np.array([0.4, 0.0186, 0.002]) / 0.4206)


def test_threshold_keeps_an_empty_symbol_as_often_as_bonferroni_says() -> None:
    # 19 of 20 symbols are empty and their bits independent: P(some is kept) = 1 - (1 - 0.05/20)^19 = 0.0465.
    channel = UnaryEncoding(np.ones(20, dtype=np.bool_), 1.0, OUE_THETA).channel
    n, trials = 100_000, 4000
    rng = np.random.default_rng(1)
    held = n * np.eye(20, dtype=np.int64)[0]
    windows = rng.binomial(held, channel.p, (trials, 20)) + rng.binomial(n - held, channel.q, (trials, 20))
    wrong = np.mean([len(np.unique(threshold(channel, counts, n)[1:])) > 1 for counts in windows])
    expected = 1 - (1 - THRESHOLD_ALPHA / 20) ** 19
    z = (wrong - expected) / np.sqrt(expected * (1 - expected) / trials)
    assert abs(z) < 4


@given(counts=symbol_counts())
def test_estimates_from_symbols_lie_on_the_simplex(counts: Counts) -> None:
    n = int(counts.sum())
    assert empirical(URR.channel, counts, n).sum() == pytest.approx(1)
    for estimator in ("auto", "threshold", "norm-sub", "wls", "mle", "em"):
        assert on_simplex(estimate_intermediate(estimator, URR.channel, counts, n)), estimator


@pytest.mark.parametrize("name", ["mle", "em"])
def test_counts_of_bits_have_no_likelihood(name: str) -> None:
    with pytest.raises(ValueError, match="use wls"):
        estimate_intermediate(name, URAP.channel, np.zeros(5, dtype=np.int64), 10)


def test_an_unknown_estimator_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'median'.*auto, empirical, threshold, norm-sub, wls, mle, em"):
        estimate_intermediate("median", URR.channel, np.ones(5, dtype=np.int64), 5)

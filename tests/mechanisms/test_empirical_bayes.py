"""Empirical Bayes, the default estimator: what it gains, and what it leaves alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from uldp.mechanisms.estimators.by_name import threshold
from uldp.mechanisms.estimators.empirical_bayes import SMALLEST_CLASS, empirical_bayes
from uldp.mechanisms.estimators.projection import wls
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.mechanisms.inference.forecast import draw_counts, falling_shares
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.schemas.arrays import Counts, Floats

K = 50
EVERY, SOME = np.ones(K, dtype=np.bool_), np.arange(K) < 30
MECHANISMS: dict[str, PureMechanism] = {
    "rr": RandomizedResponse(EVERY, 1.0),
    "urr": RandomizedResponse(SOME, 1.0),
    "oue": UnaryEncoding(EVERY, 1.0, OUE_THETA),
    "urap": UnaryEncoding(SOME, 1.0, sue_theta(1.0)),
    "ss": SubsetSelection(K, 1.0),
}


def window(channel: Channel, n: int, r: Floats | None = None, seed: int = 1) -> Counts:
    return draw_counts(channel, falling_shares(channel.size) if r is None else r, n, np.random.default_rng(seed))


def l2(channel: Channel, estimate: Floats, r: Floats) -> float:
    return float(np.linalg.norm(estimate - r))


@pytest.mark.parametrize("name", MECHANISMS)
def test_it_is_nearer_to_the_truth_where_n_is_small(name: str) -> None:
    channel, r = MECHANISMS[name].channel, falling_shares(K)
    errors = np.array(
        [
            [l2(channel, estimator(channel, counts, 1000), r) for estimator in (empirical_bayes, wls)]
            for counts in (window(channel, 1000, seed=seed) for seed in range(20))
        ]
    ).mean(axis=0)
    assert errors[0] < 0.85 * errors[1]


def test_a_large_class_has_the_evidence_for_a_closer_prior() -> None:
    """Most of 5,000 symbols have no share. The threshold of significant ones, which assumes so, is not half as near."""
    channel, n = RandomizedResponse(np.ones(5000, dtype=np.bool_), 5.0).channel, 200_000
    r = np.where(np.arange(5000) < 100, 0.01, 0.0)
    counts = window(channel, n, r)
    errors = [np.abs(estimator(channel, counts, n) - r).sum() for estimator in (empirical_bayes, threshold, wls)]
    assert errors[0] < 0.5 * errors[1] < errors[2]


@pytest.mark.parametrize("name", ["urr", "urap"])
def test_a_value_without_noise_that_no_report_names_keeps_the_share_0(name: str) -> None:
    channel = MECHANISMS[name].channel
    r = np.where(np.arange(K) < 40, 1 / 40, 0)
    estimate = empirical_bayes(channel, window(channel, 500, r), 500)
    assert (estimate[40:] == 0).all()
    assert (estimate[:30] > 0).any()


def test_bots_belong_to_no_class() -> None:
    # Two bots of 30 sensitive symbols hide much. A prior that has 28 small shares would pull them down.
    channel, n = RandomizedResponse(np.ones(30, dtype=np.bool_), 1.0).channel, 20_000
    r = np.append(np.full(28, 0.7 / 28), [0.15, 0.15])
    estimates = {
        bots: np.mean([empirical_bayes(channel, window(channel, n, r, seed), n, bots)[-2:] for seed in range(30)])
        for bots in (0, 2)
    }
    assert estimates[2] == pytest.approx(0.15, abs=0.01)
    assert abs(estimates[0] - 0.15) > abs(estimates[2] - 0.15)


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
@given(data=st.data())
def test_it_is_a_distribution_that_follows_the_order_of_symbols(name: str, data: st.DataObject) -> None:
    channel, n = MECHANISMS[name].channel, data.draw(st.integers(1, 3000))
    r = data.draw(npst.arrays(np.float64, K, elements=st.floats(0, 1)).filter(lambda r: r.sum() > 0.1))
    counts = window(channel, n, r / r.sum(), seed=data.draw(st.integers(0, 9)))
    order = np.concatenate([data.draw(st.permutations(range(30))), data.draw(st.permutations(range(30, K)))])
    estimate = empirical_bayes(channel, counts, n)
    assert (estimate >= 0).all()
    assert estimate.sum() == pytest.approx(1, abs=1e-9)
    assert empirical_bayes(channel, counts[order], n) == pytest.approx(estimate[order], abs=1e-6)


@pytest.mark.parametrize("n", [1000, 100_000, 10_000_000])
def test_few_values_are_those_of_wls(n: int) -> None:
    channel = RandomizedResponse(np.arange(SMALLEST_CLASS) < SMALLEST_CLASS - 1, 1.0).channel
    counts = window(channel, n)
    assert empirical_bayes(channel, counts, n).tolist() == wls(channel, counts, n).tolist()


@pytest.mark.parametrize("size", [625, 12_800])
def test_large_windows_have_small_grids(size: int) -> None:
    # A billion reports: without a bound, the counts of 12,800 bits would differ almost all.
    channel = UnaryEncoding(np.ones(size, dtype=np.bool_), 0.01, OUE_THETA).channel
    counts, n = window(channel, 10**9), 10**9
    estimate = empirical_bayes(channel, counts, n)
    assert estimate.sum() == pytest.approx(1, abs=1e-9)
    assert l2(channel, estimate, falling_shares(size)) < l2(channel, wls(channel, counts, n), falling_shares(size))

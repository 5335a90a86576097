"""Empirical Bayes and the default estimator: what they gain, what they leave alone, and that they do not jump."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from uldp.mechanisms.estimators.by_name import AUTO_BETWEEN, auto, threshold
from uldp.mechanisms.estimators.empirical_bayes import SMALLEST_CLASS, empirical_bayes
from uldp.mechanisms.estimators.projection import wls
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.mechanisms.inference.forecast import draw_counts, equal_shares, falling_shares
from uldp.mechanisms.protocol.channel import Channel
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


@pytest.mark.parametrize("name", ["rr", "oue", "ss"])
def test_the_noise_of_equal_shares_is_taken_for_noise(name: str) -> None:
    channel, n = MECHANISMS[name].channel, 20_000
    estimate = empirical_bayes(channel, window(channel, n, equal_shares(K)), n)
    assert np.abs(estimate - 1 / K).max() < np.sqrt(channel.variance(equal_shares(K), n)).max()


def test_a_large_class_has_the_evidence_for_a_closer_prior() -> None:
    """Most of 5,000 symbols have no share. The threshold of significant ones, which assumes so, is not half as near."""
    channel, n = RandomizedResponse(np.ones(5000, dtype=np.bool_), 5.0).channel, 200_000
    r = np.where(np.arange(5000) < 100, 0.01, 0.0)
    counts = window(channel, n, r)
    errors = [np.abs(estimator(channel, counts, n) - r).sum() for estimator in (empirical_bayes, threshold, wls)]
    assert errors[0] < 0.5 * errors[1] < errors[2]


def test_a_share_far_above_the_noise_stays() -> None:
    channel, n = MECHANISMS["oue"].channel, 10_000
    r = np.full(K, 0.5 / (K - 1))
    r[7] = 0.5
    counts = np.rint(n * channel.support_probability(r)).astype(np.int64)
    assert empirical_bayes(channel, counts, n)[7] == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("name", ["urr", "urap"])
def test_a_value_without_noise_that_no_report_names_keeps_the_share_0(name: str) -> None:
    channel = MECHANISMS[name].channel
    r = np.where(np.arange(K) < 40, 1 / 40, 0)
    estimate = empirical_bayes(channel, window(channel, 500, r), 500)
    assert (estimate[40:] == 0).all()
    assert (estimate[:30] > 0).any()


def test_a_class_of_few_symbols_has_no_prior() -> None:
    few = RandomizedResponse(np.arange(K) < SMALLEST_CLASS - 1, 1.0).channel
    enough = RandomizedResponse(np.arange(K) < SMALLEST_CLASS, 1.0).channel
    for channel, equal in ((few, True), (enough, False)):
        counts = window(channel, 1000)
        unbiased = channel.unbiased(counts, 1000)[channel.q > 0]
        estimate = empirical_bayes(channel, counts, 1000)[channel.q > 0]
        # The projection moves symbols of nearly the same variance by nearly the same.
        moved = (unbiased - estimate)[estimate > 0]
        assert (np.ptp(moved) < 0.05) == equal


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
def test_both_are_distributions_that_follow_the_order_of_symbols(name: str, data: st.DataObject) -> None:
    channel, n = MECHANISMS[name].channel, data.draw(st.integers(1, 3000))
    r = data.draw(npst.arrays(np.float64, K, elements=st.floats(0, 1)).filter(lambda r: r.sum() > 0.1))
    counts = window(channel, n, r / r.sum(), seed=data.draw(st.integers(0, 9)))
    order = np.concatenate([data.draw(st.permutations(range(30))), data.draw(st.permutations(range(30, K)))])
    for estimator in (empirical_bayes, auto):
        estimate = estimator(channel, counts, n)
        assert (estimate >= 0).all()
        assert estimate.sum() == pytest.approx(1, abs=1e-9)
        assert estimator(channel, counts[order], n) == pytest.approx(estimate[order], abs=1e-6)


@pytest.mark.parametrize("name", MECHANISMS)
def test_auto_is_wls_where_n_suffices_and_empirical_bayes_where_it_is_small(name: str) -> None:
    channel = MECHANISMS[name].channel
    # The forecast falls with the root of n.
    most, least = (round(channel.expected_l1(equal_shares(K), 1) ** 2 / error**2) for error in AUTO_BETWEEN)
    counts = window(channel, most + 1)
    np.testing.assert_array_equal(auto(channel, counts, most + 1), wls(channel, counts, most + 1))
    counts = window(channel, least - 1)
    np.testing.assert_allclose(
        auto(channel, counts, least - 1), empirical_bayes(channel, counts, least - 1), atol=1e-12
    )
    n = (most * least) ** 0.5
    counts, n = window(channel, round(n)), round(n)
    middle = (wls(channel, counts, n) + empirical_bayes(channel, counts, n)) / 2
    np.testing.assert_allclose(auto(channel, counts, n), middle, atol=1e-3)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("error", [0.39, 0.41, 1.0, 3.9, 4.1])
def test_one_report_more_moves_auto_a_little(name: str, error: float) -> None:
    channel = MECHANISMS[name].channel
    n = round((channel.expected_l1(equal_shares(K), 1) / error) ** 2)
    counts = window(channel, n)
    one_more = np.zeros(K, dtype=np.int64)
    one_more[np.argsort(-counts)[: channel.supported]] = 1
    moved = np.abs(auto(channel, counts + one_more, n + 1) - auto(channel, counts, n)).max()
    assert moved < 4 * (1 + one_more.sum()) / (n * channel.gain.min())


def test_without_obfuscation_auto_is_the_histogram() -> None:
    counts = np.array([3, 0, 5, 1, 1, *[0] * 20])
    assert auto(RandomizedResponse(np.ones(25, dtype=np.bool_), None).channel, counts, 10) == pytest.approx(
        counts / 10, abs=1e-12
    )


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_reports_have_no_estimate(name: str) -> None:
    with pytest.raises(ValueError, match="n=0"):
        auto(MECHANISMS[name].channel, np.zeros(K, dtype=np.int64), 0)


@pytest.mark.parametrize("size", [625, 12_800])
def test_large_windows_have_small_grids(size: int) -> None:
    # A billion reports: without a bound, the counts of 12,800 bits would differ almost all.
    channel = UnaryEncoding(np.ones(size, dtype=np.bool_), 0.01, OUE_THETA).channel
    counts, n = window(channel, 10**9), 10**9
    estimate = empirical_bayes(channel, counts, n)
    assert estimate.sum() == pytest.approx(1, abs=1e-9)
    assert l2(channel, estimate, falling_shares(size)) < l2(channel, wls(channel, counts, n), falling_shares(size))

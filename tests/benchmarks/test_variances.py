"""Variances by closed forms against reports and against each other; and the maximum likelihood of bits."""

import math
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks import designs, means, pairs, sets
from benchmarks.bit_likelihood import maximize_bits
from tests.mechanisms.optima import numerical_optimum, optimality_gap
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.schemas.arrays import Floats


@pytest.mark.parametrize("epsilon", means.EPSILONS)
def test_the_worst_variance_of_hybrid_is_below_that_of_both_and_of_hm(epsilon: float) -> None:
    worst = means.of_hybrid(epsilon).max()
    assert worst == pytest.approx(means.of_hybrid(epsilon).min(), rel=1e-9)
    assert worst <= means.of_hm(epsilon).max() * (1.0 if epsilon >= 1 else 1.001)
    better = min(means.of_duchi(epsilon).max(), means.of_block(epsilon).max())
    assert worst <= (0.93 if 1 <= epsilon <= 2.5 else 1.0) * better


@pytest.mark.parametrize("number", [-1.0, 0.3])
def test_means_have_this_variance_and_their_intervals_cover(number: float) -> None:
    found = means.measure(1.5, number, windows=400)
    variance = float(means.of_hybrid(1.5, np.array([number]))[0])
    assert found.error == pytest.approx(variance, rel=5 * np.sqrt(2 / 400))
    assert 0.92 <= found.coverage <= 0.98


@pytest.mark.parametrize("epsilon", means.EPSILONS)
def test_several_numbers_of_a_user_have_more_error_than_one(epsilon: float) -> None:
    errors = dict(means.of_numbers(epsilon))
    assert errors["block"] < errors["PM, m = 1"] < errors["PM, m = 2"] < errors["PM, m = 3"]
    assert means.of_laplace(epsilon) > 1.8 * means.of_hybrid(epsilon).max()


@pytest.mark.parametrize("name", ["set-ss", "set-olh"])
def test_shares_of_sets_have_the_variance_of_the_closed_form(name: str) -> None:
    found = sets.measure(name, 40, 3, 1.0, 40, np.random.default_rng(1))
    # 40 items in 40 windows: a variance is known to 2 / sqrt(1600) at about two standard errors, or less.
    assert abs(found.ratio - 1) < 4 * math.sqrt(2 / 1600)
    assert abs(found.coverage - 0.96) < 0.03
    assert found.flagged == 0


def test_one_item_of_a_report_of_one_symbol_is_sampled_as_by_subset_selection() -> None:
    """With l = 1, pad-and-sample is randomized response or OUE, and subset selection has no more variance."""
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        assert sets.variance("set-ss", 100, 1, epsilon, 0.05) <= 1.001 * sets.padded_variance(100, 1, epsilon, 0.05)


def test_pckv_samples_one_of_the_padded_keys() -> None:
    # At a share of 1 and l = 1 a report by UE supports the key as often as its bit of the truth is kept: 1/2.
    e = np.exp(4.0)
    b = 2 / (e + 3)
    by_grr = (e + 1) / (e + 21) * (1 - (e + 1) / (e + 21)) * ((e + 21) / (e - 1)) ** 2
    assert pairs.pckv_variance(10, 1, 4.0, 1.0) == pytest.approx(min(by_grr, 0.25 / (0.5 - b) ** 2))


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
def test_shares_and_means_of_keys_are_no_worse_than_by_pckv(share: float) -> None:
    found = pairs.measure(20, 3, 2.0, share, 8_000, np.random.default_rng(2))
    assert found.variance == pytest.approx(found.closed, rel=0.05)
    assert 0.94 <= found.coverage <= 0.96
    assert found.closed < pairs.pckv_variance(20, 3, 2.0, share)


def test_block_designs_are_the_most_accurate_of_the_census_and_reports_agree_with_the_formula() -> None:
    found = designs.rows(2.0, windows=20)
    assert found["ubd"][0] == pytest.approx(0.55, abs=0.01)
    assert found["uss"][0] < 0.6
    assert found["urap, theta: auto"][2] < 0.95
    assert all(reports == pytest.approx(1, abs=0.15) for _, reports, _ in found.values())


Bits = npt.NDArray[np.uint8]


def bit_matrix(mechanism: UnaryEncoding) -> tuple[Bits, Floats]:
    """All possible reports as rows of bits, and Q[x, y], from Definition 5."""
    k, channel = mechanism.size, mechanism.channel
    reports = np.array(list(product([0, 1], repeat=k)), dtype=np.uint8)
    one = np.where(np.eye(k, dtype=np.bool_), channel.p, channel.q)[:, np.newaxis]
    Q = np.where(reports, one, 1 - one).prod(axis=2)
    possible = Q.max(axis=0) > 0
    return reports[possible], Q[:, possible]


BIT_MECHANISMS = {
    "oue": UnaryEncoding(np.ones(3, dtype=np.bool_), 3.0, OUE_THETA),
    "urap": UnaryEncoding(np.array([False, True, False, True]), 1.0, sue_theta(1.0)),
}


@pytest.mark.parametrize("name", BIT_MECHANISMS)
def test_the_maximum_of_bits_is_as_near_as_it_says(name: str) -> None:
    mechanism, rng = BIT_MECHANISMS[name], np.random.default_rng(6)
    reports, Q = bit_matrix(mechanism)
    payloads = mechanism.perturb(rng.choice(mechanism.size, 400, p=rng.dirichlet(np.ones(mechanism.size))), rng)
    bits = np.unpackbits(payloads, axis=1, count=mechanism.size)
    counts = np.asarray((bits[:, np.newaxis] == reports).all(axis=2).sum(axis=0))
    fit = maximize_bits(mechanism, payloads, gap=1e-7)
    assert fit.distribution.sum() == pytest.approx(1)
    assert optimality_gap(fit.distribution, Q, counts) == pytest.approx(fit.gap, abs=1e-12)
    assert fit.gap < 1e-7
    assert fit.distribution == pytest.approx(numerical_optimum(Q, counts), abs=1e-3)

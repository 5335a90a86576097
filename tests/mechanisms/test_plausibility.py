"""Counts that no honest reports give: the level of the tests, and which forged ones are seen."""

import numpy as np
import pytest
from scipy import stats

from tests.mechanisms.plausibility import BITS, DISTRIBUTIONS, MECHANISMS, SYMBOLS, K, mask
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.inference.plausibility import MIN_NOISE_VARIANCE, Fit, counts_p_values, fit_counts
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.schemas.arrays import Counts, Floats


def honest_p_values(mechanism: PureMechanism, r: Floats, n: int, windows: int, seed: int) -> Floats:
    """The p-values of windows of honest reports."""
    rng = np.random.default_rng(seed)
    reports = mechanism.perturb(rng.choice(len(r), windows * n, p=r), rng)
    counts = [mechanism.statistic(reports[first : first + n]) for first in range(0, windows * n, n)]
    fits = [fit_counts(mechanism.channel, window, n) for window in counts]
    return np.array([fit.p_value for fit in fits if fit is not None])


def p_value(mechanism: PureMechanism, counts: Counts, n: int) -> float:
    fit = fit_counts(mechanism.channel, counts, n)
    assert fit is not None
    return fit.p_value


def expected(mechanism: PureMechanism, r: Floats, n: int) -> Counts:
    """The counts of n honest reports, all as expected."""
    return np.rint(n * mechanism.channel.support_probability(r)).astype(np.int64)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_level_is_exact_at_a_corner_of_the_simplex(name: str) -> None:
    # All constraints are at their boundary there, and the conservative p-value becomes an exact one. Only windows in
    # which no constraint holds, with p = 1, are short of uniform: under symbol reports, at most 2^-4 of them here.
    r, windows = DISTRIBUTIONS["one sensitive"], 600
    p_values = honest_p_values(MECHANISMS[name], r, n=1500, windows=windows, seed=2)
    unconstrained = (p_values == 1).mean()
    assert unconstrained < (2**-4 if name in SYMBOLS else 1e-9)
    for level in (0.1, 0.3):
        rate = (p_values < level).mean()
        assert abs(rate - level * (1 - unconstrained)) < 3.5 * np.sqrt(level * (1 - level) / windows)


@pytest.mark.parametrize("name", BITS)
def test_inside_the_simplex_the_sum_alone_is_tested(name: str) -> None:
    # The estimates then sum to one but for Var = sum_z v_z, v the variance given the values, and r does not move.
    mechanism, r, n = MECHANISMS[name], DISTRIBUTIONS["uniform"], 3000
    assert stats.kstest(honest_p_values(mechanism, r, n, 300, seed=3), "uniform").pvalue > 1e-3
    # 200,000 reports, of which one symbol's count is 200 too high: lambda is too small to change v.
    n = 200_000
    counts = expected(mechanism, r, n) + 200 * np.eye(K, dtype=np.int64)[0]
    surplus = mechanism.channel.unbiased(counts, n).sum() - 1
    fit = fit_counts(mechanism.channel, counts, n)
    assert fit is not None
    assert fit.degrees == 1
    assert fit.statistic == pytest.approx(surplus**2 / mechanism.channel.variance_given_values(r, n).sum(), rel=0.02)


@pytest.mark.parametrize("name", BITS)
@pytest.mark.parametrize("forged", ["all", "none", "own alone"])
def test_bits_that_are_not_drawn_are_seen(name: str, forged: str) -> None:
    # 5 % of the devices set all sensitive bits, or none, or that of a popular symbol alone.
    mechanism, n, rng = MECHANISMS[name], 100_000, np.random.default_rng(7)
    counts = mechanism.statistic(mechanism.perturb(rng.choice(K, n, p=DISTRIBUTIONS["zipf"]), rng))
    bits = {"all": mechanism.sensitive, "none": np.zeros(K, dtype=np.bool_), "own alone": mask(1)}[forged]
    assert p_value(mechanism, counts, n) > 0.01
    assert p_value(mechanism, counts + n // 20 * bits, n + n // 20) < 1e-6


def test_symbols_sent_without_obfuscation_are_seen_if_they_drain_the_floor() -> None:
    # 3 % of the reports are the first symbol, without noise. The others' counts fall by 3 %.
    mechanism, n = MECHANISMS["rr"], 1_000_000

    def forged(truth: str) -> Counts:
        counts = expected(mechanism, DISTRIBUTIONS[truth], n * 97 // 100)
        counts[0] += n - counts.sum()
        return counts

    assert p_value(mechanism, forged("every other"), n) < 1e-6
    assert p_value(mechanism, forged("uniform"), n) == 1


def test_windows_without_noise_have_no_p_value() -> None:
    channel = RandomizedResponse(np.ones(3, dtype=np.bool_), None).channel
    assert counts_p_values(channel, np.array([[5, 3, 2], [900, 50, 50]]), np.array([10, 1000])) == [None, None]


@pytest.mark.parametrize("name", MECHANISMS)
def test_few_reports_have_no_fit(name: str) -> None:
    channel = MECHANISMS[name].channel
    q = channel.q[0]
    enough = int(np.ceil(MIN_NOISE_VARIANCE / (q * (1 - q))))
    for n in (0, 1, enough - 1, enough):
        fit = fit_counts(channel, n * np.eye(K, dtype=np.int64)[0], n)
        assert (fit is None) == (n < enough)


def test_symbols_by_hand() -> None:
    # RR with |Z| = 4 and E = 5: p = 5/8 and q = 1/8, so of 800 reports at least 100 of each symbol are expected.
    channel = RandomizedResponse(mask(4, 4), np.log(5)).channel
    # Three are below and held there, and the first takes the other 500: (40^2)/500 + (10^2 + 15^2 + 15^2)/100 = 8.7.
    assert_fit(fit_counts(channel, np.array([540, 90, 85, 85]), 800), 8.7, 3)
    # One is below. The others share 700 as they were counted, 300:240:200 of 740: 40^2/700 + 40^2/100.
    assert_fit(fit_counts(channel, np.array([300, 240, 200, 60]), 800), 40**2 / 700 + 16, 1)
    # None is below.
    assert_fit(fit_counts(channel, np.array([300, 200, 199, 101]), 800), 0.0, 0)


def assert_fit(fit: Fit | None, statistic: float, degrees: int) -> None:
    assert fit is not None
    assert fit.statistic == pytest.approx(statistic, rel=1e-9, abs=1e-9)
    assert fit.degrees == degrees
    assert fit.p_value == (pytest.approx(stats.chi2.sf(statistic, degrees), rel=1e-6) if degrees else 1)

"""Counts that no honest reports give: statistics against exact references, and their false alarms."""

import math
from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from uldp.mechanisms.channel import Channel
from uldp.mechanisms.mechanism import Mechanism
from uldp.mechanisms.plausibility import MIN_NOISE_VARIANCE, Fit, excess_p_value, fit_counts, plausible_bit_totals
from uldp.mechanisms.randomized_response import RandomizedResponse
from uldp.mechanisms.unary_encoding import OUE_THETA, UnaryEncoding, sue_theta
from uldp.schemas.arrays import Counts, Floats, Mask

K = 8


def mask(v: int, size: int = K) -> Mask:
    """The first v symbols are sensitive."""
    return np.arange(size) < v


MECHANISMS: dict[str, Mechanism] = {
    "rr": RandomizedResponse(mask(K), 1.0),
    "urr": RandomizedResponse(mask(5), 1.0),
    "sue": UnaryEncoding(mask(K), 1.0, sue_theta(1.0)),
    "oue": UnaryEncoding(mask(K), 1.0, OUE_THETA),
    "urap": UnaryEncoding(mask(5), 1.0, sue_theta(1.0)),
    "uoue": UnaryEncoding(mask(5), 1.0, OUE_THETA),
}
SYMBOLS, BITS = ("rr", "urr"), ("sue", "oue", "urap", "uoue")
ZIPF = 1 / np.arange(1, K + 1) ** 2
DISTRIBUTIONS: dict[str, Floats] = {
    "uniform": np.full(K, 1 / K),
    "one sensitive": np.eye(K)[0],
    "one non-sensitive": np.eye(K)[-1],
    "zipf": ZIPF / ZIPF.sum(),
    "every other": np.tile([0.0, 0.25], K // 2),
}


def honest_p_values(mechanism: Mechanism, r: Floats, n: int, windows: int, seed: int) -> Floats:
    """The p-values of windows of honest reports."""
    rng = np.random.default_rng(seed)
    reports = mechanism.perturb(rng.choice(len(r), windows * n, p=r), rng)
    counts = [mechanism.support(reports[first : first + n]) for first in range(0, windows * n, n)]
    fits = [fit_counts(mechanism.channel, window, n) for window in counts]
    return np.array([fit.p_value for fit in fits if fit is not None])


def p_value(mechanism: Mechanism, counts: Counts, n: int) -> float:
    fit = fit_counts(mechanism.channel, counts, n)
    assert fit is not None
    return fit.p_value


def expected(mechanism: Mechanism, r: Floats, n: int) -> Counts:
    """The counts of n honest reports, all as expected."""
    return np.rint(n * mechanism.channel.support_probability(r)).astype(np.int64)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("truth", DISTRIBUTIONS)
def test_honest_windows_are_flagged_no_more_often_than_promised(name: str, truth: str) -> None:
    windows = 300
    p_values = honest_p_values(MECHANISMS[name], DISTRIBUTIONS[truth], n=400, windows=windows, seed=1)
    assert len(p_values) == windows
    # z < 3.5, one-sided: 3.5 sd is 0.020 and 0.044.
    for level in (0.01, 0.05):
        assert (p_values < level).mean() <= level + 3.5 * np.sqrt(level * (1 - level) / windows)


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


#: Bits of other channels than unary encoding's: unequal ones, p + q on either side of one.
UNEQUAL = Channel(np.array([0.9, 0.7, 0.5, 0.01, 0.5]), np.array([0.25, 0.6, 0.1, 0.0, 0.0]), independent_bits=True)


def nearest_on_simplex(x: Floats, covariance: Floats) -> tuple[Floats, float]:
    """The r of the simplex with the least (x - r)^T V^-1 (x - r), and that distance, by trying all sets of zeros.

    The conditions of Karush, Kuhn and Tucker are r = x + V M t, where M holds a column e_z for each r_z held at zero
    and one of ones for the sum, and t >= 0 for all but the sum. V is positive definite, so one r alone meets them.
    """
    size, found = len(x), []
    for zeros in product([False, True], repeat=size):
        if all(zeros):
            continue
        M = np.column_stack([np.eye(size)[:, zeros], np.ones(size)])
        held = np.append(np.zeros(sum(zeros)), 1.0)
        t = np.linalg.solve(M.T @ covariance @ M, held - M.T @ x)
        r = np.where(zeros, 0.0, x + covariance @ M @ t)
        if (r >= 0).all() and (t[:-1] >= 0).all():
            found.append((r, float(t @ M.T @ covariance @ M @ t)))
    (nearest,) = found
    return nearest


def gls_fit(channel: Channel, counts: Counts, n: int) -> tuple[float, int]:
    """Statistic and degrees of freedom by generalized least squares, without the library's short cut.

    It minimizes n (r-hat - r)^T V^-1 (r-hat - r) over the simplex, where V is the i.i.d. covariance at the last
    minimum, until that stays, half a step at a time. A symbol without noise that nobody reports is 0.
    """
    seen = (channel.q > 0) | (counts > 0)
    x, r = channel.unbiased(counts, n)[seen], seen / seen.sum()
    for _ in range(60):
        s, u = channel.covariance_factors(r)
        nearest, statistic = nearest_on_simplex(x, (np.diag(s[seen]) - np.outer(u[seen], u[seen])) / n)
        step = nearest - r[seen]
        r[seen] += step / 2
    assert np.abs(step).max() < 1e-9
    return statistic, 1 + int(np.count_nonzero(nearest[channel.q[seen] > 0] == 0))


@pytest.mark.parametrize(
    "channel",
    [
        *(UnaryEncoding(mask(v, 5), 2.0, theta).channel for v in (1, 3, 5) for theta in (0.3, sue_theta(2.0), 0.95)),
        UnaryEncoding(mask(3, 5), 6.0, OUE_THETA).channel,
        UNEQUAL,
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_bits_are_those_of_generalized_least_squares(channel: Channel, seed: int) -> None:
    # Counts are far from honest ones, and one symbol without noise is never reported.
    n, rng = 10_000, np.random.default_rng(seed)
    counts = rng.binomial(n, channel.support_probability(rng.dirichlet(np.full(5, 0.4))) * rng.uniform(0.5, 1.1, 5))
    counts[4] *= channel.q[4] > 0
    statistic, degrees = gls_fit(channel, counts, n)
    fit = fit_counts(channel, counts, n)
    assert fit is not None
    assert fit.statistic == pytest.approx(statistic, rel=1e-4)
    assert fit.degrees == degrees


def test_bits_left_of_a_pole() -> None:
    # No noisy bit is set, and r of the fourth symbol, 1/(1 + 99 lambda), is infinite at a lambda inside the interval.
    n, counts = 10_000, np.array([0, 0, 0, 100, 0])
    fit = fit_counts(UNEQUAL, counts, n)
    statistic, degrees = gls_fit(UNEQUAL, counts, n)
    assert fit is not None
    assert fit.statistic == pytest.approx(statistic, rel=1e-4)
    assert fit.degrees == degrees


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("theta", [0.1, OUE_THETA, 0.9])
@pytest.mark.parametrize("count", [0, 3_000, 100_000, 200_000])
def test_equal_bits_by_hand(epsilon: float, theta: float, count: int) -> None:
    # All symbols are alike, so the nearest r is uniform.
    channel, n = UnaryEncoding(mask(3, 3), epsilon, theta).channel, 200_000
    counts = np.full(3, count)
    x, v = channel.unbiased(counts, n)[0], channel.variance_given_values(np.full(3, 1 / 3), n)[0]
    assert_fit(fit_counts(channel, counts, n), 3 * (x - 1 / 3) ** 2 / v, 1)
    # So it is beside 1000 symbols that have no noise and that nobody reports.
    p, q = np.pad(channel.p, (0, 1000), constant_values=0.01), np.pad(channel.q, (0, 1000))
    assert_fit(
        fit_counts(Channel(p, q, independent_bits=True), np.pad(counts, (0, 1000)), n), 3 * (x - 1 / 3) ** 2 / v, 1
    )


@given(
    name=st.sampled_from(["urr", "urap", "uoue"]),
    shares=st.lists(st.integers(0, 40), min_size=K, max_size=K).filter(lambda shares: sum(shares) > 0),
    apart=st.integers(0, 2),
)
def test_only_the_sum_of_non_sensitive_counts_matters(name: str, shares: list[int], apart: int) -> None:
    # No noise falls on them, so whatever they are among themselves is a possible distribution.
    mechanism = MECHANISMS[name]
    counts = np.array(shares) * 10
    n = int(counts.sum()) + 400 * mechanism.channel.independent_bits
    other = counts.copy()
    other[5:] = counts[5:].sum() * np.eye(3, dtype=np.int64)[apart]
    one, two = fit_counts(mechanism.channel, counts, n), fit_counts(mechanism.channel, other, n)
    assert (one is None) == (two is None)
    if one is not None and two is not None:
        assert_fit(one, two.statistic, two.degrees)


def test_a_large_domain() -> None:
    # The statistic is between the noise of none and of all symbols, and fits: no loss of precision, no warning.
    mechanism = UnaryEncoding(mask(2432, 12_800), 6.0, sue_theta(6.0))
    channel, n, rng = mechanism.channel, 240_000, np.random.default_rng(5)
    held = rng.multinomial(n, rng.dirichlet(np.full(12_800, 0.05)))
    counts = rng.binomial(held, channel.p) + rng.binomial(n - held, channel.q)
    assert 0.01 < p_value(mechanism, counts, n) < 0.99
    assert p_value(mechanism, counts - rng.binomial(counts, 0.01), n) < 1e-6


def test_symbols_that_are_avoided_are_seen() -> None:
    mechanism, n, rng = MECHANISMS["rr"], 10_000, np.random.default_rng(6)
    reports = mechanism.perturb(rng.choice(K, n, p=DISTRIBUTIONS["uniform"]), rng)
    assert p_value(mechanism, mechanism.support(reports), n) > 0.01
    # Every third device that drew the last symbol draws another.
    avoiding = (reports == K - 1) & (rng.random(n) < 1 / 3)
    reports[avoiding] = rng.integers(0, K - 1, np.count_nonzero(avoiding), dtype=np.uint32)
    assert p_value(mechanism, mechanism.support(reports), n) < 1e-6


@pytest.mark.parametrize("name", BITS)
@pytest.mark.parametrize("forged", ["all", "none", "own alone"])
def test_bits_that_are_not_drawn_are_seen(name: str, forged: str) -> None:
    # 5 % of the devices set all sensitive bits, or none, or that of a popular symbol alone.
    mechanism, n, rng = MECHANISMS[name], 100_000, np.random.default_rng(7)
    counts = mechanism.support(mechanism.perturb(rng.choice(K, n, p=DISTRIBUTIONS["zipf"]), rng))
    bits = {"all": mechanism.sensitive, "none": np.zeros(K, dtype=np.bool_), "own alone": mask(1)}[forged]
    assert p_value(mechanism, counts, n) > 0.01
    assert p_value(mechanism, counts + n // 20 * bits, n + n // 20) < 1e-6


@pytest.mark.parametrize("name", ["urap", "uoue"])
def test_estimates_whose_sum_is_far_from_one_are_seen(name: str) -> None:
    # Every count is possible by itself: the non-sensitive ones are those of twice as many devices.
    mechanism, n = MECHANISMS[name], 40_000
    counts = expected(mechanism, DISTRIBUTIONS["uniform"], n)
    assert p_value(mechanism, counts, n) > 0.9
    assert p_value(mechanism, counts * np.where(mechanism.sensitive, 1, 2), n) < 1e-6


@pytest.mark.parametrize("name", MECHANISMS)
def test_values_that_are_forged_are_not_seen(name: str) -> None:
    # 3 % of the devices claim the first symbol and follow the mechanism: it is an honest window of other values.
    mechanism, n = MECHANISMS[name], 1_000_000
    claimed = 0.97 * DISTRIBUTIONS["every other"] + 0.03 * np.eye(K)[0]
    assert p_value(mechanism, expected(mechanism, claimed, n), n) > 0.9


def test_symbols_sent_without_obfuscation_are_seen_if_they_drain_the_floor() -> None:
    # 3 % of the reports are the first symbol, without noise. The others' counts fall by 3 %.
    mechanism, n = MECHANISMS["rr"], 1_000_000

    def forged(truth: str) -> Counts:
        counts = expected(mechanism, DISTRIBUTIONS[truth], n * 97 // 100)
        counts[0] += n - counts.sum()
        return counts

    assert p_value(mechanism, forged("every other"), n) < 1e-6
    assert p_value(mechanism, forged("uniform"), n) == 1


@pytest.mark.parametrize("name", MECHANISMS)
def test_few_reports_have_no_fit(name: str) -> None:
    channel = MECHANISMS[name].channel
    q = channel.q[0]
    enough = int(np.ceil(MIN_NOISE_VARIANCE / (q * (1 - q))))
    for n in (0, 1, enough - 1, enough):
        fit = fit_counts(channel, n * np.eye(K, dtype=np.int64)[0], n)
        assert (fit is None) == (n < enough)


def test_without_obfuscation_everything_fits() -> None:
    identity = RandomizedResponse(mask(K), None)
    assert fit_counts(identity.channel, np.full(K, 1000), 1000 * K) is None


def test_counts_of_another_domain_are_refused() -> None:
    for name in MECHANISMS:
        with pytest.raises(ValueError, match="shape"):
            fit_counts(MECHANISMS[name].channel, np.full(K + 1, 1000), 1000 * (K + 1))


def totals_by_enumeration(mechanism: UnaryEncoding) -> Floats:
    """Pr[z, t]: the probability of t set bits if z is true, over all reports."""
    k, channel = mechanism.size, mechanism.channel
    reports = np.array(list(product([0, 1], repeat=k)))
    one = np.where(np.eye(k, dtype=np.bool_), channel.p, channel.q)[:, np.newaxis]
    Q = np.where(reports, one, 1 - one).prod(axis=2)
    return np.stack([Q[:, reports.sum(axis=1) == total].sum(axis=1) for total in range(k + 1)], axis=1)


def totals_by_convolution(mechanism: UnaryEncoding) -> Floats:
    """The same, one bit after another, for one symbol of each kind."""
    channel = mechanism.channel
    rows = []
    for z in np.unique(mechanism.sensitive, return_index=True)[1]:
        row = np.ones(1)
        for bit in np.where(np.arange(mechanism.size) == z, channel.p, channel.q):
            row = np.convolve(row, [1 - bit, bit])
        rows.append(row)
    return np.stack(rows)


def assert_tightest(bounds: tuple[int, int], totals: Floats, tail: float) -> None:
    """Hold the bounds against Pr[z, t], shape (symbols, totals)."""

    def worst_below(low: int) -> float:
        return float(totals[:, : max(low, 0)].sum(axis=1).max())

    def worst_above(high: int) -> float:
        return float(totals[:, max(high + 1, 0) :].sum(axis=1).max())

    low, high = bounds
    assert worst_below(low) <= tail / 2 < worst_below(low + 1)
    assert worst_above(high) <= tail / 2 < worst_above(high - 1)


@pytest.mark.parametrize("v", [1, 2, 5, 7])
@pytest.mark.parametrize("theta", [OUE_THETA, sue_theta(3.0), 0.95])
@pytest.mark.parametrize("tail", [0.9, 0.1, 1e-3, 1e-6])
def test_bounds_of_totals_are_the_tightest(v: int, theta: float, tail: float) -> None:
    mechanism = UnaryEncoding(mask(v, 7), 3.0, theta)
    assert_tightest(plausible_bit_totals(mechanism, tail), totals_by_enumeration(mechanism), tail)


@pytest.mark.parametrize("v", [200, 400])
@pytest.mark.parametrize("tail", [1e-3, 1e-6, 1e-9])
def test_bounds_of_totals_of_many_bits(v: int, tail: float) -> None:
    mechanism = UnaryEncoding(mask(v, 400), 2.0, sue_theta(2.0))
    assert_tightest(plausible_bit_totals(mechanism, tail), totals_by_convolution(mechanism), tail)


@pytest.mark.parametrize("name", BITS)
@pytest.mark.parametrize("truth", ["one sensitive", "one non-sensitive"])
def test_honest_totals_are_outside_as_often_as_the_tail_says(name: str, truth: str) -> None:
    mechanism, n, tail, rng = MECHANISMS[name], 50_000, 0.1, np.random.default_rng(8)
    assert isinstance(mechanism, UnaryEncoding)
    reports = mechanism.perturb(rng.choice(K, n, p=DISTRIBUTIONS[truth]), rng)
    totals = np.bitwise_count(reports).sum(axis=1)
    low, high = plausible_bit_totals(mechanism, tail)
    limit = 3.5 * np.sqrt(tail / 2 * (1 - tail / 2) / n)
    assert (totals < low).mean() <= tail / 2 + limit
    assert (totals > high).mean() <= tail / 2 + limit


@given(n=st.integers(0, 10**7), data=st.data(), tail=st.floats(1e-9, 0.5))
def test_excess_is_the_upper_tail_of_the_binomial(n: int, data: st.DataObject, tail: float) -> None:
    observed = data.draw(st.integers(0, min(n, 3 * int(n * tail) + 10)))
    expected = stats.binom.sf(observed - 1, n, tail)
    assert excess_p_value(observed, n, tail) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@given(n=st.integers(1, 10**6), data=st.data(), tail=st.floats(1e-9, 1e-3))
def test_excess_is_a_sum_of_probabilities(n: int, data: st.DataObject, tail: float) -> None:
    # From 2 n tail on, each term is at most about half of the one before, and 64 of them are the sum.
    observed = data.draw(st.integers(min(n, 2 * int(n * tail) + 2), min(n, 2 * int(n * tail) + 40)))
    with localcontext() as exact:
        exact.prec = 40
        p, q = Decimal(tail), 1 - Decimal(tail)
        terms = [math.comb(n, observed) * p**observed * q ** (n - observed)]
        for k in range(observed, min(n, observed + 64)):
            terms.append(terms[-1] * (n - k) / (k + 1) * p / q)
        expected = float(sum(terms))
    assert excess_p_value(observed, n, tail) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_excess_by_hand() -> None:
    assert excess_p_value(0, 3, 0.1) == 1
    assert excess_p_value(1, 3, 0.1) == pytest.approx(1 - 0.9**3)
    assert excess_p_value(3, 3, 0.1) == pytest.approx(0.001)


def test_improbable_arguments_are_refused() -> None:
    for tail in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="tail"):
            plausible_bit_totals(UnaryEncoding(mask(3), 1.0, 0.5), tail)
        with pytest.raises(ValueError, match="tail"):
            excess_p_value(1, 10, tail)
    for observed in (-1, 11):
        with pytest.raises(ValueError, match="of 10 reports"):
            excess_p_value(observed, 10, 0.1)

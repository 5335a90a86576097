"""The fit of counts against results by hand and against generalized least squares."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from tests.mechanisms.plausibility import mask
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.mechanisms.inference.plausibility import Fit, fit_counts
from uldp.mechanisms.laws.channel import Channel
from uldp.schemas.arrays import Counts, Floats


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
        covariance = channel.covariance(r)(np.eye(channel.size))
        nearest, statistic = nearest_on_simplex(x, covariance[np.ix_(seen, seen)] / n)
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

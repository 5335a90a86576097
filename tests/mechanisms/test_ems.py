"""EMS: steps against brute force, errors against repetition and against a full bootstrap, and the bias."""

import numpy as np
import pytest

from uldp.mechanisms.estimators.ems import TOLERANCE, BinChannel, EmsErrors, em_step, ems, smooth
from uldp.mechanisms.families.block.randomizer import Block
from uldp.schemas.arrays import Counts, Floats

CHANNELS = [BinChannel(1, 1, 0.3), BinChannel(4, 3, 0.5), BinChannel(4, 9, 0.7), BinChannel(32, 7, 0.2)]


def brute_laws(channel: BinChannel) -> Floats:
    """Return Pr(output | bin), shape (G, G+W), from the definitions of Block and of rounding at random."""
    G, W = channel.bins, channel.width
    points = np.full((G + 1, G + W), channel.noise / (G + W))
    for i in range(G + 1):
        points[i, i : i + W] += (1 - channel.noise) / W
    laws: Floats = (points[:-1] + points[1:]) / 2
    return laws


def channel_of(epsilon: float, bins: int) -> BinChannel:
    block = Block(epsilon, bins)
    return BinChannel(block.grid, block.width, block.noise)


def hump(bins: int) -> Floats:
    """Return shares that are neither flat nor symmetric."""
    t = (np.arange(bins) + 0.5) / bins
    shares: Floats = t * (1 - t) ** 4 / np.sum(t * (1 - t) ** 4)
    return shares


def draw(channel: BinChannel, shares: Floats, n: int, rng: np.random.Generator) -> Counts:
    p = channel.outputs(shares)
    return rng.multinomial(n, p / p.sum())


@pytest.mark.parametrize("channel", CHANNELS)
def test_the_operators_are_the_laws_of_bins(channel: BinChannel) -> None:
    laws, rng = brute_laws(channel), np.random.default_rng(1)
    x, w = rng.dirichlet(np.ones(channel.bins)), rng.random(channel.bins + channel.width)
    np.testing.assert_allclose(laws.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(channel.outputs(np.eye(channel.bins)), laws, atol=1e-15)
    np.testing.assert_allclose(channel.outputs(x), x @ laws, rtol=1e-13)
    np.testing.assert_allclose(channel.averages(w), laws @ w, rtol=1e-13)


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_step_is_em_report_by_report(channel: BinChannel) -> None:
    laws, rng = brute_laws(channel), np.random.default_rng(2)
    cells = draw(channel, hump(channel.bins), 200, rng)
    x = rng.dirichlet(np.ones(channel.bins))
    posteriors = [laws[:, j] * x / (laws[:, j] @ x) for j in np.repeat(np.arange(len(cells)), cells)]
    np.testing.assert_allclose(em_step(channel, cells / 200, x), np.mean(posteriors, axis=0), rtol=1e-12)


def test_steps_without_smoothing_reach_the_maximum_of_the_likelihood() -> None:
    channel = BinChannel(2, 1, 0.4)
    cells = draw(channel, np.array([0.8, 0.2]), 1000, np.random.default_rng(3))
    x = np.full(2, 0.5)
    for _ in range(2000):
        x = em_step(channel, cells / 1000, x)
    candidates = np.linspace(0, 1, 10_001)[1:-1]
    likelihoods = [cells @ np.log(channel.outputs(np.array([c, 1 - c]))) for c in candidates]
    assert x[0] == pytest.approx(candidates[np.argmax(likelihoods)], abs=1e-4)


def test_smoothing_is_the_binomial_kernel_and_keeps_the_sum() -> None:
    assert smooth(np.array([0.0, 0, 4, 0, 0])).tolist() == [0, 1, 2, 1, 0]
    assert smooth(np.array([4.0, 0, 0])).tolist() == [3, 1, 0]
    assert smooth(np.array([4.0])).tolist() == [4]


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 50.0])
def test_ems_alternates_em_and_smoothing_until_the_likelihood_rests(epsilon: float) -> None:
    channel, n = channel_of(epsilon, 16), 5000
    cells = draw(channel, hump(16), n, np.random.default_rng(4))
    fit = ems(channel, cells, n)
    laws, x, likelihoods = brute_laws(channel), np.full(16, 1 / 16), []
    for _ in range(fit.steps):
        likelihoods.append(cells @ np.log(x @ laws))
        x = smooth(x * (laws @ (cells / n / (x @ laws))))
    likelihoods.append(cells @ np.log(x @ laws))
    assert fit.converged
    np.testing.assert_allclose(fit.shares, x, rtol=1e-6, atol=1e-12)
    assert fit.shares.sum() == pytest.approx(1, abs=1e-12)
    changes = np.abs(np.diff(likelihoods))
    assert changes[-1] < TOLERANCE
    assert (changes[:-1] >= TOLERANCE).all()


def test_more_reports_give_a_better_estimate() -> None:
    channel, rng, truth = channel_of(1.0, 256), np.random.default_rng(5), hump(256)
    errors = [np.abs(ems(channel, draw(channel, truth, n, rng), n).shares - truth).sum() for n in (10**3, 10**7)]
    assert errors[1] < errors[0] / 4


@pytest.mark.parametrize("n", [1, 2, 10])
def test_a_few_reports_have_finite_errors(n: int) -> None:
    channel = channel_of(1.0, 64)
    cells = draw(channel, hump(64), n, np.random.default_rng(6))
    errors = EmsErrors(channel, cells, n, ems(channel, cells, n))
    assert np.isfinite(errors.root_mean_square(np.eye(64))).all()


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_stderr_is_the_spread_of_repetitions(epsilon: float) -> None:
    channel, n, rng, repetitions = channel_of(epsilon, 32), 10**5, np.random.default_rng(7), 200
    functions = np.tril(np.ones((32, 32)))[[5, 10, 16, 22]]  # shares below four numbers
    estimates, stderrs = [], []
    for _ in range(repetitions):
        cells = draw(channel, hump(32), n, rng)
        fit = ems(channel, cells, n)
        estimates.append(functions @ fit.shares)
        stderrs.append(EmsErrors(channel, cells, n, fit).stderr(functions))
    # The spread of 200 normal numbers has a relative standard error of 1/sqrt(400) = .05.
    assert np.std(estimates, axis=0) / np.mean(stderrs, axis=0) == pytest.approx(np.ones(4), abs=4 * 0.05)


@pytest.mark.slow
def test_stderr_is_that_of_a_bootstrap_that_repeats_all_of_ems() -> None:
    channel, n, rng = channel_of(1.0, 32), 10**5, np.random.default_rng(8)
    cells = draw(channel, hump(32), n, rng)
    functions = np.tril(np.ones((32, 32)))[[5, 10, 16, 22]]
    stderr = EmsErrors(channel, cells, n, ems(channel, cells, n)).stderr(functions)
    again = [functions @ ems(channel, resample, n).shares for resample in rng.multinomial(n, cells / n, size=200)]
    # As above.
    assert np.std(again, axis=0) / stderr == pytest.approx(np.ones(4), abs=4 * 0.05)


def test_bias_is_a_part_of_the_bias_at_a_narrow_peak() -> None:
    bins, n = 64, 10**9
    channel = channel_of(1.0, bins)
    truth = np.exp(-((np.arange(bins) - 20.0) ** 2) / 2 / 2**2)
    truth /= truth.sum()
    cells = draw(channel, truth, n, np.random.default_rng(9))
    fit = ems(channel, cells, n)
    peak = np.eye(bins)[[20]]
    bias, true_bias = EmsErrors(channel, cells, n, fit).bias(peak)[0], (fit.shares - truth)[20]
    # Smoothing takes from the peak. At 1e9 reports, chance is a hundredth of that.
    assert true_bias < bias < 0

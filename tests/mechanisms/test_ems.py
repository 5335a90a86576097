"""EMS: steps against brute force, fixed points, the choice of smoothing, and errors against repetition."""

import numpy as np
import pytest

from uldp.mechanisms.estimators.ems import (
    SMOOTHINGS,
    TOLERANCE,
    GridChannel,
    choose_smoothing,
    em_step,
    ems,
    responses,
    smooth,
    smooth_partly,
    stderr,
)
from uldp.mechanisms.families.block.randomizer import Block
from uldp.schemas.arrays import Counts, Floats

CHANNELS = [
    GridChannel(1, 1, 0.3, of_bins=True),
    GridChannel(4, 3, 0.5, of_bins=True),
    GridChannel(4, 9, 0.7, of_bins=True),
    GridChannel(32, 7, 0.2, of_bins=True),
]


def brute_laws(channel: GridChannel) -> Floats:
    """Return Pr(output | bin), shape (G, G+W), from the definitions of Block and of rounding at random."""
    G, W = channel.bins, channel.width
    points = np.full((G + 1, G + W), channel.noise / (G + W))
    for i in range(G + 1):
        points[i, i : i + W] += (1 - channel.noise) / W
    laws: Floats = (points[:-1] + points[1:]) / 2
    return laws


def fit(channel: GridChannel, cells: Counts, smoothing: float) -> Floats:
    (shares,) = ems(channel, cells[np.newaxis], np.array([smoothing]))
    return np.asarray(shares)


def channel_of(epsilon: float, bins: int) -> GridChannel:
    block = Block(epsilon, bins)
    return GridChannel(block.grid, block.width, block.noise, of_bins=True)


def hump(bins: int) -> Floats:
    """Return shares that are neither flat nor symmetric."""
    t = (np.arange(bins) + 0.5) / bins
    shares: Floats = t * (1 - t) ** 4 / np.sum(t * (1 - t) ** 4)
    return shares


def draw(channel: GridChannel, shares: Floats, n: int, rng: np.random.Generator) -> Counts:
    p = channel.outputs(shares)
    return rng.multinomial(n, p / p.sum())


@pytest.mark.parametrize("channel", CHANNELS)
def test_the_operators_are_the_laws_of_bins(channel: GridChannel) -> None:
    laws, rng = brute_laws(channel), np.random.default_rng(1)
    x, w = rng.dirichlet(np.ones(channel.bins)), rng.random(channel.bins + channel.width)
    np.testing.assert_allclose(laws.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(channel.outputs(np.eye(channel.bins)), laws, atol=1e-15)
    np.testing.assert_allclose(channel.outputs(x), x @ laws, rtol=1e-13)
    np.testing.assert_allclose(channel.averages(w), laws @ w, rtol=1e-13)


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_step_is_em_report_by_report(channel: GridChannel) -> None:
    laws, rng = brute_laws(channel), np.random.default_rng(2)
    cells = draw(channel, hump(channel.bins), 200, rng)
    x = rng.dirichlet(np.ones(channel.bins))
    posteriors = [laws[:, j] * x / (laws[:, j] @ x) for j in np.repeat(np.arange(len(cells)), cells)]
    np.testing.assert_allclose(
        em_step(channel, cells / 200, x, channel.outputs(x)), np.mean(posteriors, axis=0), rtol=1e-12
    )


def test_smoothing_is_the_binomial_kernel_and_keeps_the_sum() -> None:
    assert smooth(np.array([0.0, 0, 4, 0, 0])).tolist() == [0, 1, 2, 1, 0]
    assert smooth(np.array([4.0, 0, 0])).tolist() == [3, 1, 0]
    assert smooth(np.array([4.0])).tolist() == [4]


@pytest.mark.parametrize("channel", [GridChannel(4, 3, 0.5), GridChannel(4, 9, 0.7), GridChannel(4, 1, 0.2)])
def test_the_operators_are_the_laws_of_points(channel: GridChannel) -> None:
    G, W = channel.bins, channel.width
    laws = np.array(
        [[channel.floor + (1 - channel.noise) / W * (i <= j < i + W) for j in range(G + W)] for i in range(G + 1)]
    )
    w = np.random.default_rng(14).random((3, G + W))
    np.testing.assert_allclose(channel.outputs(np.eye(G + 1)), laws, atol=1e-15)
    np.testing.assert_allclose(channel.averages(w), w @ laws.T, rtol=1e-13)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 50.0])
def test_ems_ends_where_a_step_of_em_and_smoothing_changes_nothing(epsilon: float, smoothing: float) -> None:
    channel, n = channel_of(epsilon, 16), 5000
    laws, cells = brute_laws(channel), draw(channel, hump(16), n, np.random.default_rng(4))
    shares = fit(channel, cells, smoothing)
    again = smooth_partly(shares * (laws @ (cells / n / (shares @ laws))), smoothing)
    assert shares.sum() == pytest.approx(1, abs=1e-12)
    assert abs(cells @ np.log((again @ laws) / (shares @ laws))) < 2 * TOLERANCE


def test_without_smoothing_nothing_is_more_probable() -> None:
    channel = channel_of(1.0, 16)
    laws, cells = brute_laws(channel), draw(channel, hump(16), 5000, np.random.default_rng(4))
    shares = fit(channel, cells, 0.0)
    # By duality, no distribution gains more than the largest of these nats.
    assert np.max(laws @ (cells / (shares @ laws))) - 5000 < 3


def test_fits_at_once_are_those_alone() -> None:
    channel, rng = channel_of(1.0, 24), np.random.default_rng(15)
    cells = np.array([draw(channel, hump(24), n, rng) for n in (10, 1000, 10**5)])
    at_once = ems(channel, cells, np.array([0.0, 0.03, 1.0]))
    for shares, each, smoothing in zip(at_once, cells, (0.0, 0.03, 1.0), strict=True):
        np.testing.assert_allclose(shares, fit(channel, each, smoothing), rtol=1e-9, atol=1e-15)


def test_a_peak_is_smoothed_less_than_a_hump() -> None:
    channel, rng = channel_of(1.0, 64), np.random.default_rng(16)
    truths = np.eye(64)[20], hump(64)
    chosen = [choose_smoothing(channel, draw(channel, truth, 10**5, rng)).smoothing for truth in truths]
    assert chosen[0] == 0 < chosen[1]


@pytest.mark.parametrize("n", [1, 2, 10])
def test_a_few_reports_have_a_choice_and_finite_errors(n: int) -> None:
    channel = channel_of(1.0, 64)
    cells = draw(channel, hump(64), n, np.random.default_rng(6))
    assert choose_smoothing(channel, cells).smoothing in SMOOTHINGS
    assert np.isfinite(stderr(responses(channel, cells / n, fit(channel, cells, 0.003), 0.003), cells / n, n)).all()

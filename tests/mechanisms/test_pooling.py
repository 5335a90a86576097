"""One estimate from the counts of several versions: its laws, its moments, and its intervals."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator, default_rng

from tests.mechanisms.estimates import estimate_of
from uldp.mechanisms.decoders.pure import ShareEstimate
from uldp.mechanisms.estimators.projection import wls
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.pooling.versions import contradictions, pool
from uldp.schemas.arrays import Counts

SIZE = 20
EVERYTHING = np.ones(SIZE, dtype=np.bool_)
SENSITIVE = np.arange(SIZE) < 6
#: From 0.0005 to 0.3, in no order that has to do with X_S.
P = default_rng(1).permutation(np.geomspace(0.0005, 0.3, SIZE))
P /= P.sum()

CHANNELS: dict[str, Channel] = {
    "rr 1": RandomizedResponse(EVERYTHING, 1.0).channel,
    "rr 4": RandomizedResponse(EVERYTHING, 4.0).channel,
    "urr 2": RandomizedResponse(SENSITIVE, 2.0).channel,
    "urr 2, others sensitive": RandomizedResponse(~SENSITIVE, 2.0).channel,
    "oue 2": UnaryEncoding(EVERYTHING, 2.0, OUE_THETA).channel,
    "urap 1": UnaryEncoding(SENSITIVE, 1.0, sue_theta(1.0)).channel,
    "ss 2": SubsetSelection(SIZE, 2.0).channel,
}
#: Versions by the names of their channels and their numbers of reports.
POOLS: dict[str, Sequence[tuple[str, int]]] = {
    "two epsilons": (("rr 1", 20_000), ("rr 4", 1_000)),
    "two mechanisms": (("urr 2", 4_000), ("oue 2", 4_000)),
    "two sensitive sets": (("urr 2", 1_000), ("urr 2, others sensitive", 1_000)),
    "three versions": (("rr 4", 500), ("urap 1", 5_000), ("urr 2", 2_000)),
    "rare values": (("urr 2", 300), ("urr 2", 600)),
}
WINDOWS = 300


def draw(channel: Channel, n: int, windows: int, rng: Generator) -> Counts:
    """Support counts of windows of n users, shape (windows, |Z|)."""
    if channel.one_symbol:
        m = channel.support_probability(P)
        return rng.multinomial(n, m / m.sum(), windows)
    holders = rng.multinomial(n, P, windows)
    return rng.binomial(holders, channel.p) + rng.binomial(n - holders, channel.q)


def windows_of(name: str, windows: int, seed: int) -> list[list[ShareEstimate]]:
    """The versions of each window."""
    rng = default_rng(seed)
    drawn = [draw(CHANNELS[channel], n, windows, rng) for channel, n in POOLS[name]]
    return [
        [estimate_of(CHANNELS[channel], cells, n) for (channel, n), cells in zip(POOLS[name], window, strict=True)]
        for window in zip(*drawn, strict=True)
    ]


each = pytest.mark.parametrize("name", POOLS)


@st.composite
def versions(draw: st.DrawFn, least: int = 1, names: Sequence[str] = tuple(CHANNELS)) -> list[ShareEstimate]:
    """Versions with any counts that reports can give."""
    parts = []
    for name in draw(st.lists(st.sampled_from(names), min_size=least, max_size=3)):
        channel, n = CHANNELS[name], draw(st.integers(1, 200))
        rng = default_rng(draw(st.integers(0, 2**32 - 1)))
        if channel.independent_bits:
            cells = rng.integers(0, n + 1, SIZE)
        else:
            sets = np.argsort(rng.random((n, SIZE)), axis=1)[:, : channel.supported]
            cells = np.bincount(sets.ravel(), minlength=SIZE)
        parts.append(estimate_of(channel, cells.astype(np.int64), n))
    return parts


@given(versions())
def test_weights_and_shares_sum_to_one(parts: list[ShareEstimate]) -> None:
    mean = pool(parts)
    assert mean.weights.min() >= 0
    assert mean.weights.sum(axis=0) == pytest.approx(np.ones(SIZE))
    assert mean.r.min() >= 0
    assert mean.r.sum() == pytest.approx(1)
    assert mean.mean.n.tolist() == [sum(part.reports for part in parts)] * SIZE


@given(versions(least=2, names=["urr 2"]))
def test_versions_with_one_channel_are_one_version(parts: list[ShareEstimate]) -> None:
    cells, n = sum((part.counts for part in parts), np.zeros(SIZE, np.int64)), sum(part.reports for part in parts)
    mean = pool(parts)
    assert mean.mean.values == pytest.approx(parts[0].channel.unbiased(cells, n), abs=1e-9)
    assert mean.r == pytest.approx(wls(parts[0].channel, cells, n), abs=1e-9)


@cache
def means_of(name: str) -> list[Estimate]:
    return [pool(parts).mean for parts in windows_of(name, WINDOWS, seed=3)]


@pytest.mark.slow
@each
def test_the_mean_has_no_bias_and_the_variance_that_it_claims(name: str) -> None:
    values = np.array([mean.values for mean in means_of(name)])
    z = (values.mean(axis=0) - P) / values.std(axis=0) * np.sqrt(WINDOWS)
    # Weights and counts of one window depend on each other, which leaves a bias of some hundredths of the error.
    assert np.sqrt(np.mean(z**2)) < 1.6
    # The kurtosis of the rarest counts makes their sample variance uncertain; the mean over the symbols is not.
    ratio = np.mean([mean.variance for mean in means_of(name)], axis=0) / values.var(axis=0)
    assert np.mean(ratio) == pytest.approx(1, abs=0.06)


@each
def test_intervals_cover(name: str) -> None:
    ends = np.array([mean.interval(0.95) for mean in means_of(name)])
    coverage = ((ends[:, 0] <= P) & (ends[:, 1] >= P)).mean(axis=0)
    assert 0.93 <= coverage.mean() <= 0.99
    # Each symbol, with 4 standard deviations for the noise of the simulation.
    assert coverage.min() >= 0.93 - 4 * np.sqrt(0.95 * 0.05 / WINDOWS)


@each
def test_pooled_is_better_than_each_version_and_than_means(name: str) -> None:
    errors = []
    for parts in windows_of(name, 100, seed=5):
        alone = np.array([wls(part.channel, part.counts, part.reports) for part in parts])
        reports = np.array([part.reports for part in parts])
        estimates = [pool(parts).r, *alone, alone.mean(axis=0), reports @ alone / reports.sum()]
        errors.append([float(np.abs(estimate - P).sum()) for estimate in estimates])
    pooled, *others = np.mean(errors, axis=0)
    assert pooled < min(others)


def test_honest_versions_seldom_contradict_each_other() -> None:
    found = [contradictions(parts).any() for parts in windows_of("three versions", WINDOWS, seed=6)]
    assert sum(found) <= 3  # 0.3 or fewer are expected, and more than 3 have a probability of 0.03 %


def test_versions_contradict_each_other_beyond_intervals_that_all_hold_at_once() -> None:
    channel, n, counts = CHANNELS["rr 1"], 10_000, np.full(SIZE, 500)
    level = 1 - 0.001 / (2 * SIZE)
    lowest, highest = (end[0] for end in estimate_of(channel, counts, n).interval(level))
    for count in range(500, 800):
        moved = counts + (count - 500) * (np.eye(SIZE, dtype=np.int64)[0] - np.eye(SIZE, dtype=np.int64)[1])
        found = contradictions([estimate_of(channel, counts, n), estimate_of(channel, moved, n)])
        lows, highs = estimate_of(channel, moved, n).interval(level)
        assert found.tolist() == [lows[0] > highest, highs[1] < lowest] + [False] * (SIZE - 2)
    assert found[:2].all()


def test_versions_of_other_symbols_are_refused() -> None:
    short = estimate_of(RandomizedResponse(EVERYTHING[1:], 1.0).channel, np.ones(SIZE - 1, np.int64), SIZE - 1)
    long = estimate_of(CHANNELS["rr 1"], np.ones(SIZE, np.int64), SIZE)
    for parts in ([short, long], []):
        with pytest.raises(ValueError, match="over the same symbols"):
            pool(parts)

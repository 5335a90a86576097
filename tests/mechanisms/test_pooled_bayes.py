"""Empirical Bayes over several versions: its laws, and that it is better than the projection where n is small."""

import numpy as np
import pytest
from numpy.random import default_rng

from tests.mechanisms.estimates import estimate_of
from uldp.mechanisms.decoders.pure import ShareEstimate
from uldp.mechanisms.estimators.empirical_bayes import empirical_bayes
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.pooling.versions import pool, pooled_bayes
from uldp.schemas.arrays import Floats

SIZE = 100
EVERYTHING, SENSITIVE = np.ones(SIZE, dtype=np.bool_), np.arange(SIZE) < 60
#: Shares that fall as 1, 1/2, 1/3, in no order that has to do with X_S.
P = default_rng(1).permutation(1 / np.arange(1, SIZE + 1))
P /= P.sum()

CHANNELS: dict[str, Channel] = {
    "rr 1": RandomizedResponse(EVERYTHING, 1.0).channel,
    "urr 1": RandomizedResponse(SENSITIVE, 1.0).channel,
    "urr 2": RandomizedResponse(SENSITIVE, 2.0).channel,
    "oue 1": UnaryEncoding(EVERYTHING, 1.0, OUE_THETA).channel,
}
POOLS = {
    "two epsilons": ("urr 1", "urr 2"),
    "two mechanisms": ("urr 1", "oue 1"),
    "three versions": ("rr 1", "oue 1", "urr 1"),
}
each = pytest.mark.parametrize("name", POOLS)


def counted(names: tuple[str, ...], n: int, seed: int) -> list[ShareEstimate]:
    rng = default_rng(seed)
    parts = []
    for channel in map(CHANNELS.__getitem__, names):
        if channel.one_symbol:
            m = channel.support_probability(P)
            cells = rng.multinomial(n, m / m.sum())
        else:
            holders = rng.multinomial(n, P)
            cells = rng.binomial(holders, channel.p) + rng.binomial(n - holders, channel.q)
        parts.append(estimate_of(channel, cells, n))
    return parts


def l1(estimate: Floats) -> float:
    return float(np.abs(estimate - P).sum())


@each
def test_at_small_n_it_is_better_than_the_projection_and_than_each_version_alone(name: str) -> None:
    errors = []
    for seed in range(20):
        parts = counted(POOLS[name], 2000, seed)
        mean = pool(parts)
        alone = [empirical_bayes(part.channel, part.counts, part.reports) for part in parts]
        errors.append([l1(each) for each in (pooled_bayes(mean, 0), mean.r, *alone)])
    pooled, *others = np.mean(errors, axis=0)
    assert pooled < min(others)


@pytest.mark.parametrize("name", CHANNELS)
def test_of_one_version_it_is_close_to_that_of_the_version(name: str) -> None:
    # Both have a grid of half a standard deviation, but not the same points.
    for seed in range(5):
        (part,) = counted((name,), 2000, seed)
        ours = pooled_bayes(pool([part]), 0)
        theirs = empirical_bayes(part.channel, part.counts, part.reports)
        assert np.abs(ours - theirs).sum() < 0.1 * l1(theirs)


def test_bots_and_symbols_without_noise_are_not_shrunk() -> None:
    parts = counted(POOLS["two epsilons"], 2000, seed=5)
    mean = pool(parts)
    same, other = pooled_bayes(mean, SIZE), pooled_bayes(mean, 0)
    # With bots alone there is no class, and only the projection is left.
    assert np.abs(same - other).sum() > 0.05
    unseen = ~SENSITIVE & (mean.mean.values == 0)
    assert unseen.any()
    assert other[unseen].max() < 1e-6

"""Local hashing: its hash family, and the counts of supporting reports."""

import math
import tracemalloc

import numpy as np
import pytest

from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.kernels.hashing import MOST_BUCKETS, hash_symbols
from uldp.schemas.arrays import Counts, Packed, Symbols

SEEDS = 1 << 20
# Neighbours, symbols that differ in one bit, three in a row, and symbols far apart.
TRIPLES = [(0, 1, 2), (3, 7, 515), (0, 624, 312), (100, 200, 300), (5, 65_541, 999_999)]


def payload(seed: int, bucket: int) -> Packed:
    return np.frombuffer(seed.to_bytes(4, "little") + bucket.to_bytes(2, "little"), dtype=np.uint8)


def chi_square_score(counts: Counts) -> float:
    """The z-score of Pearson's statistic of uniform counts."""
    expected = counts.sum() / counts.size
    degrees = counts.size - 1
    return float((((counts - expected) ** 2 / expected).sum() - degrees) / math.sqrt(2 * degrees))


def hashes_of(symbols: tuple[int, ...], buckets: int) -> list[Symbols]:
    seeds = np.random.default_rng(8).integers(0, 1 << 32, SEEDS)
    return [hash_symbols(seeds, np.array([symbol]), buckets) for symbol in symbols]


@pytest.mark.parametrize("buckets", [2, 4, 8])
@pytest.mark.parametrize("triple", TRIPLES)
def test_hashes_over_random_seeds_are_independent_in_threes(triple: tuple[int, int, int], buckets: int) -> None:
    # The covariance of two support counts depends on two hashes and on that of the true symbol.
    x, y, z = hashes_of(triple, buckets)
    assert chi_square_score(np.bincount((x * buckets + y) * buckets + z, minlength=buckets**3)) < 5


@pytest.mark.parametrize("buckets", [2, 4, 300, MOST_BUCKETS])
def test_possible_are_the_buckets_below_g_with_any_seed(buckets: int) -> None:
    mechanism = LocalHashing(4, 1.0, buckets)
    seeds = [0, 1, 2**32 - 1]
    within = np.array([payload(seed, bucket) for seed in seeds for bucket in (0, buckets - 1)])
    assert mechanism.possible(within).all()
    beyond = [bucket for bucket in (buckets, buckets + 1, 2**16 - 1) if buckets <= bucket < 2**16]
    forged = np.array([payload(seed, bucket) for seed in seeds for bucket in beyond]).reshape(-1, 6)
    assert not mechanism.possible(forged).any()


@pytest.mark.parametrize("buckets", [2, 3, 4, 257, MOST_BUCKETS])
def test_a_report_supports_the_symbols_that_hash_to_its_bucket(buckets: int) -> None:
    mechanism = LocalHashing(700, 1.0, buckets)
    symbols = np.arange(700)
    for seed in (0, 1, 2**31, 2**32 - 1):
        hashes = hash_symbols(np.array([seed]), symbols, buckets)
        for bucket in (0, buckets // 2, buckets - 1, hashes[3]):
            counts = mechanism.statistic(payload(seed, int(bucket))[np.newaxis])
            assert counts.dtype == np.int64
            assert counts.tolist() == (hashes == bucket).tolist()


def test_tally_of_a_large_domain_hashes_a_part_of_it_at_once() -> None:
    size = 1 << 18
    mechanism, payloads = LocalHashing(size, 1.0), np.zeros((3, 6), dtype=np.uint8)
    tracemalloc.start()
    try:
        mechanism.statistic(payloads)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * 8 * size  # the counts and little more; all hashes of one report would take 21 bytes a symbol


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_variance_at_the_default_is_that_of_the_paper(epsilon: float) -> None:
    # Wang et al., section 4.4: 4 E / (n (E - 1)^2) for a symbol that no device holds, at g = E + 1, here rounded.
    n, E = 1000, math.exp(epsilon)
    variance = LocalHashing(5, epsilon).channel.variance(np.zeros(5), n)
    g = round(E) + 1
    np.testing.assert_allclose(variance, (E + g - 1) ** 2 / ((E - 1) ** 2 * (g - 1)) / n, rtol=1e-12)
    np.testing.assert_allclose(variance, 4 * E / (n * (E - 1) ** 2), rtol=0.02)

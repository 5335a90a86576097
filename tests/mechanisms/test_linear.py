"""Estimates with a covariance of low rank: the product with it is that of the matrix, and intervals are normal."""

import numpy as np
import pytest

from uldp.mechanisms.protocol.linear import LowRankLinear, mean_of, normal
from uldp.schemas.arrays import Floats

RNG = np.random.default_rng(5)
VALUES, VARIANCE, W = RNG.random(7), 1 + RNG.random(7), RNG.random((7, 3))


def linear(u: Floats, starts: list[int]) -> LowRankLinear:
    n = np.full(7, 100)
    return LowRankLinear(VALUES, VARIANCE, n, normal(VALUES, VARIANCE), u, np.array(starts))


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("starts", [[0], [0, 3], [0, 1, 5]])
def test_times_is_the_product_with_the_covariance(rank: int, starts: list[int]) -> None:
    u = RNG.random((rank, 7)) / 3
    block = np.searchsorted(starts, np.arange(7), side="right")
    covariance = np.where(block[:, np.newaxis] == block, -u.T @ u, 0.0)
    np.fill_diagonal(covariance, VARIANCE)
    np.testing.assert_allclose(linear(u, starts).times(W), covariance @ W, rtol=1e-12)


def test_a_mean_has_its_normal_interval() -> None:
    mean = mean_of(3.0, 4.0, 100)
    np.testing.assert_allclose(mean.interval(0.95), [[3 - 1.959964 * 2], [3 + 1.959964 * 2]], rtol=1e-6)
    assert [each.tolist() for each in (mean.values, mean.variance, mean.n)] == [[3], [4], [100]]
    assert mean.times(np.eye(1)).tolist() == [[4]]

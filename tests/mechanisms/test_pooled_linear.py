"""Least squares over several parts, against the matrices that a design stands for."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.random import default_rng

from uldp.mechanisms.pooling.design import Design, Same, Solve
from uldp.mechanisms.pooling.pooled_linear import PooledLinear
from uldp.mechanisms.protocol.linear import LowRankLinear, normal
from uldp.schemas.arrays import Floats


class Matrices(Design):
    """A design that is given by the matrix of each part."""

    def __init__(self, matrices: Sequence[Floats]) -> None:
        self.matrices, self.size = matrices, matrices[0].shape[1]

    def spread(self, values: Floats) -> list[Floats]:
        return [matrix @ values for matrix in self.matrices]

    def gather(self, of_parts: Sequence[Floats]) -> Floats:
        return np.asarray(sum(matrix.T @ own for matrix, own in zip(self.matrices, of_parts, strict=True)))

    def solve(self, weights: Sequence[Floats] | Floats) -> Solve:
        inverse = np.linalg.inv(self.gather(self.weigh(weights, self.matrices)))
        return lambda g: inverse @ g


def estimate(size: int, seed: int, n: int) -> LowRankLinear:
    """An estimate whose covariance is no diagonal."""
    rng = default_rng(seed)
    values, variance, u = rng.normal(size=size), rng.uniform(1, 2, size), rng.uniform(0, 0.3, (1, size))
    return LowRankLinear(values, variance, np.full(size, n), normal(values, variance), u)


MATRICES: list[Floats] = [np.eye(4), np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]]), np.ones((1, 4))]
PARTS = [estimate(len(matrix), seed, 10 * seed + 10) for seed, matrix in enumerate(MATRICES)]
WEIGHTS = [np.array([1.0, 2.0, 3.0, 4.0]), np.array(2.0), np.array(0.5)]


def pooled() -> PooledLinear:
    return PooledLinear(PARTS, WEIGHTS, Matrices(MATRICES))


def test_values_are_those_of_least_squares() -> None:
    roots = [np.sqrt(np.broadcast_to(weight, len(matrix))) for weight, matrix in zip(WEIGHTS, MATRICES, strict=True)]
    a = np.vstack([root[:, np.newaxis] * matrix for root, matrix in zip(roots, MATRICES, strict=True)])
    y = np.concatenate([root * part.values for root, part in zip(roots, PARTS, strict=True)])
    assert pooled().values == pytest.approx(np.linalg.lstsq(a, y, rcond=None)[0])


def test_errors_follow_from_the_covariances_of_all_parts() -> None:
    linear, one = pooled(), np.eye(4)
    # Each column of B is how the estimate moves with one entry of a part.
    columns = []
    for column in np.eye(7):
        own = np.split(column, [4, 6])
        parts = [LowRankLinear(y, y + 1, part.n, part.interval) for y, part in zip(own, PARTS, strict=True)]
        columns.append(PooledLinear(parts, WEIGHTS, Matrices(MATRICES)).values)
    b = np.array(columns).T
    blocks = np.zeros((7, 7))
    for part, first, end in zip(PARTS, (0, 4, 6), (4, 6, 7), strict=True):
        blocks[first:end, first:end] = part.times(np.eye(end - first))
    covariance = b @ blocks @ b.T
    w = default_rng(5).normal(size=(4, 3))
    assert linear.times(one) == pytest.approx(covariance)
    assert linear.variance == pytest.approx(covariance.diagonal())
    assert linear.variance_of(w) == pytest.approx((w.T @ covariance @ w).diagonal())
    intervals = normal(linear.values, covariance.diagonal())(0.95)
    assert np.array(linear.interval(0.95)) == pytest.approx(np.array(intervals))
    assert linear.n.tolist() == [10 + 20 + 30] * 4


def test_two_estimates_of_one_number_are_pooled_by_their_precisions() -> None:
    arms = [estimate(1, 1, 5), estimate(1, 2, 7)]
    variances = [float(arm.times(np.eye(1))[0, 0]) for arm in arms]
    linear = PooledLinear(arms, [np.array(1 / variance) for variance in variances], Same(1, 2))
    precision = sum(1 / variance for variance in variances)
    mean = sum(arm.values[0] / variance for arm, variance in zip(arms, variances, strict=True)) / precision
    assert linear.values == pytest.approx([mean])
    assert linear.variance == pytest.approx([1 / precision])

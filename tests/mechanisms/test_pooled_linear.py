"""Least squares over several parts, against the matrices that a design stands for."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.random import default_rng

from tests.build import spec
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.pure import PureDecoder, ShareEstimate, share_estimate
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.laws.channel_laws import law_of
from uldp.mechanisms.laws.estimate import part_of
from uldp.mechanisms.pooling.pooled_linear import Design, Pooled, Solve
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

    def nearest(self, weights: Sequence[Floats] | Floats, values: Floats) -> Floats:
        raise NotImplementedError


def estimate(size: int, seed: int, n: int) -> ShareEstimate:
    """An estimate by randomized response, whose covariance is no diagonal."""
    rng = default_rng(seed)
    channel = RandomizedResponse(np.ones(size, dtype=np.bool_), 1.0).channel
    return share_estimate(law_of(channel), rng.multinomial(n, rng.dirichlet(np.ones(size))), n)


MATRICES: list[Floats] = [np.eye(4), np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]]), np.array([[1.0, 0, 1, 0], [0, 1, 0, 1]])]
PARTS = [estimate(len(matrix), seed, 10 * seed + 10) for seed, matrix in enumerate(MATRICES)]
WEIGHTS = [np.array([1.0, 2.0, 3.0, 4.0]), np.array(2.0), np.array(0.5)]
STARTS, ENDS = (0, 4, 6), (4, 6, 8)


def pooled() -> Pooled:
    return Pooled.of(PARTS, WEIGHTS, Matrices(MATRICES))


def linear_map() -> Floats:
    """B, with which the estimate is B y."""
    roots = [np.sqrt(np.broadcast_to(weight, len(matrix))) for weight, matrix in zip(WEIGHTS, MATRICES, strict=True)]
    a = np.vstack([root[:, np.newaxis] * matrix for root, matrix in zip(roots, MATRICES, strict=True)])
    return np.asarray(np.linalg.pinv(a) * np.concatenate(roots))


def test_values_are_those_of_least_squares() -> None:
    assert pooled().values == pytest.approx(linear_map() @ np.concatenate([part.values for part in PARTS]))


def test_errors_follow_from_those_of_all_parts() -> None:
    linear, b, w = pooled(), linear_map(), default_rng(5).normal(size=(4, 3))
    blocks = np.zeros((8, 8))
    for part, first, end in zip(PARTS, STARTS, ENDS, strict=True):
        blocks[first:end, first:end] = part.times(np.eye(end - first))
    covariance = b @ blocks @ b.T
    assert linear.times(np.eye(4)) == pytest.approx(covariance)
    assert linear.variance_of(w) == pytest.approx((w.T @ covariance @ w).diagonal())
    assert linear.variance_of(np.eye(4)) == pytest.approx(covariance.diagonal())
    own = [part.sums((b.T @ w)[first:end]) for part, first, end in zip(PARTS, STARTS, ENDS, strict=True)]
    assert linear.sums(w).third == pytest.approx(sum(each.third for each in own))
    assert linear.n.tolist() == [10 + 20 + 30] * 4


def test_errors_are_at_the_shares_that_are_named() -> None:
    shares = [default_rng(seed).dirichlet(np.ones(len(matrix))) for seed, matrix in enumerate(MATRICES)]
    b, w, total = linear_map(), default_rng(6).normal(size=(4, 2)), 0.0
    for part, own, first, end in zip(PARTS, shares, STARTS, ENDS, strict=True):
        moved = (b.T @ w)[first:end]
        total = total + (moved * (part.channel.covariance(own)(moved) / part.reports)).sum(axis=0)
    assert pooled().at_shares(shares).variance_of(w) == pytest.approx(total)
    assert pooled().at_shares(shares).repeated(2.0).variance_of(w) == pytest.approx(3 * total)


@pytest.mark.parametrize("name", ["rr", "ss", "oue"])
def test_the_covariance_of_a_part_is_a_diagonal_and_rank_one(name: str) -> None:
    decoder = build_protocol(spec(domain={"size": 7}, mechanism={"name": name, "epsilon": 1.0})).decoder
    assert isinstance(decoder, PureDecoder)
    theta, rng = default_rng(1).dirichlet(np.ones(7)), default_rng(2)
    part = part_of(decoder.law, theta, 50)
    w = rng.normal(size=(7, 4))
    w -= w.mean(axis=0)
    diagonal, u = part.diagonal_and_rank_one()
    assert part.sums(w).variance == pytest.approx(diagonal @ w**2 - (u @ w) ** 2)

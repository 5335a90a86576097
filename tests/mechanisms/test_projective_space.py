"""Vectors, points and hyperplanes modulo a prime, against sums over all pairs."""

import math

import numpy as np
import pytest

from uldp.mechanisms.kernels.projective_space import ProjectiveSpace, best_space, number_of_points, primes
from uldp.schemas.arrays import Symbols

SPACES = [ProjectiveSpace(g, m) for g, m in [(2, 1), (2, 4), (3, 1), (3, 3), (5, 2), (5, 3), (7, 2), (11, 2)]]
each = pytest.mark.parametrize("space", SPACES, ids=lambda space: f"{space.g}^{space.m}")


def products(space: ProjectiveSpace) -> Symbols:
    """a.x for each point a and vector x, by digits; shape (P, g^m)."""
    digits = np.array([[x // space.g**k % space.g for k in range(space.m)] for x in range(space.g**space.m)])
    points = [x for x in range(1, len(digits)) if digits[x][np.flatnonzero(digits[x])[-1]] == 1]
    found: Symbols = digits[points] @ digits.T % space.g
    return found


def test_primes() -> None:
    assert primes(30).tolist() == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
    assert len(primes(100_000)) == 9592


@each
def test_points_are_the_vectors_whose_first_digit_is_1(space: ProjectiveSpace) -> None:
    vectors = space.vectors(np.arange(space.points))
    assert vectors.tolist() == [x for k in range(space.m) for x in range(space.g**k, 2 * space.g**k)]
    assert len(vectors) == (space.g**space.m - 1) // (space.g - 1)
    everything = np.arange(space.g**space.m)
    found = [space.products(np.full(len(everything), vector), everything) for vector in vectors]
    assert np.array_equal(found, products(space))


@each
def test_sums_over_hyperplanes_and_their_transpose_are_those_of_all_pairs(space: ProjectiveSpace) -> None:
    rng, of = np.random.default_rng(1), products(space)
    numbers, weights = rng.normal(size=(space.points, space.g)), rng.normal(size=space.g**space.m)
    assert space.sum_over_hyperplanes(numbers) == pytest.approx(np.take_along_axis(numbers, of, 1).sum(axis=0))
    only = space.sum_over_hyperplanes(numbers[:, :1])
    assert only == pytest.approx((numbers[:, :1] * (of == 0)).sum(axis=0))
    wanted = np.array([[weights[row == bucket].sum() for bucket in range(space.g)] for row in of])
    assert space.sum_over_vectors(weights, space.g) == pytest.approx(wanted)
    assert space.sum_over_vectors(weights, 1) == pytest.approx(wanted[:, :1])


@each
def test_hyperplane_points_are_all_points_of_a_hyperplane(space: ProjectiveSpace) -> None:
    if space.m == 1:
        assert space.on_hyperplane == 0
        return
    of = products(space)[:, space.vectors(np.arange(space.points))]
    for point in range(space.points):
        found = space.hyperplane_points(np.full(space.on_hyperplane, point), np.arange(space.on_hyperplane))
        assert sorted(found.tolist()) == np.flatnonzero(of[point] == 0).tolist()


def test_sums_are_exact_integers_at_2_to_the_40_reports() -> None:
    space = ProjectiveSpace(5, 4)
    counts = np.random.default_rng(2).multinomial(1 << 40, np.full(space.points * 5, 1 / space.points / 5))
    sums = space.sum_over_hyperplanes(counts.reshape(-1, 5).astype(np.float64))
    exact = np.take_along_axis(counts.reshape(-1, 5), products(space), 1).sum(axis=0)
    assert np.abs(sums - exact).max() < 0.1
    assert np.rint(sums).astype(np.int64).tolist() == exact.tolist()


def test_the_best_space_has_the_fewest_cells_near_the_least_variance() -> None:
    laws = {(2, 3): (0.9, 0.4, 10), (3, 2): (0.9, 0.1, 50), (5, 2): (0.9, 0.0999, 60), (7, 1): (0.9, 0.1001, 40)}

    def law(g: int, m: int) -> tuple[float, float, int]:
        return laws.get((g, m), (0.9, 0.1, 0))

    assert best_space(7, 1.0, law) == ProjectiveSpace(7, 1)


def test_a_space_that_is_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="1,000 values at epsilon 1 need more than the 8,388,608 vectors"):
        best_space(1000, 1.0, lambda g, m: (0.9, 0.1, 0))
    with pytest.raises(ValueError, match="need more than"):
        best_space(1000, 1.0, lambda g, m: (0.5, 0.49, number_of_points(g, m)))
    assert math.sinh(0.5) ** -2 == pytest.approx(4 * math.e / (math.e - 1) ** 2)

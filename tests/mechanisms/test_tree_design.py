"""Least squares over a tree, against matrices and against SciPy's solvers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from scipy.optimize import nnls

from uldp.mechanisms.pooling.tree import Tree, widths_of
from uldp.schemas.arrays import Floats

trees = st.builds(
    lambda leaves, branching: Tree(leaves, widths_of(leaves, branching)), st.integers(2, 90), st.integers(2, 9)
)


def matrix(tree: Tree) -> Floats:
    """A: the blocks of all parts, a row each."""
    return np.concatenate(tree.spread(np.eye(tree.size)))


def rows(tree: Tree, seed: int) -> tuple[list[Floats], Floats, Floats]:
    """The weights of the parts, those of all rows of A, and what reports say of each row."""
    rng = default_rng(seed)
    weights = [np.asarray(weight) for weight in rng.uniform(0.5, 20, len(tree.widths))]
    shares = rng.dirichlet(np.full(tree.size, 0.2))
    blocks = [len(own) for own in tree.spread(np.eye(tree.size))]
    of_rows = np.repeat(np.array(weights), blocks)
    return weights, of_rows, matrix(tree) @ shares + rng.normal(size=sum(blocks)) / np.sqrt(of_rows) * 0.3


@given(trees, st.integers(0, 99))
def test_the_products_are_those_of_the_matrix(tree: Tree, seed: int) -> None:
    a, rng = matrix(tree), default_rng(seed)
    widths = np.repeat(tree.widths, [len(own) for own in tree.spread(np.eye(tree.size))])
    assert a.sum(axis=1).tolist() == np.minimum(widths, a.sum(axis=1)).tolist()
    assert a.sum(axis=0).tolist() == [len(tree.widths)] * tree.size
    y = rng.normal(size=(len(a), 2))
    ends = np.cumsum([len(own) for own in tree.spread(np.eye(tree.size))])[:-1]
    assert tree.gather(np.split(y, ends)) == pytest.approx(a.T @ y)


@given(trees, st.integers(0, 99))
def test_the_solution_is_least_squares_with_the_sum_1(tree: Tree, seed: int) -> None:
    weights, of_rows, y = rows(tree, seed)
    a = matrix(tree)
    g = a.T @ (of_rows * (y - a @ tree.centre))
    found = tree.centre + tree.solve(weights)(g[:, np.newaxis])[:, 0]
    # Lagrange's equations for the sum 1.
    normal = np.zeros((tree.size + 1, tree.size + 1))
    normal[:-1, :-1] = a.T @ (of_rows[:, np.newaxis] * a)
    normal[-1, :-1] = normal[:-1, -1] = 1
    assert found == pytest.approx(np.linalg.solve(normal, np.append(a.T @ (of_rows * y), 1))[:-1], abs=1e-9)


@given(trees, st.integers(0, 99))
def test_the_nearest_shares_are_those_of_nnls(tree: Tree, seed: int) -> None:
    weights, of_rows, y = rows(tree, seed)
    a, roots = matrix(tree), np.sqrt(of_rows)
    normal = a.T @ (of_rows[:, np.newaxis] * a)
    found = tree.nearest(weights, np.asarray(np.linalg.solve(normal, a.T @ (of_rows * y)), dtype=np.float64))
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    heavy = 1e4
    slow, _ = nnls(np.vstack([roots[:, np.newaxis] * a, np.full(tree.size, heavy)]), np.append(roots * y, heavy))

    def distance(x: Floats) -> float:
        return float(of_rows @ (a @ x - y) ** 2)

    assert distance(found) == pytest.approx(distance(slow / slow.sum()), rel=1e-5, abs=1e-6)


@given(trees, st.integers(0, 99), st.booleans(), st.integers(1, 3))
def test_sums_over_blocks_are_those_of_powers_of_their_weights(tree: Tree, seed: int, below: bool, power: int) -> None:
    weights, of_rows, _ = rows(tree, seed)
    a, rng = matrix(tree), default_rng(seed)
    numbers = rng.uniform(-1, 3, len(a))
    b = tree.solve(weights)(a.T * of_rows)
    moved = np.tri(tree.size, k=-1) @ b if below else b
    ends = np.cumsum([len(own) for own in tree.spread(np.eye(tree.size))])[:-1]
    found = tree.of_blocks(weights, np.split(numbers, ends), power, below=below)
    assert found == pytest.approx(moved**power @ numbers, abs=1e-9)


@pytest.mark.parametrize("widths", [(), (4, 2), (6, 4, 1), (2, 2, 1)])
def test_widths_that_are_none_of_a_tree_are_refused(widths: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="the widths of blocks must divide each other and end with 1"):
        Tree(12, widths)

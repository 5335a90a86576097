"""Tables that are pooled from views: least squares over all of them, and its errors, against dense matrices."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.random import default_rng

from uldp.mechanisms.decoders.pure import share_estimate
from uldp.mechanisms.families.records.views import all_of, best_views, error
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.laws.channel_laws import law_of
from uldp.mechanisms.pooling.cell_errors import CellErrors
from uldp.mechanisms.pooling.interactions import Attributes, Interactions
from uldp.mechanisms.pooling.pooled_linear import Pooled
from uldp.schemas.arrays import Floats

SIZES = (2, 3, 4, 2)
VIEWS: list[Attributes] = [(0, 1), (1, 2), (0, 2), (0, 1, 3), (2, 3)]
DESIGN = Interactions(SIZES, VIEWS)
TABLES = DESIGN.sets[1:]


def table(joint: Floats, attributes: Attributes) -> Floats:
    """The shares of the values of some attributes."""
    return np.asarray(joint.sum(axis=tuple(each for each in range(joint.ndim) if each not in attributes)))


def pooled(seed: int, *, noise: bool) -> tuple[Pooled, Floats]:
    """Estimates of the views by randomized response, or the shares that they are of; and the joint shares."""
    rng = default_rng(seed)
    joint = rng.dirichlet(np.full(48, 0.3)).reshape(SIZES)
    parts, weights = [], []
    for view in VIEWS:
        shares, n = table(joint, view).ravel(), int(rng.integers(100, 1000))
        q = 1 / (len(shares) + 4)
        channel = Channel(np.full(len(shares), 5 * q), np.full(len(shares), q), independent_bits=False)
        part = share_estimate(law_of(channel), rng.multinomial(n, channel.support_probability(shares)), n)
        parts.append(part if noise else replace(part, values=shares))
        weights.append(np.asarray(1 / channel.variance(shares, n).mean()))
    found = Pooled.of(parts, weights, DESIGN)
    known = [own[:, 0].clip(0.0) for own in DESIGN.spread(found.values[:, np.newaxis])]
    return found.at_shares([own / own.sum() for own in known]), joint


def test_gather_is_the_transpose_of_spread() -> None:
    rng = default_rng(1)
    x, y = rng.normal(size=(DESIGN.size, 2)), [rng.normal(size=(DESIGN.cells(view), 2)) for view in VIEWS]
    spread = sum((own * of).sum() for own, of in zip(DESIGN.spread(x), y, strict=True))
    assert spread == pytest.approx((x * DESIGN.gather(y)).sum())


def test_views_without_noise_give_all_their_tables_back() -> None:
    linear, joint = pooled(2, noise=False)
    found = DESIGN.onto(TABLES).times(linear.values[:, np.newaxis])[:, 0]
    assert found == pytest.approx(np.concatenate([table(joint, each).ravel() for each in TABLES]), abs=1e-14)


def test_tables_are_those_of_weighted_least_squares() -> None:
    linear, _ = pooled(3, noise=True)
    # Over the joint table of all attributes, of which the views are sums.
    cells = np.eye(48).reshape(48, *SIZES)
    of_joint = np.array([np.concatenate([table(cell, view).ravel() for view in VIEWS]) for cell in cells]).T
    root = np.sqrt(np.repeat([float(w) for w in linear.weights], [DESIGN.cells(view) for view in VIEWS]))
    centre = np.full(48, 1 / 48)
    y = np.concatenate([part.values for part in linear.estimates])
    # Shares sum to 1: only what sums to 0 is fitted.
    free = np.eye(48) - 1 / 48
    joint = centre + free @ np.linalg.pinv(root[:, np.newaxis] * (of_joint @ free)) @ (root * (y - of_joint @ centre))
    found = np.concatenate(DESIGN.spread(linear.values[:, np.newaxis]))[:, 0]
    assert found == pytest.approx(of_joint @ joint, abs=1e-12)


@pytest.mark.parametrize("repeats", [0.0, 3.0])
def test_errors_of_cells_are_those_of_the_covariances_of_all_views(repeats: float) -> None:
    linear = pooled(4, noise=True)[0].repeated(repeats)
    errors = CellErrors(linear, DESIGN)
    for each in TABLES:
        columns = DESIGN.onto([each]).times(np.eye(DESIGN.size)).T
        covariance = columns.T @ linear.times(columns)
        found, exact = errors.cumulants(each), linear.sums(columns)
        assert found.variance == pytest.approx(np.diag(covariance), rel=1e-10)
        assert exact.variance == pytest.approx(np.diag(covariance), rel=1e-10)
        # Supports of one report are no independent events.
        assert found.third == pytest.approx(exact.third, abs=0.1 * float((exact.variance**1.5).max()))
        for row in ((attribute,) for attribute in each):
            rows = DESIGN.onto([row]).times(np.eye(DESIGN.size)).T
            cells = np.unravel_index(np.arange(columns.shape[1]), [SIZES[a] for a in each])[each.index(row[0])]
            ratio = np.asarray(default_rng(7).random(columns.shape[1]))
            less = linear.variance_of(columns - ratio * rows[:, cells])
            of_table = ratio.reshape([SIZES[a] for a in each])
            assert errors.cumulants(each, row, of_table).variance == pytest.approx(less, rel=1e-9)


def test_the_nearest_tables_of_0_or_more_are_those_of_a_search_over_all_signs() -> None:
    from scipy import optimize

    linear, _ = pooled(5, noise=True)
    found = DESIGN.nearest(linear.weights, linear.values)
    tables = np.concatenate(DESIGN.spread(found[:, np.newaxis]))[:, 0]
    assert np.concatenate(DESIGN.spread(linear.values[:, np.newaxis])).min() < -0.01
    assert tables.min() >= -1e-15

    each = np.repeat([float(w) for w in linear.weights], [DESIGN.cells(view) for view in VIEWS])
    y = np.concatenate([part.values for part in linear.estimates])

    def loss(tables: Floats) -> float:
        return float((each * (tables - y) ** 2).sum())

    basis = np.linalg.svd(DESIGN.centred(np.eye(DESIGN.size)))[0][:, : sum(_free(held) for held in TABLES)]
    onto = np.concatenate(DESIGN.spread(basis))
    equal = np.concatenate(DESIGN.spread(DESIGN.centre[:, np.newaxis]))[:, 0]
    best = optimize.minimize(
        lambda x: loss(equal + onto @ x),
        np.zeros(onto.shape[1]),
        jac=lambda x: 2 * onto.T @ (each * (equal + onto @ x - y)),
        constraints={"type": "ineq", "fun": lambda x: equal + onto @ x, "jac": lambda x: onto},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert loss(tables) == pytest.approx(best.fun, rel=1e-5)


def _free(held: Attributes) -> int:
    return int(np.prod([SIZES[attribute] - 1 for attribute in held]))


@pytest.mark.parametrize("attributes", range(3, 24))
@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_views_hold_all_pairs(attributes: int, epsilon: float) -> None:
    views = best_views((2,) * attributes, epsilon, 1 << 20)
    assert {pair for view in views for pair in combinations(view, 2)} == set(all_of(attributes, 2))


def test_larger_views_are_for_large_epsilons_and_few_values() -> None:
    binary, many = (2,) * 16, (2, 3, 5, 10, 2, 4, 8, 3)
    assert [len(best_views(binary, epsilon, 1 << 20)) for epsilon in (1.0, 2.0, 4.0)] == [120, 20, 20]
    assert [len(best_views(many, epsilon, 1 << 20)) for epsilon in (1.0, 2.0, 4.0)] == [28, 28, 28]
    assert best_views(binary, 4.0, 300) == tuple(all_of(16, 2))
    assert error(binary, best_views(binary, 4.0, 1 << 20), 4.0) < 0.4 * error(binary, all_of(16, 2), 4.0)

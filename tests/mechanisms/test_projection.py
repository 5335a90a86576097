"""Weighted least squares on the simplex: by its conditions, and by brute force."""

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import optimize

from uldp.mechanisms.estimators.projection import nearest_fit, wls
from uldp.mechanisms.estimators.simplex import box_of, onto_simplex
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.schemas.arrays import Counts, Floats

K, N = 6, 2000
SENSITIVE = np.arange(K) < 4
MECHANISMS: dict[str, PureMechanism] = {
    "rr": RandomizedResponse(np.ones(K, dtype=np.bool_), 1.0),
    "urr": RandomizedResponse(SENSITIVE, 1.0),
    "oue": UnaryEncoding(np.ones(K, dtype=np.bool_), 1.0, OUE_THETA),
    "urap": UnaryEncoding(SENSITIVE, 1.0, sue_theta(1.0)),
    "uoue": UnaryEncoding(SENSITIVE, 1.0, OUE_THETA),
    "ss": SubsetSelection(K, 0.5),
    "olh": LocalHashing(K, 1.0),
}
TRUTH = np.array([0.5, 0.02, 0.0, 0.08, 0.4, 0.0])


@cache
def windows(name: str) -> list[Counts]:
    mechanism, rng = MECHANISMS[name], np.random.default_rng(3)
    reports = [mechanism.perturb(rng.choice(K, N, p=TRUTH), rng) for _ in range(20)]
    for forged in reports[15:]:
        forged[: N // 3] = forged[0]
    return [mechanism.statistic(each) for each in reports]


def nearest_by_search(aim: Floats, inverse: npt.NDArray[np.floating[Any]]) -> tuple[Floats, float]:
    """The r on the simplex with the least (aim - r) @ inverse @ (aim - r), by SciPy, and this distance."""
    best = optimize.minimize(
        lambda r: float((aim - r) @ inverse @ (aim - r)),
        np.full(len(aim), 1 / len(aim)),
        method="SLSQP",
        bounds=[(0, 1)] * len(aim),
        constraints={"type": "eq", "fun": lambda r: r.sum() - 1},
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return best.x, best.fun


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_distribution_is_nearer_by_the_variances_of_the_noise(name: str) -> None:
    channel = MECHANISMS[name].channel
    for counts in windows(name):
        r = wls(channel, counts, N)
        # Without holders if q > 0, and at the solution if not. Where r_z = 0 and q_z = 0, r_z stays 0.
        noise = channel.variance_given_values(np.where(channel.q > 0, 0.0, r), N)
        free = noise > 0
        aim, inverse = channel.unbiased(counts, N)[free], np.diag(noise[free].min() / noise[free])
        best, least = nearest_by_search(aim, inverse)
        assert r[free] == pytest.approx(best, abs=1e-4)
        assert (aim - r[free]) @ inverse @ (aim - r[free]) <= least * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_distribution_fits_better_by_the_variances_at_the_fit(name: str) -> None:
    # The covariance is that of i.i.d. values: that given the values has the same solution, and the same distance.
    channel = MECHANISMS[name].channel
    for counts in windows(name):
        r, least_distance = nearest_fit(channel, counts, N)
        free = (channel.q > 0) | (r > 0)
        inverse = np.linalg.pinv(channel.covariance(r)(np.eye(K))[np.ix_(free, free)], rcond=1e-10)
        aim = channel.unbiased(counts, N)[free]
        best, least = nearest_by_search(aim, inverse)
        distance = (aim - r[free]) @ inverse @ (aim - r[free])
        assert r[free] == pytest.approx(best, abs=2e-4)
        assert distance <= least * (1 + 1e-6) + 1e-12
        assert least_distance == pytest.approx(N * distance, rel=1e-6, abs=1e-9)


@given(
    x=npst.arrays(np.float64, 5, elements=st.floats(-1, 1)),
    a=npst.arrays(np.float64, 5, elements=st.floats(0.01, 10)),
    c=npst.arrays(np.float64, 5, elements=st.floats(0, 10)),
)
def test_the_projection_satisfies_its_conditions(x: Floats, a: Floats, c: Floats) -> None:
    if x.sum() < 1:
        c = np.zeros(5)  # a variance that falls with the share would be negative, if all shares had to rise far
    r = onto_simplex(x, a, c)
    assert r.sum() == pytest.approx(1, abs=1e-12)
    rates = (x - r) / (a + c * r)
    rate = rates[np.argmax(r)]
    assert rates[r > 1e-9] == pytest.approx(rate, abs=1e-6)
    assert (rates[r == 0] <= rate + 1e-6).all()


@given(
    x=npst.arrays(np.float64, 5, elements=st.floats(0.001, 0.15)),
    c=npst.arrays(np.float64, 5, elements=st.sampled_from([1.0, 9.0, 100.0])),
    noisy=npst.arrays(np.bool_, 5).filter(lambda noisy: not noisy.all()),
)
def test_shares_that_are_missing_to_one_are_right_of_the_poles(
    x: Floats, c: Floats, noisy: npt.NDArray[np.bool_]
) -> None:
    a, c = np.where(noisy, 0.05, 0.0), np.where(noisy, 0.0, c)
    pole = -1 / c.max()
    rate = optimize.brentq(
        lambda rate: ((x - rate * a) / (1 + rate * c)).sum() - 1, pole * (1 - 1e-12), 0.0, xtol=1e-16
    )
    assert onto_simplex(x, a, c) == pytest.approx((x - rate * a) / (1 + rate * c), abs=1e-9)


def in_a_box(rng: np.random.Generator, k: int, total: float) -> tuple[Floats, Floats, Floats]:
    """Draw a vector, and a box around a vector with this sum."""
    inside = rng.dirichlet(np.ones(k)) * total
    low, high = (np.maximum(inside - rng.exponential(0.2, k), 0), inside + rng.exponential(0.2, k))
    return rng.normal(total / k, 0.5, k), low, high


@pytest.mark.parametrize("total", [1.0, 2.0])
def test_the_projection_into_a_box_is_the_best_of_all_supports(total: float) -> None:
    """Each entry is at its lower end, at its upper end, or free; of all 3^4 ways, the nearest feasible one is right."""
    rng = np.random.default_rng(8)
    for _ in range(50):
        (x, low, high), a = in_a_box(rng, 4, total), rng.uniform(0.05, 2, 4)
        found = onto_simplex(x, a, 0.0, low, high, total)
        best = np.inf
        for ways in product(range(3), repeat=4):
            way = np.array(ways)
            point, free = np.where(way == 0, low, high), way == 2
            if free.any():
                rate = (x[free].sum() + point[~free].sum() - total) / a[free].sum()
                point[free] = x[free] - rate * a[free]
            feasible = (low - 1e-12 <= point).all() and (point <= high + 1e-12).all()
            if feasible and abs(point.sum() - total) < 1e-9:
                best = min(best, float(np.sum((x - point) ** 2 / a)))
        assert found.sum() == pytest.approx(total, abs=1e-12)
        assert ((low <= found) & (found <= high)).all()
        assert float(np.sum((x - found) ** 2 / a)) == pytest.approx(best, abs=1e-9)


def test_the_projection_into_a_box_satisfies_its_conditions_if_variances_grow() -> None:
    rng = np.random.default_rng(9)
    for _ in range(100):
        (x, low, high), a, c = in_a_box(rng, 6, 1.0), rng.uniform(0.05, 2, 6), rng.uniform(0, 0.2, 6)
        r = onto_simplex(x, a, c, low, high)
        rates, free = (x - r) / (a + c * r), (r > low) & (r < high)
        assert r.sum() == pytest.approx(1, abs=1e-12)
        least, most = (rates[free].min(), rates[free].max()) if free.any() else (rates[r == high].min(), np.inf)
        assert most - least < 1e-6 or not free.any()
        # Those at the lower end would fall further, and those at the upper end would rise further.
        assert (rates[r == low] <= least + 1e-6).all() or not free.any()
        assert (rates[r == high] >= least - 1e-6).all()


def test_rows_are_projected_as_each_alone() -> None:
    rng = np.random.default_rng(10)
    rows = [in_a_box(rng, 7, 1.0) for _ in range(40)]
    x, low, high = (np.array(each) for each in zip(*rows, strict=True))
    a, c = rng.uniform(0.05, 2, (40, 7)), np.where(rng.random((40, 1)) < 0.5, 0.1, 0.0)
    together = onto_simplex(x, a, c + np.zeros(7), low, high)
    alone = [onto_simplex(*row) for row in zip(x, a, c + np.zeros(7), low, high, strict=True)]
    assert together.tolist() == np.array(alone).tolist()


def test_a_box_without_the_sum_is_left_out() -> None:
    low, high = box_of(np.array([[0.6, 0.6], [-0.1, 0.2]]), np.array([[0.9, 0.9], [0.5, 1.4]]))
    assert np.array_equal(low, [[0.0, 0.0], [0.0, 0.2]])
    assert np.array_equal(high, [[1.0, 1.0], [0.5, 1.0]])

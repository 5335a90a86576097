"""What is left out, beside what is here: the errors follow from the laws of reports."""

import math

import numpy as np
import pytest

from benchmarks.left_out import exponential, haar_errors, hadamard_transform, pairs_error, views_error
from benchmarks.ranges import SIZE
from benchmarks.trees import USERS, ends
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse


def test_the_interaction_of_a_view_has_the_error_of_reports() -> None:
    rng, n, e = np.random.default_rng(2), 100, math.exp(1.0)
    response = RandomizedResponse(np.ones(4, dtype=np.bool_), 1.0)
    gain, signs = (e - 1) / (e + 3), np.array([1, -1, -1, 1])
    reports = response.perturb(rng.integers(0, 4, 2000 * n), rng).reshape(2000, n)
    interactions = signs[reports].mean(axis=1) / gain
    assert n * interactions.var() == pytest.approx(1 / gain**2, rel=5 * math.sqrt(2 / 2000))
    assert views_error(1.0, 120, 2) == pytest.approx(120 / gain**2 * (1 + 2 / 15) / 4)
    assert pairs_error(1.0) == views_error(1.0, 120, 2)


def test_the_wavelets_of_a_range_add_up_to_it() -> None:
    shares = np.random.default_rng(3).dirichlet(np.ones(SIZE))
    (first, end), _ = ends()
    for begin, until in zip(first[:5].tolist(), end[:5].tolist(), strict=True):
        inside = (np.arange(SIZE) >= begin) & (np.arange(SIZE) < until)
        found = (until - begin) / SIZE
        for level in range(1, 11):
            halves = shares.reshape(-1, 2, 1 << level - 1).sum(axis=2)
            of_range = inside.reshape(-1, 2, 1 << level - 1).sum(axis=2)
            found += float(((halves[:, 0] - halves[:, 1]) * (of_range[:, 0] - of_range[:, 1]) / (1 << level)).sum())
        assert found == pytest.approx(shares[begin:until].sum())
    errors = [haar_errors(epsilon)[0] for epsilon in (1.0, 2.0)]
    assert errors[0] / errors[1] == pytest.approx((math.tanh(1.0) / math.tanh(0.5)) ** 2)
    assert errors[0] > 10 / USERS


def test_what_is_left_out_has_more_error_than_what_is_here() -> None:
    for epsilon in (1.0, 2.0, 4.0):
        assert hadamard_transform(epsilon) > 1.2
        assert exponential(epsilon) > 1.5
        assert views_error(epsilon, 13, 6) > views_error(epsilon, 20, 4)

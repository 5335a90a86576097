"""The variances of the mean of a number are those of reports, and hybrid is the least at its worst number."""

import numpy as np
import pytest

from benchmarks.means import EPSILONS, measure, of_block, of_duchi, of_hm, of_hybrid, of_laplace, of_numbers


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_worst_variance_of_hybrid_is_below_that_of_both_and_of_hm(epsilon: float) -> None:
    worst = of_hybrid(epsilon).max()
    assert worst == pytest.approx(of_hybrid(epsilon).min(), rel=1e-9)
    assert worst <= of_hm(epsilon).max() * (1.0 if epsilon >= 1 else 1.001)
    better = min(of_duchi(epsilon).max(), of_block(epsilon).max())
    assert worst <= (0.93 if 1 <= epsilon <= 2.5 else 1.0) * better


@pytest.mark.parametrize("number", [-1.0, 0.3])
def test_reports_have_this_variance_and_their_intervals_cover(number: float) -> None:
    found = measure(1.5, number, windows=400)
    variance = float(of_hybrid(1.5, np.array([number]))[0])
    assert found.error == pytest.approx(variance, rel=5 * np.sqrt(2 / 400))
    assert 0.92 <= found.coverage <= 0.98


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_several_numbers_of_a_user_have_more_error_than_one(epsilon: float) -> None:
    errors = dict(of_numbers(epsilon))
    assert errors["block"] < errors["PM, m = 1"] < errors["PM, m = 2"] < errors["PM, m = 3"]
    assert of_laplace(epsilon) > 1.8 * of_hybrid(epsilon).max()

"""Intervals and tails of one proportion, held against SciPy's statistics, exact fractions and their own promise."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from uldp.mechanisms.kernels.intervals import clopper_pearson, lower_tail, outside_p_value

TRIALS = st.integers(1, 2**40)


@given(st.data(), TRIALS, st.floats(0.01, 0.999))
def test_ends_are_where_the_tails_are_half_of_the_rest(data: st.DataObject, n: int, level: float) -> None:
    # Above 10^9 trials, SciPy has fewer digits of a tail: an end is off by up to 1e-4 standard errors.
    digits = 1e-6 if n <= 10**9 else 1e-3
    successes = data.draw(st.integers(0, n // 2))
    ((low,), (high,)) = clopper_pearson([successes], n, level)
    if successes > 0:
        assert stats.binom.sf(successes - 1, n, low) == pytest.approx((1 - level) / 2, rel=digits)
    assert stats.binom.cdf(successes, n, high) == pytest.approx((1 - level) / 2, rel=digits)
    # Failures have the mirrored interval. Near 1, floats are too coarse for a look at its tails.
    assert np.ravel(clopper_pearson([n - successes], n, level)) == pytest.approx([1 - high, 1 - low], abs=1e-14)


def test_proportions_of_different_trials_are_computed_at_once() -> None:
    low, high = clopper_pearson([0, 3, 5], [4, 3, 9], 0.95)
    each = [clopper_pearson([c], n, 0.95) for c, n in [(0, 4), (3, 3), (5, 9)]]
    assert low.tolist() == [one[0][0] for one in each]
    assert high.tolist() == [one[1][0] for one in each]
    assert (low[0], high[1]) == (0, 1)


@given(st.data(), st.integers(1, 60), st.fractions(0, 1, max_denominator=64))
def test_a_tail_is_the_sum_of_its_outcomes(data: st.DataObject, n: int, p: Fraction) -> None:
    successes = data.draw(st.integers(0, n))
    wanted = sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(successes + 1))
    # The relative error stays small where the tail is 1e-100.
    assert lower_tail(successes, n, float(p)) == pytest.approx(float(wanted), rel=1e-12, abs=0)


@pytest.mark.parametrize("n", [10**11, 10**12, 1 << 40])
def test_any_number_of_trials_has_ends(n: int) -> None:
    successes = np.array([0, 1, 10**9, 10**10 + 1, n // 3, n // 2, n - 10**10 - 1, n - 1, n])
    low, high = clopper_pearson(successes, n, 0.95)
    fraction = successes / n
    assert ((low <= fraction) & (fraction <= high)).all()
    normal = 1.959964 * np.sqrt(fraction * (1 - fraction) / n)
    middle = slice(2, -2)
    assert (fraction - low)[middle] == pytest.approx(normal[middle], rel=1e-4)
    assert (high - fraction)[middle] == pytest.approx(normal[middle], rel=1e-4)


@pytest.mark.parametrize("counts", [[10, 10, 10], [10, 10, 30], [1, 10, 10], [0, 40, 10]])
def test_some_count_outside_is_judged_by_bonferroni_over_both_tails_of_all(counts: list[int]) -> None:
    n, least, most = 40, 0.2, 0.3
    few, many = stats.binom.cdf(counts, n, least), stats.binom.sf(np.array(counts) - 1, n, most)
    wanted = min(1.0, 2 * len(counts) * min(*few, *many))
    assert outside_p_value(np.array(counts), n, least, most) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda: clopper_pearson([-1], 3, 0.95), "successes must be from 0 to n"),
        (lambda: lower_tail(4, 3, 0.5), "successes must be from 0 to n"),
        (lambda: clopper_pearson([0], 0, 0.95), "one trial or more"),
        (lambda: lower_tail(0, 0, 0.5), "one trial or more"),
        *(
            (lambda level=level: clopper_pearson([1], 2, level), "coverage must be inside")
            for level in (0, 1, math.nan)
        ),
        *((lambda p=p: lower_tail(1, 2, p), "probability must be in") for p in (-0.1, 1.1, math.nan)),
    ],
)
def test_what_is_refused(ask: Callable[[], object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ask()

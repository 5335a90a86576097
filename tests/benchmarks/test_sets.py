"""The measurement of sets beside their closed forms, and the closed form of pad-and-sample."""

import math

import numpy as np
import pytest

from benchmarks.sets import measure, padded_variance, variance


@pytest.mark.parametrize("name", ["set-ss", "set-olh"])
def test_shares_have_the_variance_of_the_closed_form(name: str) -> None:
    found = measure(name, 40, 3, 1.0, 40, np.random.default_rng(1))
    # 40 items in 40 windows: a variance is known to 2 / sqrt(1600) at about two standard errors, or less.
    assert abs(found.ratio - 1) < 4 * math.sqrt(2 / 1600)
    assert abs(found.coverage - 0.96) < 0.03
    assert found.flagged == 0


def test_one_item_of_a_report_of_one_symbol_is_sampled_as_by_subset_selection() -> None:
    """With l = 1, pad-and-sample is randomized response or OUE, and subset selection has no more variance."""
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        assert variance("set-ss", 100, 1, epsilon, 0.05) <= 1.001 * padded_variance(100, 1, epsilon, 0.05)

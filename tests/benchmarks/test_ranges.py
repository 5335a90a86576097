"""Sums over ranges: errors by brute force, and which estimator is biased."""

import numpy as np
import pytest

from benchmarks import ranges
from benchmarks.ranges import errors_of_ranges, measure


def test_errors_are_those_of_all_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "LENGTHS", (2,))
    estimate, truth = np.array([0.5, 0.2, 0.3]), np.array([0.4, 0.4, 0.2])
    assert errors_of_ranges(estimate, truth) == pytest.approx([((0.7 - 0.8) ** 2 + (0.5 - 0.6) ** 2) / 2])


def test_sums_of_unbiased_shares_have_less_error_than_those_of_auto() -> None:
    errors = measure(2_000_000, windows=2)
    assert (2 * errors["empirical"][1:] < errors["auto"][1:]).all()  # of 128 and 512 values
    assert (2 * errors["block, ems"] < errors["empirical"]).all()

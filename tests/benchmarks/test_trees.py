"""Ranges over trees: the shapes, and which estimator is closer for short ranges."""

import numpy as np
import pytest

from benchmarks.trees import measure, shapes


def test_each_shape_is_of_shares() -> None:
    for truth in shapes().values():
        assert truth.min() >= 0
        assert truth.sum() == pytest.approx(1)


def test_auto_is_closer_in_short_ranges_and_in_all_values_together() -> None:
    errors = measure(1.0, shapes()["falling"], windows=1)
    assert (errors["auto"][1:] < errors["empirical"][1:]).all()
    assert np.isfinite(errors["empirical"]).all()

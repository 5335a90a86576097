"""How often intervals of ranges and quantiles cover the truth."""

import pytest

from benchmarks.asked_ranges import SIZES, measure
from benchmarks.quantiles import SHAPES


def test_ranges_and_quantiles_of_a_tree_cover() -> None:
    """Those of one window depend on each other, so 20 windows are few, and the bounds are wide."""
    found = measure("tree", "beta", 2_000, 20)
    assert found.ranges >= 0.85
    assert min(found.quantiles) >= 0.8


@pytest.mark.nightly
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_of_a_tree_cover_as_often_as_they_say(shape: str, n: int) -> None:
    found = measure("tree", shape, n, 100)
    assert 0.92 <= found.ranges <= 0.98
    assert min(found.quantiles) >= 0.95

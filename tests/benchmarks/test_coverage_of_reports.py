"""Coverage by reports: every mechanism is measured, and intervals of some cover."""

import pytest

from benchmarks.coverage_of_reports import measure


@pytest.mark.parametrize(
    "name", ["ubd", "hrr", "she", "she with a permanent response", "bit-flip", "cohort-olh", "sample-one"]
)
def test_intervals_from_device_to_table_cover(name: str) -> None:
    # 100 values in 40 windows: the mean of 4000, which depend on each other a little, has an error of about .004.
    assert 0.93 <= measure(name, 1000, 40).common <= 0.99

"""The census by the utility-optimized mechanisms: the formulas of their errors, and reports."""

import pytest

from benchmarks.designs import rows


@pytest.mark.slow
def test_block_designs_are_the_most_accurate_and_reports_agree_with_the_formula() -> None:
    found = rows(2.0, windows=20)
    assert found["ubd"][0] == pytest.approx(0.55, abs=0.01)
    assert found["uss"][0] < 0.6
    assert found["urap, theta: auto"][2] < 0.95
    for _, reports, _ in found.values():
        assert reports == pytest.approx(1, abs=0.15)

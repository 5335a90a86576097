"""How often intervals cover the truth, and what else the benchmarks of answers must show."""

import pytest

from benchmarks import asked_ranges, coverage_of_reports, questions
from benchmarks.asked_windows import MECHANISMS, kept, sliding
from benchmarks.quantiles import SHAPES
from benchmarks.rollups import measure as measure_rollup
from uldp.mechanisms.questions.periods import EVERY, Every


@pytest.mark.parametrize("n", asked_ranges.SIZES)
@pytest.mark.parametrize("shape", SHAPES)
def test_ranges_and_quantiles_of_a_tree_cover(shape: str, n: int) -> None:
    found = asked_ranges.measure("tree", shape, n, 100)
    assert 0.92 <= found.ranges <= 0.98
    assert min(found.quantiles) >= 0.95


@pytest.mark.parametrize("name", MECHANISMS)
def test_answers_over_windows_are_of_kept_responses_and_of_slices(name: str) -> None:
    *of_kept, as_if_others = kept(name, 1000)
    assert all(0.93 <= covered <= 0.975 for covered in (*of_kept, *sliding(name, 1000)))
    assert as_if_others <= 0.92


@pytest.mark.parametrize(
    "name", ["ubd", "hrr", "she", "she with a permanent response", "bit-flip", "cohort-olh", "sample-one"]
)
def test_intervals_from_device_to_table_cover(name: str) -> None:
    # 100 values in 40 windows: the mean of 4000, which depend on each other a little, has an error of about .004.
    assert 0.93 <= coverage_of_reports.measure(name, 1000, 40).common <= 0.99


@pytest.mark.parametrize("n", questions.SIZES)
@pytest.mark.parametrize("name", questions.MECHANISMS)
def test_sums_and_differences_cover(name: str, n: int) -> None:
    """Of single values, some are rare, and few counts of them leave few intervals to choose from."""
    of_three, of_ten, of_values, _, of_sums = questions.measure(name, n, 2000)
    assert all(0.93 <= covered <= 0.97 for covered in (of_three, of_ten, of_sums))
    assert 0.93 <= of_values <= (0.985 if n < 1000 else 0.97)


@pytest.mark.parametrize("every", EVERY)
def test_summed_counts_of_a_year_of_hours_cover_where_the_mean_of_rows_does_not(every: Every) -> None:
    measured = [measure_rollup(every, seed) for seed in range(4)]
    for which in (1, 2):
        assert 0.93 <= sum(year[which].covered for year in measured) / 4 <= 0.97
    assert sum(year[0].covered for year in measured) / 4 < 0.93


def test_a_month_of_summed_counts_is_closer_than_the_mean_of_rows() -> None:
    rows, _, summed = measure_rollup("1d", 1, hours=60 * 24)
    assert summed.l1 < rows.l1

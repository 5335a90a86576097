"""The benchmark of roll-ups, and what it must show."""

import pytest

from benchmarks.rollups import measure
from uldp.mechanisms.questions.periods import EVERY, Every


@pytest.mark.nightly
def test_a_month_of_summed_counts_covers_where_the_mean_of_rows_does_not() -> None:
    """20 intervals of 60 days by day: 1,200 in all, of which 60 miss, and more than 92 with a probability of 1e-4.

    The intervals of one day depend on each other a little, which makes their number vary less.
    """
    rows, unbiased, summed = measure("1d", 1, hours=60 * 24)
    assert summed.covered >= 1 - 92 / 1200
    assert unbiased.covered >= 1 - 92 / 1200
    assert summed.l1 < rows.l1


@pytest.mark.nightly
@pytest.mark.parametrize("every", EVERY)
def test_a_year_of_hours_covers(every: Every) -> None:
    measured = [measure(every, seed) for seed in range(4)]
    for which in (1, 2):
        assert 0.93 <= sum(year[which].covered for year in measured) / 4 <= 0.97
    assert sum(year[0].covered for year in measured) / 4 < 0.93

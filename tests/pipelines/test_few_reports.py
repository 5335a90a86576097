"""The warning about results of which most windows count few reports."""

from collections.abc import Sequence

import pytest

from tests import build
from tests.build import HOUR, START
from uldp.pipelines.caveats import few_reports


@pytest.mark.parametrize(
    ("windows", "few"),
    [
        ([], None),
        ([9] * 100, None),
        ([9] * 101, "101 of 101"),
        ([10] * 5_000, None),
        ([9] * 101 + [10] * 101, None),
        ([9] * 102 + [10] * 101, "102 of 203"),
        ([1] * 1_000 + [1_000_000], "1,000 of 1,001"),
        ([0] * 5_000 + [9] * 100, None),  # windows that late and rejected reports name
        ([0] * 5_000 + [9] * 101, "101 of 101"),
    ],
)
def test_most_windows_and_more_than_a_hundred_count_few_reports(windows: Sequence[int], few: str | None) -> None:
    panes = [build.pane([n], start=START + hour * HOUR) for hour, n in enumerate(windows)]
    assert few_reports(panes) == (
        few
        and f"warning: {few} windows count fewer than 10 reports: windows are too short, or a sender has made up event "
        "times; take longer windows, or lower limits.max_age"
    )

"""Counts of windows are summed, and each report is in exactly one number."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, START
from uldp.mechanisms.questions.periods import Every, zone_of
from uldp.mechanisms.questions.rollup import roll_up
from uldp.mechanisms.questions.span import Span, Version
from uldp.schemas.errors import RequestError
from uldp.schemas.flags import Flag
from uldp.schemas.statistic import Statistic

UTC = zone_of("UTC")
#: The midnight before ``START``, which is 09:00.
DAY = START - 9 * HOUR


def spans(statistics: list[Statistic], every: Every | None, **keys: Any) -> list[Span]:
    return roll_up(Version(build.spec(**keys)), statistics, every, UTC)


def counted(n: int, start: int = START, **fields: Any) -> Statistic:
    """n reports in an hour, all of value 0 but the first."""
    return build.pane([n - 1, 1, 0, 0, 0], start=start, **fields)


def test_a_day_is_the_sum_of_its_hours() -> None:
    hours = [counted(10 + hour, DAY + hour * HOUR) for hour in range(48)]
    first, second = spans(hours, "1d")
    assert (first.n, second.n) == (sum(range(10, 34)), sum(range(34, 58)))
    assert first.cells.tolist() == [first.n - 24, 24, 0, 0, 0]
    assert (len(first.sizes), first.period.name) == (24, "2026-01-01")
    assert first.accounting.counted == first.n


def test_the_estimate_of_a_sum_is_that_of_its_counts_and_not_the_mean_of_the_estimates() -> None:
    hours = [counted(10 + 90 * (hour % 2), DAY + hour * HOUR) for hour in range(24)]
    (day,) = spans(hours, "1d")
    (share,) = day.tables("empirical")
    decoder = day.version.decoder
    weights = np.array([hour.n for hour in hours])
    of_hours = np.array([decoder.linear(hour.cells, hour.n).values for hour in hours])
    assert share.values == pytest.approx(weights @ of_hours / weights.sum())
    assert share.values != pytest.approx(of_hours.mean(axis=0), rel=0.01)


def test_counts_of_another_device_half_are_not_added() -> None:
    with pytest.raises(RequestError, match=r"c v1: the window from .* another device half"):
        spans([counted(10, device_digest="other")], "1d")


def test_few_windows_are_joined_with_neighbours_and_each_report_is_in_one_number() -> None:
    few = (Flag.FEW_REPORTS,)
    sizes = [150, 40, 70, 200, 30, 120, 101]
    hours = [counted(n, START + i * HOUR, flags=few if n < 100 else ()) for i, n in enumerate(sizes)]
    joined = spans(hours, None, limits={"min_reports": 100})
    assert [span.sizes for span in joined] == [(150,), (40, 70, 200, 30), (120,), (101,)]
    assert all(one.period.end <= other.period.start for one, other in pairwise(joined))
    assert all(span.passes() for span in joined)


def test_nobody_gets_the_counts_of_few_reports_by_a_subtraction() -> None:
    """A published window and one of few reports make a sum, which minus the published window is that of the few."""
    few = (Flag.FEW_REPORTS,)
    days = [counted(150), counted(40, START + HOUR, flags=few), counted(90, START + 24 * HOUR, flags=few)]
    (both,) = spans(days, "1d", limits={"min_reports": 100})
    assert (both.sizes, both.apart, both.period.name) == ((150, 40, 90), (130,), "2026-01-01 to 2026-01-02")
    assert spans(days[:2], "1d", limits={"min_reports": 100}) == []


def test_sliding_windows_count_each_report_once() -> None:
    """Of windows of two hours every hour, those that begin at even hours have all reports of a day."""
    sliding = {"window": {"size": "2h", "period": "1h"}}
    windows = [counted(20, DAY + i * HOUR, end=DAY + (i + 2) * HOUR) for i in range(23)]
    (day,) = spans(windows, "1d", **sliding)
    assert (day.n, len(day.sizes)) == (20 * 12, 12)


def test_sliding_windows_that_do_not_divide_a_day_are_refused() -> None:
    window = counted(20, DAY, end=DAY + 5 * HOUR)
    with pytest.raises(RequestError, match="sliding windows of 5h do not divide"):
        spans([window], "1d", window={"size": "5h", "period": "1h"})

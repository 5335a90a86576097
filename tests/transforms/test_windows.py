"""Windows, element times and panes. How they play together on a stream is in test_aggregate.py."""

from typing import Any

import pytest
from apache_beam.transforms import trigger
from apache_beam.transforms.window import FixedWindows, GlobalWindow, SlidingWindows, WindowFn
from apache_beam.utils.timestamp import Duration, Timestamp
from apache_beam.utils.windowed_value import PaneInfo, PaneInfoTiming
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, START
from uldp.collector.collections import AMENDABLE_FOR, serve
from uldp.schemas.pane import Pane, PaneKind
from uldp.schemas.specs.collection import WindowSpec
from uldp.schemas.specs.durations import milliseconds
from uldp.transforms.windows import at_time, expires, in_window, pane_of, window_fn, window_into, window_label

#: From 1970 to 9999.
TIMES = st.integers(0, 253_402_300_799_999)


def window(**keys: str) -> WindowSpec:
    return WindowSpec.model_validate(keys)


def intervals(windows: WindowFn, at: int) -> list[tuple[int, int]]:
    """Start and end, in milliseconds, of the windows that hold a time."""
    assigned = windows.assign(WindowFn.AssignContext(Timestamp(micros=at * 1000)))
    return sorted((found.start.micros // 1000, found.end.micros // 1000) for found in assigned)


@pytest.mark.parametrize(
    ("keys", "label"),
    [
        ({"size": "1h"}, "Fixed1hLate0d"),
        ({"size": "60m", "allowed_lateness": "24h"}, "Fixed1hLate1d"),
        ({"size": "1h", "early_every": "30s", "allowed_lateness": "1d"}, "Fixed1hEarly30sLate1d"),
        ({"size": "1h", "period": "15m", "allowed_lateness": "90s"}, "Sliding1hEvery15mLate90s"),
        ({"size": "1h", "period": "15m", "early_every": "1m"}, "Sliding1hEvery15mEarly1mLate0d"),
    ],
)
def test_a_label_says_all_of_a_policy_and_nothing_else(keys: dict[str, str], label: str) -> None:
    assert window_label(window(**keys)) == label


@given(TIMES, st.sampled_from(["250ms", "1s", "7m", "1h", "1d"]))
def test_a_time_is_in_one_fixed_window_aligned_to_1970(at: int, size: str) -> None:
    spec = window(size=size)
    ((start, end),) = intervals(window_fn(spec), at)
    assert start <= at < end
    assert end - start == milliseconds(spec.size)
    assert start % milliseconds(spec.size) == 0


@given(TIMES, st.sampled_from([("1h", "15m"), ("1h", "1h"), ("1d", "1h"), ("6s", "2s"), ("1s", "250ms")]))
def test_a_time_is_in_size_over_period_sliding_windows(at: int, shape: tuple[str, str]) -> None:
    spec = window(size=shape[0], period=shape[1])
    assert spec.period is not None
    size, period = milliseconds(spec.size), milliseconds(spec.period)
    newest = at // period * period
    assert intervals(window_fn(spec), at) == [
        (start, start + size) for start in range(newest - size + period, newest + 1, period)
    ]


@given(TIMES, st.integers(-HOUR, HOUR), st.sampled_from([("1h", None), ("1h", "15m"), ("1s", "250ms")]))
def test_times_of_one_slice_are_in_the_same_windows(a: int, later: int, shape: tuple[str, str | None]) -> None:
    spec = build.spec(window={"size": shape[0]} | ({"period": shape[1]} if shape[1] else {}))
    served, windows = serve([spec])[spec.key], window_fn(spec.window)
    start = a // served.slice_size * served.slice_size
    # Whatever belongs to a slice travels at its last millisecond.
    assert intervals(windows, a) == intervals(windows, served.last_of_slice(start))
    same_slice = start <= a + later <= served.last_of_slice(start)
    assert same_slice == (intervals(windows, a) == intervals(windows, a + later))


@given(TIMES)
def test_at_time_dates_an_element_in_the_global_window(at: int) -> None:
    element = at_time(at, "x")
    assert element.value == "x"
    assert element.timestamp == Timestamp(micros=at * 1000)
    assert element.windows == (GlobalWindow(),)


def test_a_bounded_job_has_beams_default_trigger() -> None:
    spec = window(size="1h", early_every="30s", allowed_lateness="1d")
    windowing = window_into(spec, bounded=True).windowing
    assert windowing.windowfn == FixedWindows(3600)
    assert windowing.triggerfn == trigger.DefaultTrigger()


@pytest.mark.parametrize(
    ("keys", "windows", "hours"),
    [
        ({"size": "1h"}, FixedWindows(3600), 1),
        ({"size": "1h", "allowed_lateness": "2h"}, FixedWindows(3600), 3),
        ({"size": "1h", "period": "15m", "allowed_lateness": "2h"}, SlidingWindows(3600, 900), 4),
    ],
)
def test_state_outlives_the_closing_of_the_last_window_and_a_day(
    keys: dict[str, str], windows: WindowFn, hours: int
) -> None:
    windowing = window_into(window(**keys), bounded=False).windowing
    assert windowing.windowfn == windows
    assert windowing.allowed_lateness == Duration(hours * 3600 + AMENDABLE_FOR.total_seconds())
    assert windowing.accumulation_mode == trigger.AccumulationMode.ACCUMULATING
    end = Timestamp(3600) - Duration(micros=1)
    assert expires(window(**keys), end) == end + windowing.allowed_lateness


@pytest.mark.parametrize("early_every", ["1s", "30s", "1h"])
def test_early_panes_come_as_often_as_the_spec_says(early_every: str) -> None:
    spec = window(size="1h", early_every=early_every)
    assert spec.early_every is not None
    after_watermark: Any = window_into(spec, bounded=False).windowing.triggerfn
    assert isinstance(after_watermark, trigger.AfterWatermark)
    early = after_watermark.early.underlying
    assert isinstance(early, trigger.AfterProcessingTime)
    assert early.delay == spec.early_every.total_seconds()


def test_there_are_no_early_panes_unless_the_spec_asks() -> None:
    after_watermark: Any = window_into(window(size="1h"), bounded=False).windowing.triggerfn
    assert after_watermark.early is None
    assert after_watermark.late.underlying == trigger.AfterCount(1)


@pytest.mark.parametrize(
    ("index", "nonspeculative", "pane"),
    [
        (0, -1, Pane(PaneKind.EARLY, 0)),
        (4, -1, Pane(PaneKind.EARLY, 4)),
        (0, 0, Pane(PaneKind.ON_TIME, 0)),
        (5, 0, Pane(PaneKind.ON_TIME, 5)),
        (6, 1, Pane(PaneKind.LATE, 6)),
        (9, 4, Pane(PaneKind.LATE, 9)),
    ],
)
@pytest.mark.parametrize("timing", [PaneInfoTiming.EARLY, PaneInfoTiming.ON_TIME, PaneInfoTiming.LATE])
def test_a_pane_is_of_the_kind_of_its_nonspeculative_index(
    index: int, nonspeculative: int, pane: Pane, timing: int
) -> None:
    info = PaneInfo(False, False, timing, index, nonspeculative)
    assert pane_of(info) == pane


def test_what_is_put_into_a_window_has_its_last_millisecond() -> None:
    put = in_window(START, START + HOUR, "value")
    (window,) = put.windows
    assert (window.start, window.end) == (Timestamp(micros=1000 * START), Timestamp(micros=1000 * (START + HOUR)))
    assert put.timestamp == Timestamp(micros=1000 * (START + HOUR - 1))

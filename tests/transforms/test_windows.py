"""Windows, element times and panes. How they play together on a stream is in test_aggregate.py."""

import pytest
from apache_beam.transforms.window import WindowFn
from apache_beam.utils.timestamp import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR
from uldp.collector.collections import AMENDABLE_FOR, serve
from uldp.schemas.specs.durations import milliseconds
from uldp.schemas.specs.window import WindowSpec
from uldp.transforms.windows import window_fn, window_label

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


@given(TIMES, st.integers(-HOUR, HOUR), st.sampled_from([("1h", None), ("1h", "15m"), ("1s", "250ms")]))
def test_times_of_one_slice_are_in_the_same_windows(a: int, later: int, shape: tuple[str, str | None]) -> None:
    spec = build.spec(window={"size": shape[0]} | ({"period": shape[1]} if shape[1] else {}))
    served, windows = serve([spec])[spec.key], window_fn(spec.window)
    start = a // served.slice_size * served.slice_size
    # Whatever belongs to a slice travels at its last millisecond.
    assert intervals(windows, a) == intervals(windows, served.last_of_slice(start))
    same_slice = start <= a + later <= served.last_of_slice(start)
    assert same_slice == (intervals(windows, a) == intervals(windows, a + later))


@pytest.mark.parametrize(
    ("keys", "hours"),
    [
        ({"size": "1h"}, 1),
        ({"size": "1h", "allowed_lateness": "2h"}, 3),
        ({"size": "1h", "period": "15m", "allowed_lateness": "2h"}, 4),
    ],
)
def test_state_outlives_the_closing_of_the_last_window_and_a_day(keys: dict[str, str], hours: int) -> None:
    spec = build.spec(window=keys)
    assert serve([spec])[spec.key].held_for == hours * HOUR + milliseconds(AMENDABLE_FOR)

"""Times in specs: durations, what a device sends of the time of its observation, and which windows may come later."""

import re
from datetime import timedelta
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, MINUTE, START
from uldp.mechanisms.devices.device import Device
from uldp.schemas.framing import report_store
from uldp.schemas.specs.durations import format_duration, milliseconds, parse_duration
from uldp.schemas.specs.specfile import SpecError
from uldp.schemas.specs.window import WindowSpec

MIDNIGHT = START - 9 * HOUR


@pytest.mark.parametrize(
    ("window", "time", "expected"),
    [
        ({"size": "1h"}, START + 59 * MINUTE, START),
        ({"size": "1h"}, START, START),
        ({"size": "1h"}, START - 1, START - HOUR),
        ({"size": "1d"}, START, MIDNIGHT),
        ({"size": "1d", "period": "3h"}, START + 119 * MINUTE, START),
        ({"size": "1h"}, -1, -HOUR),
    ],
)
def test_devices_round_down_to_the_slice(window: dict[str, str], time: int, expected: int) -> None:
    spec = build.spec(window=window)
    assert spec.sent_time(time) == expected
    assert spec.sent_time(np.array([time, time])).tolist() == [expected] * 2
    assert report_store().decode(Device(spec, {}).report(3, time))[1]["event_time"] == expected


def test_the_exact_time_leaves_only_if_the_spec_asks() -> None:
    spec = build.spec(event_time="exact")
    assert report_store().decode(Device(spec, {}).report(3, START + 1))[1]["event_time"] == START + 1


def test_other_words_are_refused() -> None:
    with pytest.raises(SpecError, match=r"event_time: must be one of 'slice' or 'exact' \(got 'hour'\)"):
        build.spec(event_time="hour")


#: Minutes of a time from before 1970 on.
TIMES = range(-60, 180)


def window(minutes: int, offset: int = 0, **keys: Any) -> WindowSpec:
    return WindowSpec.model_validate({"size": f"{minutes}m", "offset": f"{offset}m"} | keys)


def begins(time: int, size: int, offset: int) -> int:
    """The last time up to this one that is ``offset`` after a multiple of ``size``, found by going back."""
    while (time - offset) % size:
        time -= 1
    return time


@pytest.mark.parametrize("before", [(4, 0), (4, 1), (4, 3), (6, 2)])
def test_slices_may_change_if_each_time_that_a_device_rounds_is_in_the_window_of_the_time_itself(
    before: tuple[int, int],
) -> None:
    allowed = set()
    for size, offset in ((number, moved) for number in range(1, 25) for moved in range(number)):
        right = all(begins(begins(time, *before), size, offset) == begins(time, size, offset) for time in TIMES)
        assert (window(size, offset).splits(window(*before)) is None) == right
        allowed |= {size} if right else set()
    assert allowed == {size for size in range(1, 25) if not size % before[0]}


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        (window(60), window(10), "window.size, 10m, cuts apart slices of 1h, by which devices"),
        (window(60), window(60, period="10m"), "window.period, 10m, cuts apart slices of 1h, by which devices"),
        (window(60, period="20m"), window(60, period="30m"), "window.period, 30m, cuts apart slices of 20m, by which"),
        (window(60), window(120, 90), "window.offset, 90m, cuts apart slices of 1h, by which devices"),
    ],
)
def test_the_key_the_slice_of_devices_and_the_remedy_are_named(before: WindowSpec, now: WindowSpec, says: str) -> None:
    cut = now.splits(before)
    assert cut is not None
    assert cut.startswith(says)
    assert cut.endswith("give the spec a new version")


def test_a_longer_window_of_the_same_slices_and_shorter_ones_of_sliding_windows_are_right() -> None:
    sliding = [window(size, period="10m") for size in (10, 30, 60)]
    assert {now.splits(before) for now, before in product([*sliding, window(10)], repeat=2)} == {None}


@given(st.integers(0, 999_999_999), st.sampled_from(["ms", "s", "m", "h", "d"]))
def test_durations_round_trip(number: int, unit: str) -> None:
    duration = parse_duration(f"{number}{unit}")
    assert parse_duration(format_duration(duration)) == duration
    assert milliseconds(duration) == number * {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}[unit]


@given(st.integers(1, 10**9), st.sampled_from(["ms", "s", "m", "h", "d"]))
def test_a_duration_is_written_in_the_largest_unit_that_divides_it(number: int, unit: str) -> None:
    match = re.fullmatch(r"(\d+)(ms|s|m|h|d)", format_duration(timedelta(milliseconds=number)))
    assert match is not None
    larger = {"ms": 1000, "s": 60, "m": 60, "h": 24}.get(match[2])
    assert larger is None or int(match[1]) % larger


@pytest.mark.parametrize(
    "text", ["", "1", "h", "1w", "1H", "1e3s", "1h30m", " 1h", "1h ", "+1h", "1000000000s", 60, None]
)
def test_anything_else_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match=r"^write a duration as a whole number and a unit"):
        parse_duration(text)

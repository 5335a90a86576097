"""Which windows a version may have later: each slice by which its devices round must lie in one of theirs."""

from itertools import product
from typing import Any

import pytest

from uldp.schemas.specs.window import WindowSpec

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

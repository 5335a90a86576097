"""Windows as sums of slices, against putting each slice into each of its windows, and against Beam's own windows."""

from collections import Counter
from dataclasses import replace
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import WindowFn
from apache_beam.utils.timestamp import Duration, Timestamp
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR
from uldp.collector.collections import AMENDABLE_FOR, serve
from uldp.collector.partial import Partial
from uldp.mechanisms.protocol.cells import as_dense
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.durations import milliseconds
from uldp.schemas.specs.window import WindowSpec
from uldp.transforms.count import KeyedPartial, KeyedSpan, SumFixedWindows
from uldp.transforms.slide import SumSlidingWindows, slide
from uldp.transforms.windows import at_time, window_fn, window_label

PERIOD = 10


def part(n: int) -> Partial:
    return build.part(np.array([n, 1]), Accounting(received=n, counted=n))


def value(partial: Partial) -> tuple[list[int], Accounting]:
    assert partial.cells is not None
    return as_dense(partial.cells).tolist(), partial.accounting


@given(
    st.dictionaries(st.integers(0, 30) | st.integers(0, 10**9), st.integers(0, 9), max_size=12),
    st.integers(1, 7),
    st.integers(0, PERIOD - 1),
)
def test_a_window_is_the_sum_of_its_slices(slots: dict[int, int], length: int, offset: int) -> None:
    size = length * PERIOD
    slices = {slot * PERIOD + offset: part(n) for slot, n in slots.items()}
    wanted: dict[int, Partial] = {}
    for start, partial in slices.items():
        for window in range(start - size + PERIOD, start + PERIOD, PERIOD):
            wanted[window] = wanted[window] + partial if window in wanted else partial
    found = list(slide(slices, size, PERIOD, offset))
    assert len({start for start, _ in found}) == len(found)
    assert {start: value(total) for start, total in found} == {start: value(total) for start, total in wanted.items()}


LOST = st.dictionaries(st.integers(0, 40), st.integers(1, 9), max_size=8)


@given(LOST, LOST, st.integers(1, 7))
def test_what_is_missing_in_a_slice_is_missing_in_the_window_that_begins_with_it(
    lost: dict[int, int], counted: dict[int, int], length: int
) -> None:
    slices = {slot * PERIOD: part(n) for slot, n in counted.items()}
    without = {start: value(total) for start, total in slide(slices, length * PERIOD, PERIOD)}
    for slot, n in lost.items():
        before = slices.get(slot * PERIOD, Partial())
        slices[slot * PERIOD] = before + build.part(accounting=Accounting(missing=n))
    found = dict(slide(slices, length * PERIOD, PERIOD))
    assert found.keys() == without.keys() | {slot * PERIOD for slot in lost}
    missing = {start: total.accounting.missing for start, total in found.items()}
    assert missing == dict.fromkeys(found, 0) | {slot * PERIOD: n for slot, n in lost.items()}
    counts = {
        start: (as_dense(each.cells).tolist(), replace(each.accounting, missing=0))
        for start, each in found.items()
        if each.cells is not None
    }
    assert counts == without


def dated_windows(element: KeyedPartial, size: int, window: Any = beam.DoFn.WindowParam) -> list[Any]:
    """The windows of a sum of a bounded job; the first one's is the element's, unless they slide."""
    key, sums = element
    windows = [(start * 1000, (start + size) * 1000, partial) for start, partial in sums.slices()]
    assert window.end - window.start == Duration(micros=size * 1000)
    return [(key, start, end, partial.accounting.received) for start, end, partial in windows]


@pytest.mark.parametrize("period", [None, "15m"], ids=["fixed", "sliding"])
def test_the_sums_are_those_of_beams_windows(period: str | None) -> None:
    """Of spans of three hours, as ``count_support`` cuts them, or of slices."""
    keys = {"size": "1h"} | ({"period": period} if period else {})
    specs = [build.spec(collection=name, window=keys) for name in "cd"]
    spec, rng = specs[0].window, np.random.default_rng(1)
    piece, long = milliseconds(spec.slice), milliseconds(spec.size)
    slots = [(str(rng.choice(["c", "d"])), int(rng.integers(0, 5 * long)) // piece * piece, n) for n in range(1, 41)]
    wanted: Counter[tuple[tuple[str, int], int, int]] = Counter()
    for name, time, n in slots:
        for window in window_fn(spec).assign(WindowFn.AssignContext(Timestamp(micros=time * 1000))):
            wanted[(name, 1), window.start.micros, window.end.micros] += n
    origins = [time if period else time // (3 * long) * (3 * long) for _, time, _ in slots]
    elements = [
        at_time(origin + (piece - 1 if period else 0), (((name, 1), origin), part(n).at(time)))
        for origin, (name, time, n) in zip(origins, slots, strict=True)
    ]
    summed = SumSlidingWindows(spec, specs) if period else SumFixedWindows(spec)
    with beam.Pipeline("FnApiRunner") as pipeline:
        sums = (
            pipeline
            | "Indices" >> beam.Create(range(len(elements)))
            | "Parts" >> beam.Map(elements.__getitem__).with_output_types(KeyedSpan)
            | "Sum" >> summed
            | "Date" >> beam.FlatMap(dated_windows, long)
        )
        assert_that(sums, equal_to([(*window, n) for window, n in wanted.items()]))


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

"""Sliding windows as sums of slices, against putting each slice into each of its windows."""

from collections import Counter
from dataclasses import replace
from typing import Any
from unittest import mock

import apache_beam as beam
import numpy as np
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import SlidingWindows, WindowFn
from apache_beam.utils.timestamp import Duration, Timestamp
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from uldp.collector.partial import Partial
from uldp.mechanisms.protocol.cells import add_cells, as_dense
from uldp.schemas.pane import Accounting
from uldp.transforms.count import KeyedPartial, KeyedSpan
from uldp.transforms.slide import SumSlidingWindows, slide
from uldp.transforms.windows import at_time

PERIOD = 10


def part(n: int) -> Partial:
    return build.part(np.array([n, 1]), Accounting(received=n, counted=n))


def span(start: int, n: int) -> Partial:
    return part(n).at(start)


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


def test_a_slot_costs_three_additions_at_the_most() -> None:
    slots, length = 1000, 288
    slices = {slot * PERIOD: part(1) for slot in range(slots)}
    with mock.patch("uldp.collector.partial.add_cells", wraps=add_cells) as additions:
        windows = list(slide(slices, length * PERIOD, PERIOD))
    assert len(windows) == slots + length - 1
    assert slots < additions.call_count < 3 * slots


def dated_windows(element: KeyedPartial, size: int, window: Any = beam.DoFn.WindowParam) -> list[Any]:
    """The windows of a sum of a bounded job; the first one's is the element's, unless they slide."""
    key, sums = element
    windows = [(start * 1000, (start + size) * 1000, partial) for start, partial in sums.slices()]
    assert window.end - window.start == Duration(micros=size * 1000)
    return [(key, start, end, partial.accounting.received) for start, end, partial in windows]


def test_the_transform_gives_what_beams_sliding_windows_give() -> None:
    quarter, hour = 15 * 60_000, 3_600_000
    slots = [("c", 0, 1), ("c", 1, 2), ("c", 1, 3), ("c", 9, 4), ("d", 1, 5)]
    wanted: Counter[tuple[tuple[str, int], int, int]] = Counter()
    for name, slot, n in slots:
        for window in SlidingWindows(hour // 1000, quarter // 1000).assign(
            WindowFn.AssignContext(Timestamp(micros=slot * quarter * 1000))
        ):
            wanted[(name, 1), window.start.micros, window.end.micros] += n
    specs = [build.spec(collection=name, window={"size": "1h", "period": "15m"}) for name in "cd"]
    elements = [(((name, 1), slot * quarter), span(slot * quarter, n)) for name, slot, n in slots]
    timed = [at_time(slot * quarter + quarter - 1, each) for (_, slot, _), each in zip(slots, elements, strict=True)]
    with beam.Pipeline("FnApiRunner") as pipeline:
        sums = (
            pipeline
            | "Indices" >> beam.Create(range(len(slots)))
            | "Slices" >> beam.Map(timed.__getitem__).with_output_types(KeyedSpan)
            | "SlideAndSum" >> SumSlidingWindows(specs[0].window, specs)
            | "Date" >> beam.FlatMap(dated_windows, hour)
        )
        assert_that(sums, equal_to([(*window, n) for window, n in wanted.items()]))

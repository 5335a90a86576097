"""Sliding windows from slices: each window is a sum of slices, of which its neighbours have all but one.

To put a slice into each of its windows costs size / period additions, 288 of them for a day every five minutes. Here it
costs three: "count in panes of the period, merge the panes" (Li et al., "No Pane, No Gain", SIGMOD Record 2005).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import IntervalWindow
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from schemas.collection import WindowSpec
from schemas.durations import milliseconds
from transforms.count import KeyedCounts
from transforms.partial import PartialCounts
from transforms.targets import CollectionKey
from transforms.windows import at_time, window_into

#: Partial counts by the start of their slice.
Slices = dict[int, PartialCounts]


def slide(slices: Mapping[int, PartialCounts], size: int, period: int) -> Iterator[tuple[int, PartialCounts]]:
    """Sum slices into the sliding windows that hold them.

    The slots of ``period`` from the first slice to the last are cut into blocks as long as a window. A window is then
    the end of one block and the beginning of the next, and the sums of all ends and of all beginnings cost an addition
    for each slot (van Herk 1992; Gil & Werman 1993). No subtraction is needed, which summaries of senders do not have.

    Args:
        slices: By their start, a multiple of ``period``.
        size: Milliseconds of a window, a multiple of ``period``.
        period: Milliseconds from one window's start to the next one's.

    Yields:
        The start of each window that holds a slice, and its sum.
    """
    for run in _runs(sorted(slices), size):
        first, slots, length = run[0], (run[-1] - run[0]) // period + 1, size // period
        parts = [slices.get(first + slot * period) for slot in range(slots)]
        beginnings, ends = list(parts), list(parts)
        for slot in range(1, slots):
            if slot % length:
                beginnings[slot] = _sum(beginnings[slot - 1], parts[slot])
        for slot in range(slots - 2, -1, -1):
            if (slot + 1) % length:
                ends[slot] = _sum(parts[slot], ends[slot + 1])
        for start in range(1 - length, slots):
            low, high = max(start, 0), min(start + length, slots) - 1
            if low % length == 0:
                total = beginnings[high]
            elif low // length == high // length:  # up to the last slot, in the middle of a block
                total = ends[low]
            else:
                total = _sum(ends[low], beginnings[high])
            if total is not None:
                yield first + start * period, total


def _runs(starts: Sequence[int], size: int) -> Iterator[list[int]]:
    """Split starts where no window holds both neighbours: a device may name a year that is far away."""
    run: list[int] = []
    for start in starts:
        if run and start - run[-1] >= size:
            yield run
            run = []
        run.append(start)
    if run:
        yield run


def _sum(one: PartialCounts | None, other: PartialCounts | None) -> PartialCounts | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


@dataclass
class SlideWindows(beam.PTransform[PCollection[KeyedCounts], PCollection[KeyedCounts]]):
    """Put partial counts of slices into sliding windows, one element for each window of a bundle and key."""

    window: WindowSpec

    def expand(self, counts: PCollection[KeyedCounts]) -> PCollection[KeyedCounts]:
        """The slices of a key travel together, so that the runner assigns windows once; those are then replaced."""
        assert self.window.period is not None
        slide_fn = _SlideFn(milliseconds(self.window.size), milliseconds(self.window.period))
        windowed: PCollection[KeyedCounts] = (
            counts
            | "CollectSlices" >> beam.ParDo(_CollectFn(milliseconds(self.window.period)))
            | "Window" >> window_into(self.window, bounded=counts.is_bounded)
            | "SlideSlices" >> beam.ParDo(slide_fn)
        )
        return windowed


@beam.typehints.with_input_types(KeyedCounts)
@beam.typehints.with_output_types(tuple[tuple[str, int], dict[int, PartialCounts]])
class _CollectFn(beam.DoFn):
    """Collects the slices of each key in a bundle."""

    def __init__(self, period: int) -> None:
        self._period = period

    def start_bundle(self) -> None:
        self._slices: dict[CollectionKey, Slices] = {}

    def process(self, element: KeyedCounts, timestamp: Any = beam.DoFn.TimestampParam) -> None:
        key, partial = element
        start = timestamp.micros // 1000 // self._period * self._period
        slices = self._slices.setdefault(key, {})
        slices[start] = slices[start] + partial if start in slices else partial

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for key, slices in self._slices.items():
            # As old as the oldest slice, so that no window of it closes while it is under way.
            yield at_time(min(slices) + self._period - 1, (key, slices))
        self._slices = {}


@beam.typehints.with_input_types(tuple[tuple[str, int], dict[int, PartialCounts]])
@beam.typehints.with_output_types(KeyedCounts)
class _SlideFn(beam.DoFn):
    """Sums the slices of a key by window."""

    def __init__(self, size: int, period: int) -> None:
        self._size, self._period = size, period

    def process(
        self,
        element: tuple[CollectionKey, Slices],
        window: Any = beam.DoFn.WindowParam,
        timestamp: Any = beam.DoFn.TimestampParam,
    ) -> Iterator[WindowedValue]:
        # Called in each window that the runner has assigned. Of these, one begins with the slice of the element's time.
        if timestamp.micros - window.start.micros >= 1000 * self._period:
            return
        key, slices = element
        for start, total in slide(slices, self._size, self._period):
            ends = start + self._size
            sliding = IntervalWindow(Timestamp(micros=1000 * start), Timestamp(micros=1000 * ends))
            yield WindowedValue((key, total), Timestamp(micros=1000 * ends - 1000), (sliding,))

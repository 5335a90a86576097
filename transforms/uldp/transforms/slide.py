"""Sliding windows from slices: each window is a sum of slices, and shares all but one of them with its neighbours.

Adding a slice to each of its windows costs size / period additions: 288 for a day every five minutes. This module needs
three: "count in panes of the period, merge the panes" (Li et al., "No Pane, No Gain", SIGMOD Record 2005).

Time is cut into spans as long as a window. A window is then the end of one span and the beginning of the next. The
sums of all ends and of all beginnings cost one addition for each slice (van Herk 1992; Gil & Werman 1993). The method
needs no subtraction, which summaries of senders do not have.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import add

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.collector.counting import SpanKey
from uldp.collector.ends import SliceReports
from uldp.collector.partial import Partial, numbers_of
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import milliseconds
from uldp.schemas.specs.window import WindowSpec
from uldp.transforms.count import KeyedPartial, KeyedSpan
from uldp.transforms.internals import Given, WindowedValue
from uldp.transforms.windows import at_time, window_fn

#: The part of each slice, with slot 0, by start.
Slices = dict[int, Partial]


def slide(slices: Mapping[int, Partial], size: int, period: int, offset: int = 0) -> Iterator[tuple[int, Partial]]:
    """Sum slices, by start, with slot 0, into the sliding windows that hold them; times in milliseconds."""
    for span in sorted({span for start in slices for span in spans_of(start, size, offset)}):
        yield from slide_span(slices, span, size, period)


def spans_of(start: int, size: int, offset: int) -> tuple[int, int]:
    """Return the starts of the spans with windows that may hold the slice at ``start``: the one before, its own."""
    span = (start - offset) // size * size + offset
    return span - size, span


def slide_span(slices: Mapping[int, Partial], span: int, size: int, period: int) -> Iterator[tuple[int, Partial]]:
    """Do as ``slide`` for the windows that begin in one span; they hold only slices of this span and the next one.

    Messages missing in a slice are missing in the window that begins with it alone; see ``account_missing``.
    """
    starts = range(span, span + size, period)
    split = {start: _split_missing(slices[start]) for start in range(span, span + 2 * size, period) if start in slices}
    ends = list(accumulate((split.get(start, _NOTHING)[0] for start in reversed(starts)), add))
    # A window holds the slices of the next span that begin before the window ends: none, if the window is the span.
    received = (split.get(start + size - period, _NOTHING)[0] for start in starts[1:])
    beginnings = accumulate(received, add, initial=Partial())
    for start, end, beginning in zip(starts, reversed(ends), beginnings, strict=True):
        total = end + beginning + split.get(start, _NOTHING)[1]
        if len(total):
            yield start, total


_NOTHING = Partial(), Partial()


def _split_missing(part: Partial) -> tuple[Partial, Partial]:
    """Split the part of a slice into the reports that were received and the missing messages, if there are any."""
    missing = part.accounting.missing
    if not missing:
        return part, Partial()
    received = replace(part, numbers=part.numbers - numbers_of(1, missing=missing))
    empty = not received.numbers.any() and not received.senders
    return Partial() if empty else received, Partial(part.slots, numbers_of(1, missing=missing))


#: A span as long as a window, and the slices of its windows.
SpanSlices = tuple[SpanKey, Slices]


@dataclass
class SumSlidingWindows(beam.PTransform[PCollection[KeyedSpan], PCollection[KeyedPartial]]):
    """Sum slices of a bounded collection in sliding windows, each once, by span: a few elements a day and not 288."""

    window: WindowSpec
    specs: Iterable[CollectionSpec]

    def expand(self, counts: PCollection[KeyedSpan]) -> PCollection[KeyedPartial]:
        """Sum by span, so that no element is larger than the slices of two spans, however long the job's input is."""
        size, offset = milliseconds(self.window.size), milliseconds(self.window.offset)
        sums: PCollection[KeyedPartial] = (
            counts
            | "CutBlocks" >> beam.FlatMap(_cut_spans, size, offset).with_output_types(tuple[SpanKey, Partial])
            | "GroupBlocks" >> beam.GroupByKey()
            | "SumSlices" >> beam.Map(_sum_slices).with_output_types(SpanSlices)
            | "Window" >> beam.WindowInto(window_fn(self.window))
            | "SlideBlocks" >> beam.ParDo(_SlideSpansFn(SharedSpecs.of(self.specs)))
        )
        return sums


@beam.typehints.with_output_types(KeyedPartial)
class _SlideSpansFn(beam.DoFn):
    """Sums the slices of a span by window, one after the other: a large domain leaves no room for all of them."""

    def __init__(self, specs: SharedSpecs) -> None:
        self._specs = specs

    def process(
        self, element: SpanSlices, window: Given = beam.DoFn.WindowParam, timestamp: Given = beam.DoFn.TimestampParam
    ) -> Iterator[KeyedPartial]:
        (key, span), slices = element
        served = self._specs.served[key]
        # The runner calls this for each window of an element. One call is enough, here for the last.
        if timestamp.micros - window.start.micros < 1000 * served.slice_size:
            ends = SliceReports.of(served, slices)
            for start, total in slide_span(slices, span, served.window_size, served.slice_size):
                yield key, ends.ended(start, total).at(start)


def _cut_spans(element: KeyedSpan, size: int, offset: int) -> Iterator[tuple[SpanKey, Partial]]:
    """Yield each span as long as a window with the slices of its windows, which are in this span and the next one."""
    (key, _), slices = element
    for span, of_span in slices.cut(size, offset):
        for windows in spans_of(span, size, offset):
            yield (key, windows), of_span


def _sum_slices(element: tuple[SpanKey, Iterable[Partial]]) -> WindowedValue:
    """Sum each slice of a span over all bundles; the result has the time of the span."""
    (key, span), parts = element
    total: Slices = {}
    for part in parts:
        for start, partial in part.slices():
            total[start] = total[start] + partial if start in total else partial
    return at_time(span, ((key, span), total))

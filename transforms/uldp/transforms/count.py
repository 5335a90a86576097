"""The steps that count reports into parts of statistics, and add these."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.coders import Coder
from apache_beam.pvalue import PCollection

from uldp.collector.collections import ServedCollection
from uldp.collector.columns import MixedColumns, ReportColumns
from uldp.collector.counting import SpanKey, count_support
from uldp.collector.groups import Grouping, Place
from uldp.collector.partial import Partial
from uldp.collector.shared_specs import SharedSpecs
from uldp.collector.window_keys import WindowKeys
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.window import WindowSpec
from uldp.transforms.coders import PartialCoder
from uldp.transforms.internals import Given, WindowedValue
from uldp.transforms.metrics import counter
from uldp.transforms.windows import at_time, window_fn

#: By collection and version, the part of a time slice, which is that of the element's time.
KeyedPartial = tuple[tuple[str, int], Partial]
#: By group and origin, a span: the parts of slices of the collections of a group; see ``Grouping``.
KeyedSpan = tuple[SpanKey, Partial]


@dataclass
class CountSupport(beam.PTransform[PCollection[MixedColumns], PCollection[KeyedSpan]]):
    """Count report columns into parts of statistics, an element for each bundle and span."""

    specs: Iterable[CollectionSpec]
    shards: int = 1  # see ``WindowKeys``; bounded columns do not need it
    coded: bool = True  # whether the columns may come from a coder, which leaves them as views of one buffer

    def expand(self, columns: PCollection[MixedColumns]) -> PCollection[KeyedSpan]:
        """Count within each bundle, so that little is shuffled."""
        keys = None if columns.is_bounded else WindowKeys(self.shards)
        count = _CountFn(SharedSpecs.of(self.specs), keys, coded=self.coded)
        counts: PCollection[KeyedSpan] = columns | "CountColumns" >> beam.ParDo(count)
        return counts


class _Spans:
    """The sums of the spans of a bundle; ``keys`` are those of a stream."""

    def __init__(self, specs: SharedSpecs, keys: WindowKeys | None) -> None:
        self.grouping: Grouping = specs.groups if keys is None else keys
        self._streams = keys is not None
        self._sums: defaultdict[SpanKey, Partial] = defaultdict(Partial)
        self._alike: dict[tuple[str, int], ServedCollection] = {}

    def add(self, served: ServedCollection, key: SpanKey, span: Partial) -> None:
        """Add the part of a span, of any collection of its group."""
        self._sums[key] += span
        self._alike[key[0]] = served

    def drain(self) -> Iterator[WindowedValue]:
        """Yield each span once, in a stream at the end of its first slice."""
        while self._sums:
            (group, origin), span = self._sums.popitem()
            yield at_time(self._time(self._alike[group], origin, span), ((group, origin), span))

    def _time(self, served: ServedCollection, origin: int, span: Partial) -> int:
        if not self._streams:
            return origin
        slides = served.spec.window.period is not None  # all slices are one span, whose slots are their starts
        return served.last_of_slice(int(span.slots[0]) if slides else origin)


@beam.typehints.with_input_types(MixedColumns)
@beam.typehints.with_output_types(KeyedSpan)
class _CountFn(beam.DoFn):
    """Sums the counts of a bundle. It counts many columns at once, because a report costs less in a larger slice."""

    #: Reports of one collection and version to count at once, if the bundle has that many: at least the first, and the
    #: second for each time slice, because to add the counts of a slice takes longer than to count a few reports.
    AT_ONCE = 100_000
    AT_ONCE_PER_SLICE = 100
    #: The maximum bytes of columns that wait to be counted with others.
    MAX_WAITING = 64 << 20

    def __init__(self, specs: SharedSpecs, keys: WindowKeys | None, *, coded: bool) -> None:
        self._specs, self._keys = specs, keys
        self._coded = coded
        self._counted = counter("counted")

    def start_bundle(self) -> None:
        self._spans = _Spans(self._specs, self._keys)
        self._waiting: dict[CollectionKey, list[ReportColumns]] = defaultdict(list)
        self._reports: Counter[CollectionKey] = Counter()
        self._enough: defaultdict[CollectionKey, int] = defaultdict(lambda: self.AT_ONCE)
        self._nbytes = 0

    def process(self, parts: MixedColumns) -> None:
        for columns in parts:
            self._take(columns)

    def _take(self, columns: ReportColumns) -> None:
        if not len(columns):
            return
        key = columns.collection, columns.version
        if not self._coded:
            columns = columns.without_ids()  # more of them can wait
        self._waiting[key].append(columns)
        self._reports[key] += len(columns)
        self._nbytes += columns.nbytes
        if self._reports[key] >= self._enough[key]:
            self._count([key])
        elif self._nbytes >= self.MAX_WAITING:
            self._count_all()

    def _count_all(self) -> None:
        by_rules: defaultdict[str, list[CollectionKey]] = defaultdict(list)
        # Those of a group one after the other, so that few groups are counted in parts.
        for key in sorted(self._waiting, key=self._place):
            by_rules[self._specs.served[key].rules].append(key)
        for keys in by_rules.values():
            # A new group begins with each collection at which the reports before it pass a multiple of AT_ONCE.
            before = accumulate((self._reports[key] for key in keys), initial=0)
            groups = groupby(zip(keys, before, strict=False), lambda each: each[1] // self.AT_ONCE)
            for alike in [[key for key, _ in group] for _, group in groups]:
                self._count(alike)

    def _place(self, key: CollectionKey) -> Place:
        return self._spans.grouping.place(self._specs.served[key])

    def _count(self, keys: Sequence[CollectionKey]) -> None:
        """Count what waits of collections with the same rules."""
        places = {key: self._place(key) for key in keys}
        collections = {places[key]: self._waiting.pop(key) for key in keys}
        self._counted.inc(sum(self._reports.pop(key) for key in keys))
        self._nbytes -= sum(columns.nbytes for parts in collections.values() for columns in parts)
        slices: Counter[tuple[str, int]] = Counter()
        served = self._specs.served[keys[0]]
        for (group, origin), span in count_support(served, collections, self._spans.grouping.origins):
            self._spans.add(served, (group, origin), span)
            slices[group] += len(span)
        for key in keys:
            self._enough[key] = max(self.AT_ONCE, self.AT_ONCE_PER_SLICE * slices[places[key].group])

    def finish_bundle(self) -> Iterator[WindowedValue]:
        self._count_all()
        yield from self._spans.drain()


def accounting_of(served: ServedCollection, parts: Partial) -> Iterator[Any]:
    """Yield the part of each slice of a collection, at the slice's time, for the output ``accounting``."""
    for start, part in parts.slices():
        at_its_time = at_time(served.last_of_slice(start), (served.spec.key, part))
        yield beam.pvalue.TaggedOutput("accounting", at_its_time)


@dataclass
class CollectSlices(beam.PTransform[PCollection[KeyedPartial], PCollection[KeyedSpan]]):
    """Collect parts of slices, each at the time of its slice, into the spans of a bundle."""

    specs: Iterable[CollectionSpec]
    shards: int = 1  # as in ``CountSupport``

    def expand(self, parts: PCollection[KeyedPartial]) -> PCollection[KeyedSpan]:
        """Add the parts of each span."""
        keys = None if parts.is_bounded else WindowKeys(self.shards)
        collect = _CollectFn(SharedSpecs.of(self.specs), keys)
        spans: PCollection[KeyedSpan] = parts | "CollectSlices" >> beam.ParDo(collect)
        return spans


@beam.typehints.with_input_types(KeyedPartial)
@beam.typehints.with_output_types(KeyedSpan)
class _CollectFn(beam.DoFn):
    def __init__(self, specs: SharedSpecs, keys: WindowKeys | None) -> None:
        self._specs, self._keys = specs, keys

    def start_bundle(self) -> None:
        self._spans = _Spans(self._specs, self._keys)

    def process(self, element: KeyedPartial, timestamp: Given = beam.DoFn.TimestampParam) -> None:
        key, partial = element
        served = self._specs.of_key(key)
        start, grouping = served.slice_start(timestamp.micros // 1000), self._spans.grouping
        place, (origin,) = grouping.place(served), grouping.origins(served, np.array([start])).tolist()
        self._spans.add(served, (place.group, origin), partial.at(start + place.offset))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        return self._spans.drain()


@beam.typehints.with_input_types(Partial)
@beam.typehints.with_output_types(Partial)
class SumCounts(beam.CombineFn):
    """Adds partial counts, of one window or of spans."""

    def create_accumulator(self) -> Partial:
        return Partial()

    def add_input(self, mutable_accumulator: Partial, element: Partial) -> Partial:
        return mutable_accumulator + element

    def merge_accumulators(self, accumulators: Iterable[Partial]) -> Partial:
        return sum(accumulators, self.create_accumulator())

    def extract_output(self, accumulator: Partial) -> Partial:
        return accumulator

    def get_accumulator_coder(self) -> Coder:
        """Return our own coder, because accumulators are state and must not be pickles."""
        return PartialCoder()


@dataclass
class SumFixedWindows(beam.PTransform[PCollection[KeyedSpan], PCollection[KeyedPartial]]):
    """Sum spans of a bounded collection, whose slices are the windows.

    The result holds each window once, each element in that in which its span begins.

    A runner of Beam keeps a timer for each window of a key: 10,000 windows of one key take 40 times as long as 100 on
    the local runner. A bounded job needs none of them, so the runner groups by key and span in one global window, and
    the windows get their times when their panes are sealed.
    """

    window: WindowSpec

    def expand(self, spans: PCollection[KeyedSpan]) -> PCollection[KeyedPartial]:
        """Sum by span, and then put each sum into a window."""
        sums: PCollection[KeyedPartial] = (
            spans
            | "SumBlocks" >> beam.CombinePerKey(SumCounts())  # type: ignore[no-untyped-call]
            | "AtBlock" >> beam.Map(_at_span).with_output_types(KeyedPartial)
            | "Window" >> beam.WindowInto(window_fn(self.window))
        )
        return sums


def _at_span(element: KeyedSpan) -> WindowedValue:
    (key, origin), span = element
    return at_time(origin, (key, span))

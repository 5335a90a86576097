"""The steps that count reports into parts of statistics, and add these."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

import apache_beam as beam
from apache_beam.coders import Coder
from apache_beam.pvalue import PCollection

from uldp.collector.collections import ServedCollection
from uldp.collector.columns import MixedColumns, ReportColumns
from uldp.collector.counting import SpanKey, count_support
from uldp.collector.partial import Partial
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.transforms.coders import PartialCoder
from uldp.transforms.internals import Given, WindowedValue
from uldp.transforms.metrics import counter
from uldp.transforms.windows import at_time

#: By collection and version, the part of a time slice, which is that of the element's time. Spans of a bounded job have
#: the parts of several slices by group of collections; see ``Place``.
KeyedPartial = tuple[tuple[str, int], Partial]


@dataclass
class CountSupport(beam.PTransform[PCollection[MixedColumns], PCollection[Any]]):
    """Count report columns into parts of statistics by (collection, version) within each bundle.

    Bounded columns give an element for each bundle and span of slices. Others give one for each bundle and slice, at
    the slice's time, because each window of a stream fires on its own.

    Attributes:
        coded: Whether the columns may come from a coder, which leaves them as views of one buffer.
    """

    specs: Iterable[CollectionSpec]
    coded: bool = True

    def expand(self, columns: PCollection[MixedColumns]) -> PCollection[Any]:
        """Count within each bundle, so that little is shuffled."""
        specs = SharedSpecs.of(self.specs)
        count = (_CountSpansFn if columns.is_bounded else _CountSlicesFn)(specs, coded=self.coded)
        counts: PCollection[Any] = columns | "CountColumns" >> beam.ParDo(count)
        return counts


@beam.typehints.with_input_types(MixedColumns)
class _CountFn(beam.DoFn):
    """Sums the counts of a bundle. It counts many columns at once, because a report costs less in a larger slice."""

    #: Reports of one collection and version to count at once, if the bundle has that many: at least the first, and the
    #: second for each time slice, because to add the counts of a slice takes longer than to count a few reports.
    AT_ONCE = 100_000
    AT_ONCE_PER_SLICE = 100
    #: The maximum bytes of columns that wait to be counted with others.
    MAX_WAITING = 64 << 20

    def __init__(self, specs: SharedSpecs, *, coded: bool) -> None:
        self._specs = specs
        self._coded = coded
        self._counted = counter("counted")

    def start_bundle(self) -> None:
        self._sums: defaultdict[SpanKey, Partial] = defaultdict(Partial)
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
        for key in sorted(self._waiting, key=self._specs.groups.places.__getitem__):
            by_rules[self._specs.served[key].rules].append(key)
        for keys in by_rules.values():
            # A new group begins with each collection at which the reports before it pass a multiple of AT_ONCE.
            before = accumulate((self._reports[key] for key in keys), initial=0)
            groups = groupby(zip(keys, before, strict=False), lambda each: each[1] // self.AT_ONCE)
            for alike in [[key for key, _ in group] for _, group in groups]:
                self._count(alike)

    def _count(self, keys: Sequence[CollectionKey]) -> None:
        """Count what waits of collections with the same rules."""
        collections = {self._specs.groups.places[key]: self._waiting.pop(key) for key in keys}
        self._counted.inc(sum(self._reports.pop(key) for key in keys))
        self._nbytes -= sum(columns.nbytes for parts in collections.values() for columns in parts)
        slices: Counter[CollectionKey] = Counter()
        for (group, origin), span in count_support(self._specs.served[keys[0]], collections):
            self._sums[group, origin] += span
            slices[group] += len(span)
        for key in keys:
            self._enough[key] = max(self.AT_ONCE, self.AT_ONCE_PER_SLICE * slices[self._specs.groups.places[key].group])

    def _drain(self) -> Iterator[tuple[SpanKey, Partial]]:
        """Count what waits, and yield each span once."""
        self._count_all()
        while self._sums:
            yield self._sums.popitem()


@beam.typehints.with_output_types(KeyedPartial)
class _CountSlicesFn(_CountFn):
    def finish_bundle(self) -> Iterator[WindowedValue]:
        for (group, _), span in self._drain():
            for slot, partial in span.slices():
                served, start = self._specs.groups.find(group, slot)
                yield at_time(served.last_of_slice(start), (served.spec.key, partial))


@beam.typehints.with_output_types(KeyedPartial)
class _CountSpansFn(_CountFn):
    def finish_bundle(self) -> Iterator[WindowedValue]:
        for (group, origin), span in self._drain():
            yield at_time(origin, (group, span))


def at_their_times(served: ServedCollection, parts: Partial) -> Iterator[WindowedValue]:
    """Yield the part of each slice of a collection, at the slice's time."""
    for start, part in parts.slices():
        yield at_time(served.last_of_slice(start), (served.spec.key, part))


@dataclass
class CollectSlices(beam.PTransform[PCollection[KeyedPartial], PCollection[KeyedPartial]]):
    """Collect the parts of slices of a bounded collection, each at the time of its slice, into spans of a bundle."""

    specs: Iterable[CollectionSpec]

    def expand(self, parts: PCollection[KeyedPartial]) -> PCollection[KeyedPartial]:
        """Add the parts of each span."""
        spans: PCollection[KeyedPartial] = parts | "CollectSlices" >> beam.ParDo(_CollectFn(SharedSpecs.of(self.specs)))
        return spans


@beam.typehints.with_input_types(KeyedPartial)
@beam.typehints.with_output_types(KeyedPartial)
class _CollectFn(beam.DoFn):
    def __init__(self, specs: SharedSpecs) -> None:
        self._specs = specs

    def start_bundle(self) -> None:
        self._spans: defaultdict[SpanKey, Partial] = defaultdict(Partial)

    def process(self, element: KeyedPartial, timestamp: Given = beam.DoFn.TimestampParam) -> None:
        key, partial = element
        served, place, time = self._specs.served[key], self._specs.groups.places[key], timestamp.micros // 1000
        slot = served.slice_start(time) + place.offset
        origin = served.aligned(time, served.span_size)
        self._spans[place.group, origin] += partial.at(slot)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        while self._spans:
            (group, origin), span = self._spans.popitem()
            yield at_time(origin, (group, span))


@beam.typehints.with_input_types(Partial)
@beam.typehints.with_output_types(Partial)
class SumCounts(beam.CombineFn):
    """Adds partial counts, of one window or of spans."""

    def create_accumulator(self) -> Partial:
        """Return the zero of the monoid."""
        return Partial()

    def add_input(self, mutable_accumulator: Partial, element: Partial) -> Partial:
        """Add one part."""
        return mutable_accumulator + element

    def merge_accumulators(self, accumulators: Iterable[Partial]) -> Partial:
        """Add many parts."""
        return sum(accumulators, self.create_accumulator())

    def extract_output(self, accumulator: Partial) -> Partial:
        """Return the sum."""
        return accumulator

    def get_accumulator_coder(self) -> Coder:
        """Return our own coder, because accumulators are state and must not be pickles."""
        return PartialCoder()

"""The sufficient statistic: support counts of each window."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam
import numpy as np
from apache_beam.coders import Coder
from apache_beam.pvalue import PCollection

from uldp.collector.collections import ServedCollection
from uldp.collector.columns import MixedColumns, ReportColumns, slice_groups
from uldp.collector.partial import PartialStatistic
from uldp.collector.shared_specs import SharedSpecs
from uldp.collector.signals import PartialSignals, improbable_counts, skew_counts
from uldp.schemas.collection import CollectionKey, CollectionSpec
from uldp.schemas.pane import Accounting
from uldp.transforms.coders import PartialStatisticCoder
from uldp.transforms.internals import WindowedValue
from uldp.transforms.metrics import counter
from uldp.transforms.windows import at_time

KeyedStatistic = tuple[tuple[str, int], PartialStatistic]


def count_support(served: ServedCollection, parts: Sequence[ReportColumns]) -> Iterator[tuple[int, PartialStatistic]]:
    """Count the reports of each time slice; yield the slice's start and its part of the sufficient statistic."""
    slices = np.concatenate([part.slices for part in parts])
    if not len(slices):
        return
    signals = np.concatenate([part.signals for part in parts])
    starts, groups = slice_groups(slices, served.slice_size)
    k = len(starts)
    counts = served.mechanism.tally([part.payloads for part in parts], groups, k)
    skews = skew_counts(signals, groups, k)
    counted = skews.sum(axis=1).tolist()  # each report has one skew
    improbable = improbable_counts(signals, groups, k).tolist()
    for group in np.flatnonzero(counted).tolist():
        accounting = Accounting(received=counted[group], counted=counted[group])
        yield (
            int(starts[group]),
            PartialStatistic(counts[group], accounting, PartialSignals(skews[group], improbable[group])),
        )


@dataclass
class CountSupport(beam.PTransform[PCollection[MixedColumns], PCollection[KeyedStatistic]]):
    """Count report columns into partial counts by (collection, version), one per bundle and slice, at its time."""

    specs: Iterable[CollectionSpec]

    def expand(self, columns: PCollection[MixedColumns]) -> PCollection[KeyedStatistic]:
        """Count within each bundle, so that little is shuffled."""
        count = _CountFn(SharedSpecs.of(self.specs))
        counts: PCollection[KeyedStatistic] = columns | "CountColumns" >> beam.ParDo(count)
        return counts


@beam.typehints.with_input_types(MixedColumns)
@beam.typehints.with_output_types(KeyedStatistic)
class _CountFn(beam.DoFn):
    """Sums the counts of a bundle. It counts many columns at once, because a report costs less in a larger slice."""

    #: Reports of one collection and version to count at once, if the bundle has that many: at least the first, and the
    #: second for each time slice, because to add the counts of a slice takes longer than to count a few reports.
    AT_ONCE = 100_000
    AT_ONCE_PER_SLICE = 100
    #: The maximum bytes of columns that wait to be counted with others.
    MAX_WAITING = 64 << 20

    def __init__(self, specs: SharedSpecs) -> None:
        self._specs = specs
        self._counted = counter("counted")

    def setup(self) -> None:
        self._served = self._specs.served

    def start_bundle(self) -> None:
        self._sums: dict[tuple[CollectionKey, int], PartialStatistic] = {}
        self._waiting: dict[CollectionKey, list[ReportColumns]] = defaultdict(list)
        self._reports: Counter[CollectionKey] = Counter()
        self._enough: defaultdict[CollectionKey, int] = defaultdict(lambda: self.AT_ONCE)
        self._nbytes = 0

    def process(self, parts: MixedColumns) -> None:
        for columns in parts:
            self._take(columns)

    def _take(self, columns: ReportColumns) -> None:
        key = columns.collection, columns.version
        self._waiting[key].append(columns)
        self._reports[key] += len(columns)
        self._nbytes += columns.nbytes
        if self._reports[key] >= self._enough[key]:
            self._count(key)
        elif self._nbytes >= self.MAX_WAITING:
            self._count_all()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        self._count_all()
        for (key, start), partial in self._sums.items():
            yield at_time(self._served[key].last_of_slice(start), (key, partial))
        self._sums.clear()

    def _count_all(self) -> None:
        for key in list(self._waiting):
            self._count(key)

    def _count(self, key: CollectionKey) -> None:
        parts = self._waiting.pop(key)
        self._counted.inc(self._reports.pop(key))
        self._nbytes -= sum(columns.nbytes for columns in parts)
        counted = list(count_support(self._served[key], parts))
        for start, partial in counted:
            slot = key, start
            self._sums[slot] = self._sums[slot] + partial if slot in self._sums else partial
        self._enough[key] = max(self.AT_ONCE, self.AT_ONCE_PER_SLICE * len(counted))


@beam.typehints.with_input_types(PartialStatistic)
@beam.typehints.with_output_types(PartialStatistic)
class SumCounts(beam.CombineFn):
    """Adds partial counts."""

    def create_accumulator(self) -> PartialStatistic:
        """Return the zero of the monoid."""
        return PartialStatistic()

    def add_input(self, mutable_accumulator: PartialStatistic, element: PartialStatistic) -> PartialStatistic:
        """Add one part."""
        return mutable_accumulator + element

    def merge_accumulators(self, accumulators: Iterable[PartialStatistic]) -> PartialStatistic:
        """Add many parts."""
        return sum(accumulators, self.create_accumulator())

    def extract_output(self, accumulator: PartialStatistic) -> PartialStatistic:
        """Return the sum."""
        return accumulator

    def get_accumulator_coder(self) -> Coder:
        """Return our own coder, because accumulators are state and must not be pickles."""
        return PartialStatisticCoder()

"""The only pane of each window of a bounded job, sealed many windows at a time."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.collector.sealing import NOTHING, ONLY, WindowSum, p_values_of, seal
from uldp.collector.shared_specs import SharedSpecs
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.count import KeyedPartial
from uldp.transforms.internals import WindowedValue
from uldp.transforms.metrics import counter
from uldp.transforms.windows import in_window


@dataclass
class SealCounts(beam.PTransform[PCollection[KeyedPartial], PCollection[Statistic]]):
    """Seal the only pane of each window of a bounded collection, from sums of groups of windows."""

    specs: Iterable[CollectionSpec]

    def expand(self, sums: PCollection[KeyedPartial]) -> PCollection[Statistic]:
        """Add window, flags and signals to each sum; a pane supersedes nothing."""
        sealed: PCollection[Statistic] = sums | "SealPane" >> beam.ParDo(_SealSpansFn(SharedSpecs.of(self.specs)))
        return sealed


@beam.typehints.with_input_types(KeyedPartial)
@beam.typehints.with_output_types(Statistic)
class _SealSpansFn(beam.DoFn):
    #: The cells of the panes to test together. A collection has few windows, and to test few takes as long as many.
    AT_ONCE = 1 << 16

    def __init__(self, specs: SharedSpecs) -> None:
        self._specs = specs
        self._panes, self._windows = counter("panes"), counter("windows")

    def start_bundle(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._waiting: defaultdict[LdpProtocol, list[KeyedPartial]] = defaultdict(list)
        self._room = self.AT_ONCE

    def process(self, element: KeyedPartial) -> Iterable[WindowedValue] | None:
        group, span = element
        served = self._specs.served[group]
        self._waiting[served.protocol].append(element)
        self._room -= len(span) * served.mechanism.statistic_size
        return None if self._room > 0 else self._seal()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        return self._seal()

    def _seal(self) -> Iterator[WindowedValue]:
        waiting = self._waiting
        self._clear()
        for protocol, spans in waiting.items():
            panes = [
                (served, start, total)
                for group, span in spans
                for slot, partial in span.slices()
                for served, start in [self._specs.groups.find(group, slot)]
                if (total := WindowSum.of(partial, start)).accounting != NOTHING
            ]
            p_values = p_values_of(protocol.decoder, [total for _, _, total in panes])
            for (served, start, total), tested in zip(panes, p_values, strict=True):
                end = start + served.window_size
                yield in_window(start, end, seal(served, total, start, end, ONLY, tested))
            self._panes.inc(len(panes))
            self._windows.inc(len(panes))

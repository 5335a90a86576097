"""The step that estimates the panes of a bundle, many at a time."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.collector.estimating import estimates_of_each
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.estimate import Estimate
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.internals import Given, WindowedValue


@dataclass
class EstimateDistributions(beam.PTransform[PCollection[Statistic], PCollection[Estimate]]):
    """Estimate each window by each estimator of its spec."""

    specs: Iterable[CollectionSpec]

    def expand(self, counts: PCollection[Statistic]) -> PCollection[Estimate]:
        """Apply ``estimates_of_each``."""
        estimate = _EstimateFn(SharedSpecs.of(self.specs))
        estimates: PCollection[Estimate] = counts | "EstimateWindow" >> beam.ParDo(estimate)
        return estimates


@beam.typehints.with_input_types(Statistic)
@beam.typehints.with_output_types(Estimate)
class _EstimateFn(beam.DoFn):
    #: The cells of the panes to estimate together.
    AT_ONCE = 1 << 16

    def __init__(self, specs: SharedSpecs) -> None:
        self._specs = specs

    def start_bundle(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._waiting: defaultdict[CollectionKey, list[WindowedValue]] = defaultdict(list)
        self._room = self.AT_ONCE

    def process(
        self, statistic: Statistic, timestamp: Given = beam.DoFn.TimestampParam, window: Given = beam.DoFn.WindowParam
    ) -> Iterable[WindowedValue] | None:
        self._waiting[statistic.collection, statistic.version].append(WindowedValue(statistic, timestamp, (window,)))
        self._room -= len(statistic.cells)
        return None if self._room > 0 else self._estimate()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        return self._estimate()

    def _estimate(self) -> Iterator[WindowedValue]:
        waiting = self._waiting
        self._clear()
        for key, panes in waiting.items():
            found = estimates_of_each(self._specs.served[key], [pane.value for pane in panes])
            for pane, estimates in zip(panes, found, strict=True):
                yield from map(pane.with_value, estimates)

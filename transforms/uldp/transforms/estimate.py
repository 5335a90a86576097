"""The step that estimates each pane."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.collector.estimating import estimates_of
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.estimate import Estimate
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic


@dataclass
class EstimateDistributions(beam.PTransform[PCollection[Statistic], PCollection[Estimate]]):
    """Estimate each window by each estimator of its spec."""

    specs: Iterable[CollectionSpec]

    def expand(self, counts: PCollection[Statistic]) -> PCollection[Estimate]:
        """Apply ``estimates_of``."""
        estimate = _EstimateFn(SharedSpecs.of(self.specs))
        estimates: PCollection[Estimate] = counts | "EstimateWindow" >> beam.ParDo(estimate)
        return estimates


@beam.typehints.with_input_types(Statistic)
@beam.typehints.with_output_types(Estimate)
class _EstimateFn(beam.DoFn):
    def __init__(self, specs: SharedSpecs) -> None:
        self._specs = specs

    def process(self, statistic: Statistic) -> Iterator[Estimate]:
        return estimates_of(self._specs.served[statistic.collection, statistic.version], statistic)

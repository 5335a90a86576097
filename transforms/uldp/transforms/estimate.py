"""From the sufficient statistic of a window to its published estimates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.collector.collections import ServedCollection, serve
from uldp.schemas.collection import CollectionSpec
from uldp.schemas.flags import withheld
from uldp.schemas.records import Estimate, SupportCounts, TagMass


def estimates_of(served: ServedCollection, support: SupportCounts) -> Iterator[Estimate]:
    """Estimate the distribution of true values by each estimator of the spec: eq. (22) over the estimate of r.

    Yields nothing below the spec's ``min_reports``, because only the noise of the mechanism would be visible. Also
    yields nothing for a window that exceeds a limit at which the spec stops.
    """
    if withheld(served.spec.limits, support.flags):
        return
    if support.supersedes is not None and support.supersedes.n < served.spec.limits.min_reports:
        support = replace(support, supersedes=None)  # no estimate of those counts was published
    for estimator in served.spec.estimators:
        tables = served.protocol.decoder.tables(support.counts, support.n, estimator)
        share, *rest = tables
        hidden, bound = rest or (None, None)
        tags = (
            {}
            if hidden is None
            else {
                key: TagMass(float(mass), float(stderr))
                for key, mass, stderr in zip(hidden.keys or (), hidden.values, hidden.stderr, strict=True)
            }
        )
        yield Estimate(
            support=support,
            mechanism=served.spec.mechanism.name,
            epsilon=served.mechanism.guarantee.epsilon,
            estimator=estimator,
            distribution=share.values,
            stderr=share.stderr,
            tags=tags,
            bound=0.0 if bound is None else float(bound.values[0]),
        )


@dataclass
class EstimateDistributions(beam.PTransform[PCollection[SupportCounts], PCollection[Estimate]]):
    """Estimate each window by each estimator of its spec."""

    specs: Sequence[CollectionSpec]

    def expand(self, counts: PCollection[SupportCounts]) -> PCollection[Estimate]:
        """Apply ``estimates_of``."""
        estimates: PCollection[Estimate] = counts | "EstimateWindow" >> beam.ParDo(_EstimateFn(list(self.specs)))
        return estimates


@beam.typehints.with_input_types(SupportCounts)
@beam.typehints.with_output_types(Estimate)
class _EstimateFn(beam.DoFn):
    def __init__(self, specs: list[CollectionSpec]) -> None:
        self._specs = specs

    def setup(self) -> None:
        self._served = serve(self._specs)

    def process(self, support: SupportCounts) -> Iterator[Estimate]:
        return estimates_of(self._served[support.collection, support.version], support)

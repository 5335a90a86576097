"""From the sufficient statistic of a window to what is published of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import PCollection

from mechanisms.estimators import estimate_intermediate
from schemas.collection import CollectionSpec
from schemas.records import Estimate, SupportCounts
from transforms.count import KeyedCounts
from transforms.targets import Target, targets
from transforms.windows import pane_of

#: The flag of a window of which more reports were rejected than the spec's limit.
REJECTED_RATIO = "rejected_ratio"


def estimates_of(target: Target, support: SupportCounts) -> Iterator[Estimate]:
    """Estimate the distribution of true values by each estimator of the spec: eq. (22) over the estimate of r.

    Yields nothing below the spec's ``min_reports``: there the noise of the mechanism is all there is to see.
    """
    limits, n, counts = target.spec.limits, support.n, support.counts
    if n < limits.min_reports:
        return
    channel = target.mechanism.channel
    stderr = target.pum.stderr(channel, counts, n)
    ratio = support.accounting.rejected / support.accounting.received
    exceeded = limits.max_rejected_ratio is not None and ratio > limits.max_rejected_ratio
    for estimator in target.spec.estimators:
        r_hat = estimate_intermediate(estimator, target.mechanism, counts, n)
        yield Estimate(
            support=support,
            mechanism=target.spec.mechanism.name,
            epsilon=target.mechanism.epsilon,
            estimator=estimator,
            distribution=target.pum.distribution(r_hat),
            stderr=stderr,
            tags=target.pum.tag_masses(r_hat, channel, counts, n),
            bound=target.pum.bound(r_hat),
            flags=(REJECTED_RATIO,) if exceeded else (),
        )


@dataclass
class SealCounts(beam.PTransform[PCollection[KeyedCounts], PCollection[SupportCounts]]):
    """Write window and pane into the sums that come out of it."""

    specs: Sequence[CollectionSpec]

    def expand(self, sums: PCollection[KeyedCounts]) -> PCollection[SupportCounts]:
        """A bounded collection has one pane."""
        sealed: PCollection[SupportCounts] = sums | "SealPane" >> beam.ParDo(
            _SealFn(list(self.specs), bounded=sums.is_bounded)
        )
        return sealed


@beam.typehints.with_input_types(KeyedCounts)
@beam.typehints.with_output_types(SupportCounts)
class _SealFn(beam.DoFn):
    def __init__(self, specs: list[CollectionSpec], *, bounded: bool) -> None:
        self._specs = specs
        self._bounded = bounded

    def setup(self) -> None:
        self._targets = targets(self._specs)

    def process(
        self,
        element: KeyedCounts,
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> Iterator[SupportCounts]:
        key, partial = element
        size = self._targets[key].mechanism.size
        yield SupportCounts(
            *key,
            window_start=window.start.micros // 1000,
            window_end=window.end.micros // 1000,
            pane=pane_of(pane, bounded=self._bounded),
            counts=np.zeros(size, dtype=np.int64) if partial.counts is None else partial.counts,
            accounting=partial.accounting,
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
        self._targets = targets(self._specs)

    def process(self, support: SupportCounts) -> Iterator[Estimate]:
        return estimates_of(self._targets[support.collection, support.version], support)

"""Endpoints that keep the rows of estimates, and nothing else: all panes, each row once however often it is written."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.estimate import Estimate
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.endpoints import Endpoint

#: Rows that a bundle holds before it writes them; an estimate that is larger is written alone.
MAX_ROWS = 1 << 16

#: An estimate, and the spec that it was made under.
Made: TypeAlias = tuple[Estimate, CollectionSpec]


class RowSink(Endpoint):
    """An endpoint that keeps rows. A subclass checks that it is there, see ``check_estimates``, and writes."""

    only_use = "takes only estimates, from --estimates-to"

    @abstractmethod
    def write(self, estimates: Sequence[Made]) -> None:
        """Write the rows of estimates, no two of which are the same pane. Rows that are there are replaced.

        Raises:
            EndpointError: if they cannot be written.
        """

    def publish_estimates(self, estimates: PCollection[Estimate], specs: SharedSpecs, *, native: bool) -> None:
        """Write the rows of each estimate, on each runner with the same transform."""
        write = beam.ParDo(_WriteRowsFn(self, specs)).with_output_types(type(None))
        _ = estimates | "WriteRows" >> write


@beam.typehints.with_input_types(Estimate)
class _WriteRowsFn(beam.DoFn):
    """Writes the rows of a bundle, ``MAX_ROWS`` at a time."""

    def __init__(self, sink: RowSink, specs: SharedSpecs) -> None:
        self._sink, self._specs = sink, specs

    def start_bundle(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._made: dict[tuple[Any, ...], Made] = {}
        self._rows = 0

    def process(self, estimate: Estimate) -> None:
        rows = sum(len(table.values) for table in estimate.tables)
        if self._rows + rows > MAX_ROWS:
            self._write()
        self._made[estimate.key, estimate.device_digest, estimate.estimator, estimate.age] = (
            estimate,
            self._specs.of_pane(estimate),
        )
        self._rows += rows

    def finish_bundle(self) -> None:
        self._write()

    def _write(self) -> None:
        if self._made:
            self._sink.write(list(self._made.values()))
        self._clear()

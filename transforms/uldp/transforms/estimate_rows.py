"""Estimates as flat rows with a schema, for whatever knows Beam's rows: SQL, Beam YAML, sinks, and other languages."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Optional

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.estimate import Estimate
from uldp.schemas.rows import KEY, STORED_COLUMNS, Kind
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.internals import RowTypeConstraint
from uldp.transforms.io.json_rows import json_rows
from uldp.transforms.parse import ParseMessages

#: A time is text in ISO 8601 and UTC, as in rows of JSON: Beam's own types of times are not known to every sink.
_TYPES: dict[Kind, type] = {Kind.TEXT: str, Kind.COUNT: int, Kind.NUMBER: float, Kind.TIME: str, Kind.TRUTH: bool}
#: The schema of a row: what names it is always there, and another column may be None. Beam knows Optional; of a union
#: with None it makes a type that only Python reads.
FIELDS: tuple[tuple[str, Any], ...] = tuple(
    (name, _TYPES[kind] if name in KEY else Optional[_TYPES[kind]])  # noqa: UP045
    for name, kind in STORED_COLUMNS.items()
)


def estimate_rows(specs: SharedSpecs, estimate: Estimate) -> Iterator[beam.Row]:
    """Yield the rows of an estimate; see ``uldp.schemas.rows.rows``."""
    return (beam.Row(**row) for row in json_rows(estimate, specs.of_pane(estimate)))


@dataclass
class EstimateRows(beam.PTransform[PCollection[Estimate], PCollection[beam.Row]]):
    """Turn each estimate into rows of ``FIELDS``, the columns of ``uldp export`` and those that name a pane.

    Panes accumulate: of the rows with the same window, those of the highest ``age`` are valid.
    """

    specs: Iterable[CollectionSpec]

    def __post_init__(self) -> None:
        self._shared = SharedSpecs.of(self.specs)

    def expand(self, estimates: PCollection[Estimate]) -> PCollection[beam.Row]:
        """Make the rows."""
        make = beam.FlatMap(partial(estimate_rows, self._shared))
        of_fields = make.with_output_types(RowTypeConstraint.from_fields(FIELDS))
        rows: PCollection[beam.Row] = estimates | "MakeRows" >> of_fields
        return rows


@dataclass
class EstimateReports(beam.PTransform[PCollection[Any], PCollection[beam.Row]]):
    """Turn rows of messages into rows of estimates, for pipelines that are not written in Python.

    The input is what ``ParseMessages`` takes: rows with ``data``, and with ``publish_time`` and ``attributes`` if they
    have them. Each row of an estimate says how many reports are counted, duplicate, late and rejected.
    """

    specs: Sequence[str]  # the paths of specs; where the graph is built, not on workers

    def expand(self, messages: PCollection[Any]) -> PCollection[beam.Row]:
        """Parse, aggregate, and make rows."""
        specs = [CollectionSpec.load(path) for path in self.specs]
        aggregated = messages | ParseMessages() | Aggregate(specs)
        rows: PCollection[beam.Row] = aggregated.estimates | EstimateRows(specs)
        return rows

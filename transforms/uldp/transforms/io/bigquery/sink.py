"""Estimates as rows of a BigQuery table: the sink appends every pane, and a view shows the newest pane of each window.

In Beam, only Java has upserts through the Storage Write API, so a pipeline built without Java cannot use them. Beam's
own streaming inserts draw their insert ids at random. So this sink inserts the rows itself, with an id that follows
from the content of the row. BigQuery mostly drops a row if the same id came within the last minute. If it lets one
through, the two rows are equal, and the view takes one of them: rows with the same `key` are panes of the same
estimate, and the row with the highest `age` counts.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.estimate import Estimate
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.bigquery.rows import Row, estimate_row, insert_id
from uldp.transforms.io.bigquery.table import BigQueryError, new_client, parse_table


@dataclass
class WriteEstimatesToBigQuery(beam.PTransform[PCollection[Estimate], None]):
    """Append each pane of each estimate to a table; see ``deploy/bigquery`` for the table and its view.

    Attributes:
        table: ``PROJECT.DATASET.TABLE``; it must exist and have the columns of ``estimates_table``.
        specs: The specs of the job, which have the labels.
    """

    table: str
    specs: Iterable[CollectionSpec]

    def __post_init__(self) -> None:
        super().__init__()
        parse_table(self.table)

    def expand(self, estimates: PCollection[Estimate]) -> None:
        """Insert the rows in one step: they are few, because a row is one window's estimate and not one report."""
        _ = estimates | "InsertRows" >> beam.ParDo(_InsertRowsFn(self.table, SharedSpecs.of(self.specs)))


@beam.typehints.with_input_types(Estimate)
class _InsertRowsFn(beam.DoFn):
    """Inserts the rows of a bundle in requests of a size that BigQuery accepts."""

    #: Rows of a request; the recommended number.
    MAX_ROWS = 500
    #: Bytes of the rows of a request; BigQuery accepts 10 MB. A larger row has a request of its own.
    MAX_BYTES = 5 << 20

    def __init__(self, table: str, specs: SharedSpecs) -> None:
        self._table, self._specs = table, specs

    def setup(self) -> None:
        self._client = new_client(self._table)

    def start_bundle(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._rows: list[Row] = []
        self._nbytes = 0

    def process(self, estimate: Estimate) -> None:
        row = estimate_row(estimate, self._specs.of_pane(estimate))
        nbytes = len(json.dumps(row))
        if len(self._rows) == self.MAX_ROWS or self._nbytes + nbytes > self.MAX_BYTES:
            self._insert()
        self._rows.append(row)
        self._nbytes += nbytes

    def finish_bundle(self) -> None:
        self._insert()

    def teardown(self) -> None:
        self._client.close()

    def _insert(self) -> None:
        if not self._rows:
            return
        errors = self._client.insert_rows_json(self._table, self._rows, row_ids=list(map(insert_id, self._rows)))
        if errors:  # the bundle fails and the runner retries it, so that no pane is lost silently
            raise BigQueryError(f"{self._table}: BigQuery refused {len(errors)} of {len(self._rows)} rows: {errors[0]}")
        self._clear()

"""Estimates as rows of a BigQuery table: the sink appends every pane, and a view shows the newest pane of each window.

In Beam, only Java has upserts through the Storage Write API, so a pipeline built without Java cannot use them. Beam's
own streaming inserts draw their insert ids at random. So this sink inserts the rows itself, with an id that follows
from the content of the row. BigQuery mostly drops a row if the same id came within the last minute. If it lets one
through, the two rows are equal, and the view takes one of them: rows with the same `key` are panes of the same
estimate, and the row with the highest `age` counts.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.schemas.framing import load_schema
from uldp.schemas.records import Estimate, iso

Row = dict[str, Any]

_TYPES = {"string": "STRING", "enum": "STRING", "int": "INTEGER", "long": "INTEGER", "double": "FLOAT"}


def estimate_row(estimate: Estimate) -> Row:
    """Return the row of an estimate: the fields of ``estimate.avsc``, times as ISO 8601, tags as a list, key and age.

    The key consists of collection, version, window and estimator. Ages sort as text; see ``SupportCounts.age``.
    """
    support = estimate.support
    return {
        "key": "/".join(map(str, (*support.key, estimate.estimator))),
        "age": "/".join(f"{part:x}".zfill(width) for part, width in zip(support.age, (16, 1, 1, 8), strict=True)),
        **estimate.to_avro(),
        "window_start": iso(support.window_start),
        "window_end": iso(support.window_end),
        "tags": [{"name": name, "mass": tag.mass, "stderr": tag.stderr} for name, tag in estimate.tags.items()],
    }


def insert_id(row: Row) -> str:
    """Return an id that equal rows share, so that a retried bundle sends the same ids again."""
    return hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()[:32]


def _field(name: str, kind: str, doc: str, mode: str = "REQUIRED") -> dict[str, Any]:
    return {"name": name, "type": kind, "mode": mode, "description": doc}


def _column(name: str, doc: str, avro: Any, mode: str = "REQUIRED") -> dict[str, Any]:
    """Translate an Avro field. BigQuery calls a field with subfields RECORD, and writes arrays and nulls as modes."""
    if isinstance(avro, str):
        return _field(name, _TYPES[avro], doc, mode)
    if isinstance(avro, list):
        (present,) = (branch for branch in avro if branch != "null")
        return _column(name, doc, present, "NULLABLE")
    match avro["type"]:
        case "array":
            return _column(name, doc, avro["items"], "REPEATED")
        case "map":
            record = _column(name, doc, avro["values"], "REPEATED")
            return record | {"fields": [_field("name", "STRING", "Its name."), *record["fields"]]}
        case "record":
            fields = [_column(field["name"], field["doc"], field["type"]) for field in avro["fields"]]
            return _field(name, "RECORD", doc, mode) | {"fields": fields}
        case scalar:
            return _field(name, _TYPES[scalar], doc, mode)


def estimates_table() -> list[dict[str, Any]]:
    """Return the columns of the table, in the form that BigQuery's API and ``bq mk --schema`` accept."""
    columns = _column("estimate", "", load_schema("estimate"))["fields"]
    for column in columns:
        if column["name"] in ("window_start", "window_end"):
            column["type"] = "TIMESTAMP"
    return [
        _field("key", "STRING", "Collection, version, window and estimator: panes of one estimate have one key."),
        _field("age", "STRING", "Of the rows of a key, the one of the highest age holds."),
        *columns,
    ]


class BigQueryError(ValueError):
    """BigQuery refuses rows, or a table or a library is missing. The message says which."""


@dataclass
class WriteEstimatesToBigQuery(beam.PTransform[PCollection[Estimate], None]):
    """Append each pane of each estimate to a table; see ``deploy/bigquery`` for the table and its view.

    Attributes:
        table: ``PROJECT.DATASET.TABLE``; it must exist and have the columns of ``estimates_table``.
    """

    table: str

    def __post_init__(self) -> None:
        super().__init__()
        # A project's name may begin with a domain: example.com:project.
        if not re.fullmatch(r"[a-z][a-z0-9.:-]*\.\w+\.[\w-]+", self.table):
            raise BigQueryError(f"{self.table!r} is no table; write PROJECT.DATASET.TABLE")

    def expand(self, estimates: PCollection[Estimate]) -> None:
        """Insert the rows in one step: they are few, because a row is one window's estimate and not one report."""
        _ = estimates | "InsertRows" >> beam.ParDo(_InsertRowsFn(self.table))


class Client(Protocol):
    """The methods of ``google.cloud.bigquery.Client`` that the sink uses."""

    def insert_rows_json(self, table: str, json_rows: Sequence[Row], row_ids: Sequence[str]) -> Sequence[Any]:
        """Insert all rows or none; return an error for each row that prevents the insert."""

    def close(self) -> None:
        """Release the client's resources."""


def new_client(table: str) -> Client:
    """Connect with the worker's own credentials.

    Raises:
        BigQueryError: if the client library is not installed.
    """
    try:
        import google.cloud.bigquery as bigquery
    except ImportError as error:
        raise BigQueryError("google-cloud-bigquery is missing; pip install 'uldp-stream[gcp]'") from error
    client: Client = bigquery.Client(project=table.rsplit(".", 2)[0])
    return client


@beam.typehints.with_input_types(Estimate)
class _InsertRowsFn(beam.DoFn):
    """Inserts the rows of a bundle in requests of a size that BigQuery accepts."""

    #: Rows of a request; the recommended number.
    MAX_ROWS = 500
    #: Bytes of the rows of a request; BigQuery accepts 10 MB. A larger row has a request of its own.
    MAX_BYTES = 5 << 20

    def __init__(self, table: str) -> None:
        self._table = table

    def setup(self) -> None:
        self._client = new_client(self._table)

    def start_bundle(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._rows: list[Row] = []
        self._nbytes = 0

    def process(self, estimate: Estimate) -> None:
        row = estimate_row(estimate)
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
            raise BigQueryError(f"{self._table} does not take {len(errors)} of {len(self._rows)} rows: {errors[0]}")
        self._clear()

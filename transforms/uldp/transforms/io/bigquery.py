"""Estimates as rows of a BigQuery table: every pane is appended, and a view shows the newest of each window.

Upserts through the Storage Write API are Java's in Beam: a pipeline that is built without Java has none. Beam's own
streaming inserts draw their insert ids at random. So rows are inserted here, with an id that follows from what the
row holds. BigQuery drops a row whose id came a minute ago, mostly. What it lets through is an equal row, of which the
view takes one: `key` says which rows are panes of the same estimate, and the one of the highest `age` counts.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.schemas.flags import Flag
from uldp.schemas.framing import load_schema
from uldp.schemas.records import Estimate, PaneKind, iso

Row = dict[str, Any]

_TYPES = {"string": "STRING", "enum": "STRING", "int": "INTEGER", "long": "INTEGER", "double": "FLOAT"}
_KINDS = tuple(PaneKind)  # in the order in which they fire


def estimate_row(estimate: Estimate) -> Row:
    """Return the row of an estimate: the fields of ``estimate.avsc``, times as ISO 8601, tags as a list, key and age.

    The key is of collection, version, window and estimator. Ages sort as text: what has received more is newer, then
    what is not incomplete, then a late pane before one on time before an early one, then the higher revision. Not the
    revision first: revisions start again with a job that is started again, and what was received never shrinks.
    """
    support = estimate.support
    whole = Flag.INCOMPLETE not in support.flags
    age = (support.accounting.received, whole, _KINDS.index(support.pane.kind), support.pane.revision)
    return {
        "key": "/".join(map(str, (*support.key, estimate.estimator))),
        "age": "/".join(f"{part:x}".zfill(width) for part, width in zip(age, (16, 1, 1, 8), strict=True)),
        **estimate.to_avro(),
        "window_start": iso(support.window_start),
        "window_end": iso(support.window_end),
        "tags": [{"name": name, "mass": tag.mass, "stderr": tag.stderr} for name, tag in estimate.tags.items()],
    }


def insert_id(row: Row) -> str:
    """Return an id that equal rows share: a bundle that is tried again sends what it has sent before."""
    return hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()[:32]


def _field(name: str, kind: str, doc: str, mode: str = "REQUIRED") -> dict[str, Any]:
    return {"name": name, "type": kind, "mode": mode, "description": doc}


def _column(name: str, doc: str, avro: Any, mode: str = "REQUIRED") -> dict[str, Any]:
    """Translate an Avro field. BigQuery names what holds others RECORD, and has arrays and nulls as modes."""
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
    """Return the columns of the table, as BigQuery's API and ``bq mk --schema`` take them."""
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
    """Rows that BigQuery does not take, or a table or a library that is missing. The message says which."""


@dataclass
class WriteEstimatesToBigQuery(beam.PTransform[PCollection[Estimate], None]):
    """Append each pane of each estimate to a table; see ``deploy/bigquery`` for the table and its view.

    Attributes:
        table: ``PROJECT.DATASET.TABLE``, which is there and has the columns of ``estimates_table``.
    """

    table: str

    def __post_init__(self) -> None:
        super().__init__()
        # A project's name may begin with a domain: example.com:project.
        if not re.fullmatch(r"[a-z][a-z0-9.:-]*\.\w+\.[\w-]+", self.table):
            raise BigQueryError(f"{self.table!r} is no table; write PROJECT.DATASET.TABLE")

    def expand(self, estimates: PCollection[Estimate]) -> None:
        """One step: rows are few, for they are of windows and not of reports."""
        _ = estimates | "InsertRows" >> beam.ParDo(_InsertRowsFn(self.table))


class Client(Protocol):
    """What is used of ``google.cloud.bigquery.Client``."""

    def insert_rows_json(self, table: str, json_rows: Sequence[Row], row_ids: Sequence[str]) -> Sequence[Any]:
        """Insert rows, or none of them; returns an error for each row that is in the way."""

    def close(self) -> None:
        """Free what it holds."""


def new_client(table: str) -> Client:
    """Connect as whoever the worker runs as.

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
    """Inserts the rows of a bundle in requests of a size that BigQuery takes."""

    #: Rows of a request; so many are recommended.
    MAX_ROWS = 500
    #: Bytes of the rows of a request, of which BigQuery takes 10 MB. A row that is larger goes alone.
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
        if errors:  # the bundle fails and is tried again: a pane is never lost in silence
            raise BigQueryError(f"{self._table} does not take {len(errors)} of {len(self._rows)} rows: {errors[0]}")
        self._clear()

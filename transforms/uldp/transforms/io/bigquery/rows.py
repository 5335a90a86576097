"""The rows and columns of BigQuery's table of estimates."""

import hashlib
import json
from typing import Any

from uldp.schemas.estimate import Estimate, table_to_json
from uldp.schemas.framing import load_schema
from uldp.schemas.labels import entry_names
from uldp.schemas.records import iso
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import Table

Row = dict[str, Any]

_TYPES = {
    "string": "STRING",
    "enum": "STRING",
    "int": "INTEGER",
    "long": "INTEGER",
    "double": "FLOAT",
    "boolean": "BOOLEAN",
}


def estimate_row(estimate: Estimate, spec: CollectionSpec) -> Row:
    """Return the row of an estimate: the fields of ``estimate.avsc``, times as ISO 8601, arrays as lists, key and age.

    The ``keys`` of its tables are the labels of the spec that it was made under, where the values have labels.
    The key consists of collection, version, window and estimator. Ages sort as text; see ``PaneHeader.age``.
    """
    return {
        "key": "/".join(map(str, (*estimate.key, estimate.estimator))),
        "age": estimate.age_text,
        **estimate.to_avro(),
        "window_start": iso(estimate.window_start),
        "window_end": iso(estimate.window_end),
        "tables": [_lists(table_to_json(table) | {"keys": _names(table, spec)}) for table in estimate.tables],
    }


def _names(table: Table, spec: CollectionSpec) -> list[str] | None:
    names = entry_names(table, spec)
    return None if names is None else list(names)


def _lists(table: Row) -> Row:
    """Replace what a table does not have by empty lists, because BigQuery has no arrays that are null."""
    return {name: [] if value is None else value for name, value in table.items()}


def insert_id(row: Row) -> str:
    """Return an id that equal rows share, so that a retried bundle sends the same ids again."""
    return hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()[:32]


def _field(name: str, kind: str, doc: str, mode: str = "REQUIRED") -> dict[str, Any]:
    return {"name": name, "type": kind, "mode": mode, "description": doc}


def _column(name: str, doc: str, avro: Any, mode: str = "REQUIRED") -> dict[str, Any]:
    """Translate an Avro field. BigQuery calls a field with subfields RECORD, and writes arrays and nulls as modes.

    The bytes of an estimate are arrays of numbers.
    """
    if avro == "bytes":
        return _field(name, "FLOAT", doc, "REPEATED")
    if isinstance(avro, str):
        return _field(name, _TYPES[avro], doc, mode)
    if isinstance(avro, list):
        (present,) = (branch for branch in avro if branch != "null")
        return _column(name, doc, present, "NULLABLE")
    match avro["type"]:
        case "array":
            return _column(name, doc, avro["items"], "REPEATED")
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
        _field("age", "STRING", "If several rows have one key, the row with the highest age is valid."),
        *columns,
    ]

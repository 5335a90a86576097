"""Rows of estimates as JSON, for topics and for BigQuery: times are ISO 8601 in UTC, and JSON alone escapes labels."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TypeAlias

from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.estimate import Estimate
from uldp.schemas.rows import KEY, rows
from uldp.schemas.specs.collection import CollectionSpec

#: The key by which a message replaces another, and its body.
Keyed: TypeAlias = tuple[bytes, bytes]

#: A row whose values JSON has.
JsonRow: TypeAlias = dict[str, Any]

#: The columns of the key of a message: those of all panes of a row, of which the newest is valid.
_KEY_OF_PANES = tuple(name for name in KEY if name != "age")


def json_rows(estimate: Estimate, spec: CollectionSpec) -> Iterator[JsonRow]:
    """Yield the rows of an estimate; see ``uldp.schemas.rows.rows``."""
    for row in rows(estimate, spec):
        yield {name: _iso(value) if isinstance(value, datetime) else value for name, value in row.items()}


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def keyed_rows(specs: SharedSpecs, estimate: Estimate) -> Iterator[Keyed]:
    """Yield each row of an estimate as an object of JSON, under the columns that name it in all panes."""
    for row in json_rows(estimate, specs.of_pane(estimate)):
        key = "/".join(str(row[name]) for name in _KEY_OF_PANES)
        yield key.encode(), json.dumps(row).encode()

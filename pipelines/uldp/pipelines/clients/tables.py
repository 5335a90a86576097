"""What is in a table for devices, as text."""

import json
from collections.abc import Iterator, Mapping
from typing import Any


def table_lines(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line about a table of ``uldp.mechanisms.devices.table``, and one about each of its parts."""
    size = len(json.dumps(table, separators=(",", ":")))
    yield f"{table['collection']} version {table['version']}: table {table['digest']}, {size:,} bytes"
    for column in table["columns"]:
        tags = f", tags {', '.join(column['tags'])}" if column["tags"] else ""
        yield f"  {'holds':<11} {column['name'] or 'one variable'}: {column['kind']}{tags}"
    yield f"  {'encoding':<11} {', '.join(dict.fromkeys(_forms(table['encoding'])))}"
    yield f"  {'mechanism':<11} {', '.join(dict.fromkeys(_forms(table['mechanism'])))}"
    time = "exact" if table["exact_time"] else f"rounded down to {table['slice_ms']:,} ms"
    yield f"  {'time':<11} {time}"
    if table["kept"]:
        yield f"  {'ledger':<11} keeps a response for each symbol"
    if (budget := table["budget"]) is not None:
        yield f"  {'ledger':<11} spends at most epsilon {budget['epsilon']:g} in {budget['every_ms']:,} ms"


def _forms(node: Any) -> Iterator[str]:
    """Yield the names of all forms in a part of a table."""
    if isinstance(node, Mapping):
        if "form" in node:
            yield node["form"]
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _forms(each)

"""The tables of the specs for devices, as the server gives them: see docs/device-table.md."""

import json
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from uldp.collector.collections import ServedCollection
from uldp.mechanisms.devices.table import device_table
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec

_NAME = re.compile(r"([a-z0-9-]{1,64})-v([1-9][0-9]{0,9})")


class Table(NamedTuple):
    """A table for devices as JSON, and the digest that it holds."""

    digest: str  # the digest that it holds
    text: str  # the table as JSON


class Tables:
    """Gives the table of a collection and version, as served now, which is computed once."""

    def __init__(self, served: Callable[[], Mapping[CollectionKey, ServedCollection]]) -> None:
        self._served = served
        self._made: dict[CollectionKey, tuple[CollectionSpec, Table | None]] = {}

    def get(self, name: str) -> Table | None:
        """Return the table of a name as ``places-v1``; None if there is none."""
        found = _NAME.fullmatch(name)
        key = (found[1], int(found[2])) if found else ("", 0)
        collection = self._served().get(key)
        if collection is None:
            return None
        spec, table = self._made.get(key, (None, None))
        if spec is not collection.spec:
            table = _table_of(collection.spec)
            self._made[key] = collection.spec, table
        return table


def _table_of(spec: CollectionSpec) -> Table | None:
    try:
        table = device_table(spec)
    except ValueError:  # a mechanism of another package, whose devices have no table
        return None
    return Table(table["digest"], json.dumps(table, separators=(",", ":"), ensure_ascii=False))

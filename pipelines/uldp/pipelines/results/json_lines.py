"""Estimates as JSON, which ``uldp show --json`` prints: the tables, and common ones by name."""

from typing import Any

from uldp.schemas.estimate import Estimate, described_table
from uldp.schemas.labels import entry_names
from uldp.schemas.records import iso
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.schemas.table import ARRAYS, Table, TableName


def to_json(estimate: Estimate, statistic: Statistic | None, spec: CollectionSpec | None) -> dict[str, Any]:
    """Return the fields of one line: those of ``estimate.avsc`` with times in ISO 8601, and renderings of its tables.

    ``distribution`` and ``stderr`` are the shares, null if there are none; ``tags`` are the hidden shares and ``bound``
    that of Theorem 1, empty and 0 without tags. They cover a collection of one variable: ``tables`` has a record's
    attributes. Cells of a statistic become ``counts``, labels of a spec ``keys``, null if values are numbered.
    """
    value = estimate.described()
    share, bound = estimate.table(TableName.SHARE), estimate.table(TableName.BOUND)
    return {
        "collection": estimate.collection,
        "version": estimate.version,
        "window_start": iso(estimate.window_start),
        "window_end": iso(estimate.window_end),
        "pane": value["pane"],
        "n": estimate.n,
        "mechanism": estimate.mechanism,
        "epsilon": estimate.epsilon,
        "lasting_epsilon": estimate.lasting_epsilon,
        "budget": value["budget"],
        "shuffle": value["shuffle"],
        "estimator": estimate.estimator,
        "assume_forgers": estimate.assume_forgers,
        "device_digest": estimate.device_digest,
        "distribution": None if share is None else share.values.tolist(),
        "stderr": None if share is None else share.stderr.tolist(),
        "tags": _tags(estimate.table(TableName.HIDDEN)),
        "bound": 0.0 if bound is None else float(bound.values[0]),
        "counts": None if statistic is None else statistic.cells.tolist(),
        "tables": [_table(table, spec) for table in estimate.tables],
        "accounting": value["accounting"],
        "flags": value["flags"],
        "supersedes": value["supersedes"],
        "signals": value["signals"],
    }


def _table(table: Table, spec: CollectionSpec | None) -> dict[str, Any]:
    """Return the fields of ``estimate.avsc`` of a table, with lists of numbers in place of bytes, and its labels."""
    names = table.keys if spec is None else entry_names(table, spec)
    arrays = {name: array.tolist() for name, array in table.arrays.items()}
    keys = None if names is None else list(names)
    return {**described_table(table), **dict.fromkeys(ARRAYS), **arrays, "keys": keys}


def _tags(hidden: Table | None) -> dict[str, dict[str, float]]:
    if hidden is None or hidden.keys is None:
        return {}
    return {
        tag: {"mass": float(mass), "stderr": float(stderr)}
        for tag, mass, stderr in zip(hidden.keys, hidden.values, hidden.stderr, strict=True)
    }

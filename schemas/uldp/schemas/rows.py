"""Estimates as rows for other programs: one row for each entry of a table, with all that is known of it.

``rows`` gives them one by one, and ``Rows`` as columns of NumPy, for many estimates. The tables ``visible`` and
``band`` of a collection with tags are about the same values as ``share``. They have no rows of their own: the row of a
share has columns for them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from uldp.schemas.estimate import Estimate
from uldp.schemas.labels import value_labels
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mistakes import printable
from uldp.schemas.specs.slices import attributes_of, slice_text
from uldp.schemas.table import Table, TableName

#: The most rows of a batch; bounds the memory, together with one estimate.
MAX_ROWS = 1 << 16

#: Columns by name, each of the same length. Texts are codes of ``Texts``, and NaN is no number.
Batch = dict[str, npt.NDArray[Any]]


class Kind(Enum):
    """The type of a column; the value is the type of its NumPy array."""

    TEXT = "int32"
    COUNT = "int64"
    NUMBER = "float64"
    TIME = "datetime64[ms]"
    TRUTH = "bool"


#: The columns of each row, in their order.
COLUMNS: Mapping[str, Kind] = {
    "collection": Kind.TEXT,
    "version": Kind.COUNT,
    "device_digest": Kind.TEXT,
    "window_start": Kind.TIME,
    "window_end": Kind.TIME,
    "pane": Kind.TEXT,
    "revision": Kind.COUNT,
    "mechanism": Kind.TEXT,
    "epsilon": Kind.NUMBER,
    "lasting_epsilon": Kind.NUMBER,
    "budget_epsilon": Kind.NUMBER,
    "budget_days": Kind.NUMBER,
    "shuffle_epsilon": Kind.NUMBER,
    "shuffle_delta": Kind.NUMBER,
    "estimator": Kind.TEXT,
    "assume_forgers": Kind.NUMBER,
    "quantity": Kind.TEXT,
    "attribute": Kind.TEXT,
    "slice": Kind.TEXT,
    "position": Kind.COUNT,
    "label": Kind.TEXT,
    "estimate": Kind.NUMBER,
    "low": Kind.NUMBER,
    "high": Kind.NUMBER,
    "low_forged": Kind.NUMBER,
    "high_forged": Kind.NUMBER,
    "level": Kind.NUMBER,
    "basis": Kind.TEXT,
    "simultaneous": Kind.TRUTH,
    "unbiased": Kind.NUMBER,
    "stderr": Kind.NUMBER,
    "visible": Kind.NUMBER,
    "visible_low": Kind.NUMBER,
    "visible_high": Kind.NUMBER,
    "visible_unbiased": Kind.NUMBER,
    "visible_stderr": Kind.NUMBER,
    "band_low": Kind.NUMBER,
    "band_high": Kind.NUMBER,
    "n": Kind.COUNT,
    "flags": Kind.TEXT,
    "received": Kind.COUNT,
    "counted": Kind.COUNT,
    "duplicate": Kind.COUNT,
    "late": Kind.COUNT,
    "rejected": Kind.COUNT,
    "missing": Kind.COUNT,
}
#: Further columns of a place that keeps the rows of all panes. If a window has several panes, the pane with the highest
#: age is valid; ages sort as text.
PANE_COLUMNS: Mapping[str, Kind] = {"age": Kind.TEXT, "table_name": Kind.TEXT}
#: All columns of such a place.
STORED_COLUMNS: Mapping[str, Kind] = {**PANE_COLUMNS, **COLUMNS}
#: The columns that name a window's estimate. Only its newest pane is valid.
WINDOW_KEY = ("collection", "version", "device_digest", "window_start", "window_end", "estimator")
#: The columns that name a row among those of all panes. No other row has the same ones.
KEY = (*WINDOW_KEY, "age", "table_name", "position")

#: A value for all rows of a table, or an array that has one for each.
_Column = Any
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rows(estimate: Estimate, spec: CollectionSpec) -> Iterator[dict[str, Any]]:
    """Yield the rows of an estimate: for each of ``STORED_COLUMNS`` a text, a number, a time, a truth, or None."""
    for table in _tables(estimate):
        size = len(table.values)
        columns = _columns(estimate, table) | {"position": np.arange(size), "label": _labels(table, spec)}
        for start in range(0, size, MAX_ROWS):
            part = slice(start, min(start + MAX_ROWS, size))
            values = (_values(kind, columns[name], part) for name, kind in STORED_COLUMNS.items())
            yield from (dict(zip(STORED_COLUMNS, row, strict=True)) for row in zip(*values, strict=True))


def _values(kind: Kind, column: _Column, part: slice) -> Sequence[Any]:
    """Return the values of a part of a column, as Python has them."""
    if isinstance(column, np.ndarray):
        values = column[part].astype(kind.value).astype(object)
        if kind is Kind.NUMBER:
            values[np.isnan(column[part])] = None
        return list(values)
    if isinstance(column, Sequence) and not isinstance(column, str):
        return list(map(printable, column[part]))
    match kind:
        case Kind.TIME:
            column = _EPOCH + timedelta(milliseconds=column)
        case Kind.TEXT if column is not None:
            column = printable(column)
        case Kind.NUMBER if column is not None:
            column = float(column)
    return [column] * (part.stop - part.start)


def _tables(estimate: Estimate) -> Iterator[Table]:
    """Yield the tables that have rows of their own."""
    return (table for table in estimate.tables if table.name not in (TableName.VISIBLE, TableName.BAND))


def _labels(table: Table, spec: CollectionSpec) -> Sequence[str] | None:
    """Return the labels of a table; None if it has one entry, which its quantity names."""
    return None if len(table.values) == 1 and table.keys is None else value_labels(table, spec)


def _columns(estimate: Estimate, table: Table) -> dict[str, _Column]:
    """Return the columns of a table but its positions and labels. Times are in milliseconds."""
    budget, shuffled, visible, band = estimate.budget, estimate.shuffled(table.of), None, None
    if table.name is TableName.SHARE:
        visible, band = (estimate.table(name, table.of) for name in (TableName.VISIBLE, TableName.BAND))
    attribute, part = " x ".join(attributes_of(table.of)) or None, slice_text(table.of) or None
    return {
        "device_digest": estimate.device_digest,
        "age": estimate.age_text,
        "table_name": f"{table.name}{f' of {attribute}' if attribute else ''}{f' in {part}' if part else ''}",
        "collection": estimate.collection,
        "version": estimate.version,
        "window_start": estimate.window_start,
        "window_end": estimate.window_end,
        "pane": estimate.pane.kind.value,
        "revision": estimate.pane.revision,
        "mechanism": estimate.mechanism,
        "epsilon": estimate.epsilon,
        "lasting_epsilon": estimate.lasting_epsilon,
        "budget_epsilon": None if budget is None else budget.epsilon,
        "budget_days": None if budget is None else budget.every / timedelta(days=1),
        "shuffle_epsilon": None if shuffled is None else shuffled.epsilon,
        "shuffle_delta": None if shuffled is None else shuffled.delta,
        "estimator": estimate.estimator,
        "assume_forgers": estimate.assume_forgers,
        "quantity": table.name.value,
        "attribute": attribute,
        "slice": part,
        "estimate": table.values,
        "low": table.low,
        "high": table.high,
        "low_forged": table.low_forged,
        "high_forged": table.high_forged,
        "level": None if table.low is None else table.level,
        "basis": table.basis.value,
        "simultaneous": table.simultaneous,
        "unbiased": table.unbiased,
        "stderr": table.stderr,
        "visible": None if visible is None else visible.values,
        "visible_low": None if visible is None else visible.low,
        "visible_high": None if visible is None else visible.high,
        "visible_unbiased": None if visible is None else visible.unbiased,
        "visible_stderr": None if visible is None else visible.stderr,
        "band_low": None if band is None else band.low,
        "band_high": None if band is None else band.high,
        "n": table.n,
        "flags": ", ".join(estimate.flags) or None,
        "received": estimate.accounting.received,
        "counted": estimate.accounting.counted,
        "duplicate": estimate.accounting.duplicate,
        "late": estimate.accounting.late,
        "rejected": estimate.accounting.rejected,
        "missing": estimate.accounting.missing,
    }


class Texts:
    """The texts of a column, each with its position in the order in which they came; printable, as all output."""

    #: The code of no text.
    NONE = -1

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._codes)

    def code(self, text: str | None) -> int:
        """Return the code of a text; ``NONE`` for None."""
        return self.NONE if text is None else self._codes.setdefault(printable(text), len(self._codes))


class Rows:
    """Makes columns of the rows of estimates, of one file or table, whose batches share the codes of ``texts``."""

    def __init__(self, columns: Mapping[str, Kind] = COLUMNS) -> None:
        self.columns = columns
        self.texts = {name: Texts() for name, kind in columns.items() if kind is Kind.TEXT}
        self._labels: dict[tuple[Any, ...], npt.NDArray[np.int32] | None] = {}

    def batches(self, estimates: Iterable[tuple[Estimate, CollectionSpec]]) -> Iterator[Batch]:
        """Yield the rows of estimates in batches of ``MAX_ROWS`` rows; only the last may have fewer."""
        parts: list[Batch] = []
        room = MAX_ROWS
        for estimate, spec in estimates:
            for table in _tables(estimate):
                columns = _columns(estimate, table) | {
                    "position": np.arange(len(table.values)),
                    "label": self._label_codes(table, spec),
                }
                start = 0
                while start < len(table.values):
                    part = slice(start, min(start + room, len(table.values)))
                    parts.append({name: self._column(name, columns[name], part) for name in self.columns})
                    start, room = part.stop, room - (part.stop - part.start)
                    if not room:
                        yield self._joined(parts)
                        parts, room = [], MAX_ROWS
        if parts:
            yield self._joined(parts)

    def _column(self, name: str, value: _Column, part: slice) -> npt.NDArray[Any]:
        """Return a part of a column."""
        kind = self.columns[name]
        if isinstance(value, np.ndarray):
            return value[part].astype(kind.value, copy=False)
        if kind is Kind.TEXT:
            value = self.texts[name].code(value)
        elif value is None:
            value = np.nan
        return np.broadcast_to(np.asarray(value).astype(kind.value), (part.stop - part.start,))

    def _label_codes(self, table: Table, spec: CollectionSpec) -> npt.NDArray[np.int32] | None:
        """Return the codes of the labels of a table, which are made once for all estimates."""
        key = (spec.key, table.name, table.of, table.keys, len(table.values))
        if key not in self._labels:
            labels, code = _labels(table, spec), self.texts["label"].code
            self._labels[key] = None if labels is None else np.array([code(label) for label in labels], np.int32)
        return self._labels[key]

    def _joined(self, parts: list[Batch]) -> Batch:
        return {name: np.concatenate([part[name] for part in parts]) for name in self.columns}

"""Estimates as rows for other programs: one row for each entry of a table, as columns of NumPy.

The tables ``visible`` and ``band`` of a collection with tags are about the same values as ``share``. They have no rows
of their own: the row of a share has columns for them.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from uldp.pipelines.results.tables import value_labels
from uldp.schemas.arrays import Floats
from uldp.schemas.estimate import Estimate
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mistakes import printable
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


#: The columns of each file, in their order.
COLUMNS: Mapping[str, Kind] = {
    "collection": Kind.TEXT,
    "version": Kind.COUNT,
    "window_start": Kind.TIME,
    "window_end": Kind.TIME,
    "pane": Kind.TEXT,
    "revision": Kind.COUNT,
    "mechanism": Kind.TEXT,
    "epsilon": Kind.NUMBER,
    "lasting_epsilon": Kind.NUMBER,
    "budget_epsilon": Kind.NUMBER,
    "budget_days": Kind.NUMBER,
    "estimator": Kind.TEXT,
    "quantity": Kind.TEXT,
    "attribute": Kind.TEXT,
    "position": Kind.COUNT,
    "label": Kind.TEXT,
    "estimate": Kind.NUMBER,
    "low": Kind.NUMBER,
    "high": Kind.NUMBER,
    "level": Kind.NUMBER,
    "basis": Kind.TEXT,
    "simultaneous": Kind.TRUTH,
    "stderr": Kind.NUMBER,
    "visible": Kind.NUMBER,
    "visible_low": Kind.NUMBER,
    "visible_high": Kind.NUMBER,
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


class Texts:
    """The different texts of a column, each with a code: its position in the order in which they came.

    Characters that command a terminal or reorder text are replaced, as in all output of the command line.
    """

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
    """Makes the rows of estimates; a context of one export, whose batches share their codes of texts.

    Attributes:
        texts: By the name of a column, its texts.
    """

    def __init__(self) -> None:
        self.texts = {name: Texts() for name, kind in COLUMNS.items() if kind is Kind.TEXT}
        self._labels: dict[tuple[Any, ...], npt.NDArray[np.int32]] = {}

    def batches(self, estimates: Iterable[tuple[Estimate, CollectionSpec]]) -> Iterator[Batch]:
        """Yield the rows of estimates in batches of ``MAX_ROWS`` rows; only the last may have fewer."""
        parts: list[Batch] = []
        room = MAX_ROWS
        for estimate, spec in estimates:
            for table in estimate.tables:
                if table.name in (TableName.VISIBLE, TableName.BAND):
                    continue
                start = 0
                while start < len(table.values):
                    rows = slice(start, min(start + room, len(table.values)))
                    parts.append(self._part(estimate, table, spec, rows))
                    start, room = rows.stop, room - (rows.stop - rows.start)
                    if not room:
                        yield _joined(parts)
                        parts, room = [], MAX_ROWS
        if parts:
            yield _joined(parts)

    def _part(self, estimate: Estimate, table: Table, spec: CollectionSpec, rows: slice) -> Batch:
        """Return some rows of a table as columns."""
        codes, budget = self._label_codes(table, spec), estimate.budget
        visible = band = None
        if table.name is TableName.SHARE:
            visible, band = (estimate.table(name, table.of) for name in (TableName.VISIBLE, TableName.BAND))
        columns: dict[str, Any] = {
            "collection": estimate.collection,
            "version": estimate.version,
            "window_start": np.datetime64(estimate.window_start, "ms"),
            "window_end": np.datetime64(estimate.window_end, "ms"),
            "pane": estimate.pane.kind.value,
            "revision": estimate.pane.revision,
            "mechanism": estimate.mechanism,
            "epsilon": estimate.epsilon,
            "lasting_epsilon": estimate.lasting_epsilon,
            "budget_epsilon": None if budget is None else budget.epsilon,
            "budget_days": None if budget is None else budget.every / timedelta(days=1),
            "estimator": estimate.estimator,
            "quantity": table.name.value,
            "attribute": " x ".join(table.of) or None,
            "position": np.arange(rows.start, rows.stop),
            "label": codes if codes is None else codes[rows],
            "estimate": table.values[rows],
            "low": _cut(table.low, rows),
            "high": _cut(table.high, rows),
            "level": None if table.low is None else table.level,
            "basis": table.basis.value,
            "simultaneous": table.simultaneous,
            "stderr": table.stderr[rows],
            "visible": None if visible is None else visible.values[rows],
            "visible_low": None if visible is None else _cut(visible.low, rows),
            "visible_high": None if visible is None else _cut(visible.high, rows),
            "band_low": None if band is None else _cut(band.low, rows),
            "band_high": None if band is None else _cut(band.high, rows),
            "n": table.n,
            "flags": ", ".join(estimate.flags) or None,
            "received": estimate.accounting.received,
            "counted": estimate.accounting.counted,
            "duplicate": estimate.accounting.duplicate,
            "late": estimate.accounting.late,
            "rejected": estimate.accounting.rejected,
            "missing": estimate.accounting.missing,
        }
        return {name: self._column(name, columns[name], rows.stop - rows.start) for name in COLUMNS}

    def _column(self, name: str, value: Any, rows: int) -> npt.NDArray[Any]:
        """Return a column of one value for all rows, or of an array that has a value for each."""
        kind = COLUMNS[name]
        if kind is Kind.TEXT and not isinstance(value, np.ndarray):
            value = self.texts[name].code(value)
        elif value is None:
            value = np.nan
        return np.broadcast_to(np.asarray(value, kind.value), (rows,))

    def _label_codes(self, table: Table, spec: CollectionSpec) -> npt.NDArray[np.int32] | None:
        """Return the codes of the labels of a table; None if it has one entry, which its quantity names."""
        size = len(table.values)
        if size == 1 and table.keys is None:
            return None
        key = (spec.key, table.name, table.of, table.keys, size)
        if key not in self._labels:
            code = self.texts["label"].code
            self._labels[key] = np.array([code(label) for label in value_labels(table, spec)], np.int32)
        return self._labels[key]


def _cut(numbers: Floats | None, rows: slice) -> Floats | None:
    return None if numbers is None else numbers[rows]


def _joined(parts: list[Batch]) -> Batch:
    return {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}

"""Estimates as rows for other programs: one row for each entry of a table, with all that is known of it.

``rows`` gives them one by one, and ``Rows`` as columns of NumPy, for many estimates. The tables ``visible`` and
``band`` of a collection with tags are about the same values as ``share``. They have no rows of their own: the row of a
share has columns for them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from uldp.schemas.estimate import Estimate
from uldp.schemas.labels import value_labels
from uldp.schemas.pane import OUTCOMES
from uldp.schemas.shuffled import Shuffled
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import moment_at
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


class _Of(NamedTuple):
    """What the rows of a table follow from."""

    estimate: Estimate
    table: Table
    attribute: str | None  # the attributes of a record that the table is about
    slice: str | None
    shuffled: Shuffled | None  # what is promised to those who see only tables
    visible: Table | None  # of a table of shares, what was measured
    band: Table | None  # and the ends of the intervals that hold wherever the hidden users are
    labels: Any  # the labels, or their codes as an array; None if it has one entry, which its quantity names

    @classmethod
    def of(cls, estimate: Estimate, table: Table, labels: Any) -> Self:
        """Look for what else an estimate says of the entries of a table."""
        of_share = (TableName.VISIBLE, TableName.BAND) if table.name is TableName.SHARE else ()
        visible, band = [estimate.table(name, table.of) for name in of_share] or [None, None]
        attribute, part = " x ".join(attributes_of(table.of)) or None, slice_text(table.of) or None
        return cls(estimate, table, attribute, part, estimate.shuffled(table.of), visible, band, labels)

    @property
    def table_name(self) -> str:
        """The name of the table among those of an estimate."""
        of = f" of {self.attribute}" if self.attribute else ""
        return f"{self.table.name}{of}{f' in {self.slice}' if self.slice else ''}"


class _Column(NamedTuple):
    """A column: its kind, and its value for all rows of a table, or an array that has one for each; a time is in ms."""

    kind: Kind
    of: Callable[[_Of], Any]


#: The columns of each row, in their order; no other place names one, but for the keys below.
_COLUMNS = {
    "collection": _Column(Kind.TEXT, lambda of: of.estimate.collection),
    "version": _Column(Kind.COUNT, lambda of: of.estimate.version),
    "device_digest": _Column(Kind.TEXT, lambda of: of.estimate.device_digest),
    "window_start": _Column(Kind.TIME, lambda of: of.estimate.window_start),
    "window_end": _Column(Kind.TIME, lambda of: of.estimate.window_end),
    "pane": _Column(Kind.TEXT, lambda of: of.estimate.pane.kind.value),
    "revision": _Column(Kind.COUNT, lambda of: of.estimate.pane.revision),
    "mechanism": _Column(Kind.TEXT, lambda of: of.estimate.mechanism),
    "epsilon": _Column(Kind.NUMBER, lambda of: of.estimate.epsilon),
    "lasting_epsilon": _Column(Kind.NUMBER, lambda of: of.estimate.lasting_epsilon),
    "budget_epsilon": _Column(Kind.NUMBER, lambda of: of.estimate.budget and of.estimate.budget.epsilon),
    "budget_days": _Column(Kind.NUMBER, lambda of: of.estimate.budget and of.estimate.budget.every / timedelta(days=1)),
    "shuffle_epsilon": _Column(Kind.NUMBER, lambda of: of.shuffled and of.shuffled.epsilon),
    "shuffle_delta": _Column(Kind.NUMBER, lambda of: of.shuffled and of.shuffled.delta),
    "estimator": _Column(Kind.TEXT, lambda of: of.estimate.estimator),
    "assume_forgers": _Column(Kind.NUMBER, lambda of: of.estimate.assume_forgers),
    "quantity": _Column(Kind.TEXT, lambda of: of.table.name.value),
    "attribute": _Column(Kind.TEXT, lambda of: of.attribute),
    "slice": _Column(Kind.TEXT, lambda of: of.slice),
    "position": _Column(Kind.COUNT, lambda of: np.arange(len(of.table.values))),
    "label": _Column(Kind.TEXT, lambda of: of.labels),
    "estimate": _Column(Kind.NUMBER, lambda of: of.table.values),
    "low": _Column(Kind.NUMBER, lambda of: of.table.low),
    "high": _Column(Kind.NUMBER, lambda of: of.table.high),
    "low_forged": _Column(Kind.NUMBER, lambda of: of.table.low_forged),
    "high_forged": _Column(Kind.NUMBER, lambda of: of.table.high_forged),
    "level": _Column(Kind.NUMBER, lambda of: None if of.table.low is None else of.table.level),
    "basis": _Column(Kind.TEXT, lambda of: of.table.basis.value),
    "simultaneous": _Column(Kind.TRUTH, lambda of: of.table.simultaneous),
    "unbiased": _Column(Kind.NUMBER, lambda of: of.table.unbiased),
    "stderr": _Column(Kind.NUMBER, lambda of: of.table.stderr),
    "visible": _Column(Kind.NUMBER, lambda of: of.visible and of.visible.values),
    "visible_low": _Column(Kind.NUMBER, lambda of: of.visible and of.visible.low),
    "visible_high": _Column(Kind.NUMBER, lambda of: of.visible and of.visible.high),
    "visible_unbiased": _Column(Kind.NUMBER, lambda of: of.visible and of.visible.unbiased),
    "visible_stderr": _Column(Kind.NUMBER, lambda of: of.visible and of.visible.stderr),
    "band_low": _Column(Kind.NUMBER, lambda of: of.band and of.band.low),
    "band_high": _Column(Kind.NUMBER, lambda of: of.band and of.band.high),
    "n": _Column(Kind.COUNT, lambda of: of.table.n),
    "flags": _Column(Kind.TEXT, lambda of: ", ".join(of.estimate.flags) or None),
    **{name: _Column(Kind.COUNT, attrgetter(f"estimate.accounting.{name}")) for name in OUTCOMES},
}
#: Further columns of a place that keeps the rows of all panes. If a window has several panes, the pane with the highest
#: age is valid; ages sort as text.
_PANE_COLUMNS = {
    "age": _Column(Kind.TEXT, lambda of: of.estimate.age_text),
    "table_name": _Column(Kind.TEXT, lambda of: of.table_name),
}
_STORED = {**_PANE_COLUMNS, **_COLUMNS}
#: The kinds of the columns of each row, in their order.
COLUMNS: Mapping[str, Kind] = {name: column.kind for name, column in _COLUMNS.items()}
#: Those of a place that keeps the rows of all panes.
STORED_COLUMNS: Mapping[str, Kind] = {name: column.kind for name, column in _STORED.items()}
#: The columns that name a window's estimate. Only its newest pane is valid.
WINDOW_KEY = ("collection", "version", "device_digest", "window_start", "window_end", "estimator")
#: The columns that name a row among those of all panes. No other row has the same ones.
KEY = (*WINDOW_KEY, "age", "table_name", "position")


def rows(estimate: Estimate, spec: CollectionSpec) -> Iterator[dict[str, Any]]:
    """Yield the rows of an estimate: for each of ``STORED_COLUMNS`` a text, a number, a time, a truth, or None."""
    for table in _tables(estimate):
        of, size = _Of.of(estimate, table, _labels(table, spec)), len(table.values)
        columns = [(column.kind, column.of(of)) for column in _STORED.values()]
        for start in range(0, size, MAX_ROWS):
            part = slice(start, min(start + MAX_ROWS, size))
            values = (_values(kind, column, part) for kind, column in columns)
            yield from (dict(zip(_STORED, row, strict=True)) for row in zip(*values, strict=True))


def _values(kind: Kind, column: Any, part: slice) -> Sequence[Any]:
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
            column = moment_at(column)
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


class Texts(dict[str, int]):
    """The texts of a column, each with its position in the order in which they came; printable, as all output."""

    #: The code of no text.
    NONE = -1

    def code(self, text: str | None) -> int:
        """Return the code of a text; ``NONE`` for None."""
        return self.NONE if text is None else self.setdefault(printable(text), len(self))


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
                of, start = _Of.of(estimate, table, self._label_codes(table, spec)), 0
                columns = {name: _STORED[name].of(of) for name in self.columns}
                while start < len(table.values):
                    part = slice(start, min(start + room, len(table.values)))
                    parts.append({name: self._column(name, columns[name], part) for name in self.columns})
                    start, room = part.stop, room - (part.stop - part.start)
                    if not room:
                        yield self._joined(parts)
                        parts, room = [], MAX_ROWS
        if parts:
            yield self._joined(parts)

    def _column(self, name: str, value: Any, part: slice) -> npt.NDArray[Any]:
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

"""The quantities of a collection over its windows: the largest and the chosen values, numbers, what was not counted."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from uldp.pipelines.report.time_line import Chart, Series, Span, draw
from uldp.pipelines.results.tables import decimals, kind_of, of_attributes, percent, rounded, table_name
from uldp.pipelines.results.text import skew_bound, skew_range
from uldp.schemas.arrays import Floats
from uldp.schemas.errors import RequestError
from uldp.schemas.estimate import Estimate
from uldp.schemas.labels import value_labels
from uldp.schemas.pane import Accounting, Signals
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mistakes import near, quote
from uldp.schemas.table import NUMBERS, Table, TableName

#: How many of the largest values of each table have a line.
_LARGEST = 5
#: Tables whose entries have lines in percent; ``NUMBERS`` have lines as they are.
_IN_PERCENT = (TableName.SHARE, TableName.HIDDEN, TableName.UNEXPLAINED, TableName.RANGE)


class Point(NamedTuple):
    """A window, or the sum of those of a period, in one place of the lines."""

    start: int
    end: int
    n: int
    accounting: Accounting
    flags: Sequence[str]
    signals: Signals
    tables: Sequence[Table]

    def table(self, name: TableName, of: tuple[str, ...]) -> Table | None:
        """Return the table of a quantity of some attributes; None without one."""
        return next((table for table in self.tables if (table.name, table.of) == (name, of)), None)


def point_of(estimate: Estimate) -> Point:
    """Return the point of an estimate."""
    return Point(
        estimate.window_start,
        estimate.window_end,
        estimate.n,
        estimate.accounting,
        estimate.flags,
        estimate.signals,
        estimate.tables,
    )


@dataclass(frozen=True)
class Line:
    """A quantity over time: its name, its chart, its figure in the last window, and the ends of its axis."""

    name: str
    chart: Chart
    last: str
    axis: str


@dataclass(frozen=True)
class Lines:
    """All lines of a version of a collection."""

    ticks: Sequence[tuple[float, str]]  # places of times, in percent of the width, and the times
    lines: Sequence[Line]
    reports: Chart  # the chart of the reports in each window, which is one of them
    every: str  # what a point of a line is, such as ``each window``
    points: int  # the number of points
    #: Of each point with a flag, its place in percent of the width, and its flags.
    flagged: Sequence[tuple[float, Sequence[str]]]

    @property
    def flag_names(self) -> Sequence[str]:
        """Return the flags of all windows, each once."""
        return list(dict.fromkeys(flag for _, flags in self.flagged for flag in flags))


def lines_of(points: Sequence[Point], every: str, spec: CollectionSpec, chosen: Sequence[str]) -> Lines:
    """Draw the estimates of one estimator, in the order of time, with lines for values that were chosen too."""
    counted = _series(points, [float(each.n) for each in points])
    span = Span(int(counted.starts[0]), int(counted.ends.max()))
    lines = [line for table in points[-1].tables for line in _of_table(table, points, spec, chosen, span)]
    reports = _line("reports", counted, span, lambda n: f"{n:,.0f}", "")
    lines.append(reports)
    for name, outcome in _UNCOUNTED.items():
        series = _series(points, [_share_of(outcome, each.accounting) for each in points])
        if series.values.any():
            lines.append(_line(name, series, span, lambda share: percent(share, 2), " %"))
    lines += _of_clocks(points, span)
    at = span.percent(counted.middles).tolist()
    flagged = [(place, each.flags) for place, each in zip(at, points, strict=True) if each.flags]
    return Lines(list(span.ticks()), lines, reports.chart, every, len(points), flagged)


def _share_of(outcome: str, accounting: Accounting) -> float:
    """Return the share of the reports that existed, as ``Accounting`` knows it."""
    return accounting.to_avro()[outcome] / max(accounting.received + accounting.missing, 1)


_UNCOUNTED = {"rejected": "rejected", "late": "late", "duplicate": "duplicate", "missing, at most": "missing"}


def _of_clocks(points: Sequence[Point], span: Span) -> Iterator[Line]:
    """Yield how far 99 % of the event times are before and ahead of publish times, in powers of two seconds."""
    for direction in ("past", "early"):
        known = [(each, counts) for each in points if sum(counts := getattr(each.signals, direction))]
        series = _series([each for each, _ in known], [float(skew_range(counts, 0.99)) for _, counts in known])
        if series.values.any():
            yield _line(f"clocks {direction}, 99 %", series, span, lambda skew: skew_bound(int(skew)), "")


def _of_table(
    last: Table, points: Sequence[Point], spec: CollectionSpec, chosen: Sequence[str], span: Span
) -> Iterator[Line]:
    """Yield the lines of one table of the last point; those whose table has another size have no place in them."""
    if last.name not in (*_IN_PERCENT, *NUMBERS):
        return
    found = [(each, each.table(last.name, last.of)) for each in points]
    known = [(each, table) for each, table in found if table is not None and table.shape == last.shape]
    tables = [table for _, table in known]
    labels, ordered = value_labels(last, spec), kind_of(last.of, spec).ordered
    for i in _entries(last, tables, labels, chosen, ordered=ordered):
        values = [float(table.values[i]) for table in tables]
        series = _series([each for each, _ in known], values, *_ends(tables, i))
        error = float(last.stderr[i])
        if last.name in _IN_PERCENT:
            name = f"{_entry_name(last, labels, i)}{of_attributes(last.of)}"
            yield _line(name, series, span, partial(percent, places=decimals(last.stderr[i : i + 1])), " %")
        else:
            key = f" {labels[i]}" if len(labels) > 1 else ""
            yield _line(f"{table_name(last)}{key}", series, span, partial(rounded, error=error), "")


def _entry_name(table: Table, labels: Sequence[str], i: int) -> str:
    """Return the name of a share: its label, and what it is if it is not that of a value."""
    named = {TableName.SHARE: labels[i], TableName.RANGE: labels[i], TableName.HIDDEN: f"behind {labels[i]}"}
    return named.get(table.name, table.name.value)


def _entries(
    last: Table, tables: Sequence[Table], labels: Sequence[str], chosen: Sequence[str], *, ordered: bool
) -> list[int]:
    """Return entries that have lines: the largest shares and chosen ones; of bins these alone, of others the first."""
    if last.name is not TableName.SHARE:
        return list(range(min(len(last.values), _LARGEST)))
    total = np.zeros(len(last.values))
    for table in tables:
        total += table.values
    largest = [] if ordered else np.argsort(-total, kind="stable")[:_LARGEST].tolist()
    return list(dict.fromkeys([*largest, *(i for i, label in enumerate(labels) if label in chosen)]))


def _ends(tables: Sequence[Table], i: int) -> tuple[Floats, Floats] | tuple[None, None]:
    """Return the ends of the intervals of one entry; None if a window has none."""
    low = [table.low[i] for table in tables if table.low is not None]
    high = [table.high[i] for table in tables if table.high is not None]
    return (np.array(low), np.array(high)) if len(low) == len(high) == len(tables) else (None, None)


def _series(
    points: Sequence[Point], values: Sequence[float], low: Floats | None = None, high: Floats | None = None
) -> Series:
    starts, ends = (np.array([getattr(each, name) for each in points]) for name in ("start", "end"))
    return Series(starts, ends, np.array(values), low, high)


def _line(name: str, series: Series, span: Span, text: Callable[[float], str], unit: str) -> Line:
    chart = draw(series, span)
    last = text(float(series.values[-1]))
    if series.low is not None and series.high is not None:
        last += f", {text(float(series.low[-1]))} to {text(float(series.high[-1]))}"
    return Line(name, chart, f"{last}{unit}", f"{text(chart.least)} to {text(chart.most)}{unit}")


def check_chosen(chosen: Sequence[str], last: Iterable[tuple[Estimate, CollectionSpec]]) -> None:
    """Check that a table of shares has each of the chosen labels; RequestError if none has."""
    known = {
        label
        for estimate, spec in last
        for table in estimate.tables
        if table.name is TableName.SHARE
        for label in value_labels(table, spec)
    }
    for label in chosen:
        if label not in known:
            hint = near(label, known)
            raise RequestError(f"no collection has a value {quote(label)}{f'; {hint}' if hint else ''}")

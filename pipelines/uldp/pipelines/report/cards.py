"""What an estimate says about one attribute of a record, or about the only variable, as a card of the page."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uldp.pipelines.report.shares import TOP, Shares, shares_of
from uldp.pipelines.results.tables import WITH_SHARES, decimals, largest, of_attributes, percent, rounded, withheld
from uldp.pipelines.simulation.truth import KnownShares
from uldp.schemas.estimate import Estimate
from uldp.schemas.labels import value_labels
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import NUMBERS, Table, TableName

#: A matrix with more columns has no intervals: they would be wider than a page.
_WITH_INTERVALS = 8
#: How many colours there are on each side of a half, as classes of the page.
_COLOURS = 5


@dataclass(frozen=True)
class Cell:
    """A share."""

    text: str  # the share in percent; a dash if nothing was estimated
    interval: str  # its interval; empty without one, or if there is no room for it
    colour: str  # the class of its colour: ``more-3`` is above a half, ``less-3`` below; empty near a half
    decided: bool  # whether its interval is on one side of a half


@dataclass(frozen=True)
class Matrix:
    """Its names, for rows and columns, and its rows."""

    n: int
    names: Sequence[str]
    rows: Sequence[Sequence[Cell]]


def matrix_of(table: Table, spec: CollectionSpec) -> Matrix | None:
    """Return a table of shares of which of two is above the other; None if it is no such table."""
    size = math.isqrt(len(table.values))
    variable = spec.variable(table.of)
    names = None if variable is None else variable.kind.entries(size, whole=False)
    if names is None or table.shape != (size, size):
        return None
    places = decimals(table.stderr)
    cells = [_cell(table, i, places, with_ends=size <= _WITH_INTERVALS) for i in range(size * size)]
    return Matrix(table.n, names, [cells[row * size : (row + 1) * size] for row in range(size)])


def _cell(table: Table, i: int, places: int, *, with_ends: bool) -> Cell:
    if not table.stderr[i]:
        return Cell("–", "", "", decided=False)
    share = min(max(float(table.values[i]), 0.0), 1.0)
    step = round((share - 0.5) * 2 * _COLOURS)
    colour = f"{'more' if step > 0 else 'less'}-{abs(step)}" if step else ""
    if table.low is None or table.high is None:
        return Cell(percent(table.values[i], places), "", colour, decided=False)
    ends = f"{percent(table.low[i], places)} to {percent(table.high[i], places)}" if with_ends else ""
    decided = bool(table.low[i] > 0.5 or table.high[i] < 0.5)
    return Cell(percent(table.values[i], places), ends, colour, decided)


#: What a table is, in the words of its heading; a share is in percent of the users.
_WORDS = {
    TableName.MEAN: "Mean",
    TableName.MEAN_SIZE: "Mean number of items",
    TableName.SIZE: "Number of items, in % of users",
    TableName.UNEXPLAINED: "Unexplained",
    TableName.SCORE: "Mean score: how many others a user ranks below",
    TableName.QUANTILE: "Quantiles",
    TableName.RANGE: "Ranges, in % of users",
    TableName.ZONE: "Zones behind tags, in % of users",
    TableName.BELOW: "At or below, in % of users",
    TableName.BEATS: "Users who rank one above the other, in %",
}


@dataclass(frozen=True)
class Entry:
    """An entry of a table as text: its name, its estimate, its standard error, and its intervals, if it has them."""

    label: str
    estimate: str
    error: str
    interval: str
    forged: str


@dataclass(frozen=True)
class Entries:
    """A table that is not about values: its name, size, and its first or largest entries."""

    name: str
    size: int
    which: str
    rows: Sequence[Entry]


@dataclass(frozen=True)
class Card:
    """What is known about one variable."""

    of: str  # the attributes of a record; empty if the collection has one variable
    n: int  # the number of reports behind it
    figures: Sequence[Entry]  # single numbers with their names
    found: str  # of strings, what was found in words; of keys with numbers, how many are withheld; else empty
    shares: Shares | None  # the shares of its values
    matrix: Matrix | None  # which candidate is ranked above which
    others: Sequence[Entries]  # all other tables


def cards_of(estimate: Estimate, spec: CollectionSpec, truth: KnownShares | None) -> list[Card]:
    """Return a card for each attribute of an estimate, in the order of its tables; ``truth`` is of one variable."""
    return [_card(estimate, of, spec, truth) for of in dict.fromkeys(table.of for table in estimate.tables)]


def _card(estimate: Estimate, of: tuple[str, ...], spec: CollectionSpec, truth: KnownShares | None) -> Card:
    mine = [table for table in estimate.tables if table.of == of]
    share = estimate.table(TableName.SHARE, of)
    beats = estimate.table(TableName.BEATS, of)
    shares = None if share is None else shares_of(estimate, share, spec, truth)
    matrix = None if beats is None else matrix_of(beats, spec)
    drawn = {TableName.BELOW} if shares is not None and shares.distribution is not None else set()
    drawn |= {TableName.BEATS} if matrix is not None else set()
    rest = [each for each in mine if each.name not in WITH_SHARES and each.name not in drawn]
    single = [each for each in rest if len(each.values) == 1 and each.keys is None]
    return Card(
        of_attributes(of).removeprefix(" of "),
        max(table.n for table in mine),
        [_entry(each, 0, _WORDS.get(each.name, each.name.value), spec) for each in single],
        _found(estimate, of) or "; ".join(withheld(estimate, of, spec)),
        shares,
        matrix,
        [_entries(each, spec) for each in rest if each not in single],
    )


def _found(estimate: Estimate, of: tuple[str, ...]) -> str:
    """Say how many candidates were found, and which share of users holds them by their estimates."""
    names = (TableName.FOUND, TableName.SHARE, TableName.P_VALUE)
    found, share, p_value = (estimate.table(name, of) for name in names)
    if found is None or share is None or p_value is None:
        return ""
    which = found.values > 0
    held = percent(float(share.values[which].sum()), decimals(share.stderr))
    return f"{int(which.sum()):,} of {len(which):,} candidates were found; {held} % of users hold them."


def _entries(table: Table, spec: CollectionSpec) -> Entries:
    name = _WORDS.get(table.name, table.name.value.capitalize())
    labels = value_labels(table, spec)
    which = largest(table.values, TOP) if table.name is TableName.ZONE else range(min(len(labels), TOP))
    rows = [_entry(table, i, labels[i], spec) for i in which]
    return Entries(name, len(labels), "largest" if table.name is TableName.ZONE else "first", rows)


def _entry(table: Table, i: int, label: str, spec: CollectionSpec) -> Entry:
    if table.name is TableName.QUANTILE and (values := _values(table, spec)) is not None:
        return _entry_of_values(table, i, label, values)
    error = float(table.stderr[i])
    places = decimals(table.stderr)

    def text(number: float) -> str:
        return rounded(number, error) if table.name in NUMBERS else f"{percent(number, places)} %"

    def ends(low: float | None, high: float | None) -> str:
        return "" if low is None or high is None else f"{text(low).removesuffix(' %')} to {text(high)}"

    low, high, low_forged, high_forged = (
        None if each is None else float(each[i])
        for each in (table.low, table.high, table.low_forged, table.high_forged)
    )
    return Entry(label, text(float(table.values[i])), text(error), ends(low, high), ends(low_forged, high_forged))


def _values(table: Table, spec: CollectionSpec) -> Sequence[str] | None:
    """Return the labels of the values of which a quantile is one; None if quantiles are numbers."""
    variable = spec.variable(table.of)
    if variable is None or not variable.kind.listed:
        return None
    labels = variable.kind.entries(variable.size, whole=False)
    return [str(i) for i in range(variable.size)] if labels is None else labels


def _entry_of_values(table: Table, i: int, label: str, values: Sequence[str]) -> Entry:
    def name(index: float) -> str:
        return values[int(np.clip(index, 0, len(values) - 1))]

    interval = "" if table.low is None or table.high is None else f"{name(table.low[i])} to {name(table.high[i])}"
    return Entry(label, name(table.values[i]), "", interval, "")

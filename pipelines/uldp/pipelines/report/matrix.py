"""A table of shares over two things, as one that a reader sees at a glance: a colour for each cell."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from uldp.pipelines.results.tables import decimals, percent
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import Table

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

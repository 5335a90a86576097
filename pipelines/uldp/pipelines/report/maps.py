"""Shares of the cells of a grid as maps, which the page draws itself: a square of SVG for each cell, with its figures.

One hue goes from light to dark, so that a map needs no colour to be read. Squares of sensitive cells have an outline.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import NamedTuple

import numpy as np

from uldp.pipelines.report.received import Received
from uldp.pipelines.report.shares import Hidden, hidden_of, sensitive_of
from uldp.pipelines.results.tables import carried, decimals, of_attributes, percent, with_ends
from uldp.pipelines.simulation.truth import KnownShares
from uldp.schemas.arrays import Floats, Mask
from uldp.schemas.estimate import Estimate
from uldp.schemas.labels import value_labels
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.domains import Tag
from uldp.schemas.specs.mistakes import printable
from uldp.schemas.table import Table, TableName

#: A map has so many squares at the most. Of more cells, a square is the sum of a block.
MOST = 2_500
#: The steps of a scale, each with a class of the page.
STEPS = 6


@dataclass(frozen=True)
class Grid:
    """The squares of a map: blocks of cells, which are cells themselves unless there are more than ``MOST``."""

    size: int  # the number of cells
    columns: int  # the number of cells in a row

    @property
    def rows(self) -> int:
        """The number of rows of cells."""
        return self.size // self.columns

    @cached_property
    def side(self) -> int:
        """How many cells are side by side in a block."""
        side = math.isqrt(max(self.size - 1, 0) // MOST) or 1
        while -(-self.rows // side) * -(-self.columns // side) > MOST:
            side += 1
        return side

    @cached_property
    def width(self) -> int:
        """The number of squares in a row."""
        return -(-self.columns // self.side)

    @cached_property
    def height(self) -> int:
        """The number of rows of squares."""
        return -(-self.rows // self.side)

    def sums(self, shares: Floats) -> Floats:
        """Return the sum of the shares of cells, shape (size,), over each block; flat, the row at the bottom first."""
        cells = np.zeros((self.height * self.side, self.width * self.side))
        cells[: self.rows, : self.columns] = shares.reshape(self.rows, self.columns)
        return np.asarray(cells.reshape(self.height, self.side, self.width, self.side).sum(axis=(1, 3)).ravel())

    def means(self, shares: Floats) -> Floats:
        """Return the means in place of the ``sums``: blocks at an edge may have fewer cells."""
        return self.sums(shares) / self.sums(np.ones(self.size))

    def places(self) -> list[tuple[int, int]]:
        """Return x and y of the squares; y grows downwards."""
        return [(i % self.width, self.height - 1 - i // self.width) for i in range(self.width * self.height)]

    def blocks(self) -> list[str]:
        """Return which cells each block has, in words."""
        return [
            f"{self._span('rows', i // self.width, self.rows)}, {self._span('columns', i % self.width, self.columns)}"
            for i in range(self.width * self.height)
        ]

    def _span(self, what: str, block: int, cells: int) -> str:
        return f"{what} {block * self.side} to {min((block + 1) * self.side, cells) - 1}"


@dataclass(frozen=True)
class Map:
    """A quantity on a grid."""

    title: str  # the quantity
    text: str  # what it is, in some words
    squares: str  # the squares as SVG, each with its name and figures; names are escaped
    edges: Sequence[str]  # the ends of the steps of its scale, in percent


@dataclass(frozen=True)
class Maps:
    """The maps of one variable in one window."""

    of: str  # the end of a phrase that names the attribute of a record; empty if the collection has one variable
    grid: Grid  # their squares
    drawn: Sequence[Map]  # the maps
    outline: str  # the path around the squares with sensitive cells; empty if no cell is, or each
    below: bool  # whether an estimate is below zero
    hidden: Sequence[Hidden]  # the masses of the tags, the largest first
    #: Whether background knowledge says where each tag hides users; None if it does so for some tags.
    background: bool | None

    @property
    def squares(self) -> int:
        """The number of squares of all maps."""
        return len(self.drawn) * self.grid.width * self.grid.height


def maps_of(
    estimate: Estimate, spec: CollectionSpec, received: Mapping[tuple[str, ...], Received], truth: KnownShares | None
) -> list[Maps]:
    """Draw each variable whose values are the cells of a grid, with what was ``received``, and the truth of one."""
    maps = []
    for table in estimate.tables:
        variable = spec.variable(table.of)
        if table.name is not TableName.SHARE or variable is None or variable.size != len(table.values):
            continue
        if variable.columns is not None:
            known = None if table.of or truth is None else truth.shares
            grid = Grid(variable.size, variable.columns)
            maps.append(_maps(estimate, table, spec, grid, variable.tags, received.get(table.of), known))
    return maps


def _maps(
    estimate: Estimate,
    table: Table,
    spec: CollectionSpec,
    grid: Grid,
    tags: Sequence[Tag],
    received: Received | None,
    truth: Floats | None,
) -> Maps:
    visible, band, hidden = (
        estimate.table(name, table.of) for name in (TableName.VISIBLE, TableName.BAND, TableName.HIDDEN)
    )
    shown = table if band is None else with_ends(table, band, carried(table, visible, band))
    sensitive = grid.sums(sensitive_of(table, spec).astype(np.float64)) > 0
    names = grid.blocks() if grid.side > 1 else [escape(printable(label)) for label in value_labels(table, spec)]
    names = [f"{name}, sensitive" if mark else name for name, mark in zip(names, sensitive.tolist(), strict=True)]
    put_back = ", with those behind tags" if hidden is not None else ""
    shares = [
        _Quantity("Estimate", f"share of users in a cell{put_back}", grid.sums(shown.values), shown.low, shown.high)
    ]
    if visible is not None:
        of_visible = grid.sums(visible.values), visible.low, visible.high
        shares.insert(0, _Quantity("Visible", "share of users in a cell who do not hide it", *of_visible))
    if truth is not None:
        shares.append(_Quantity("Truth", "share of users in a cell, in the simulation", grid.sums(truth)))
    edges, places = _edges(0.0, max(float(each.squares.max()) for each in shares)), decimals(table.stderr)
    drawn = [_map(each, grid, names, edges, places) for each in shares]
    if received is not None:
        # Noise supports each cell, so the sum of a smaller block would be the least.
        of_reports = _Quantity("Received", "share of reports that support a cell", grid.means(received.shares))
        own = _edges(float(of_reports.squares.min()), float(of_reports.squares.max()))
        drawn.insert(0, _map(of_reports, grid, names, own, received.places))
    known = {tag.background is not None for tag in tags}
    return Maps(
        of_attributes(table.of),
        grid,
        drawn,
        _outline(grid, sensitive),
        any(float(each.squares.min()) < 0 for each in shares),
        [] if hidden is None else sorted(hidden_of(hidden, spec), key=lambda tag: -tag.mass),
        known.pop() if len(known) == 1 else None,
    )


class _Quantity(NamedTuple):
    """What a map shows: the shares of its squares, and of cells the ends of their intervals if they have any."""

    title: str
    text: str
    squares: Floats
    low: Floats | None = None
    high: Floats | None = None


def _edges(low: float, high: float) -> Floats:
    """Return the ends of the steps. Their squares are equal, so that rare cells stay visible beside frequent ones."""
    return low + (max(high - low, 0.0) or 1.0) * (np.arange(STEPS + 1) / STEPS) ** 2


def _map(shown: _Quantity, grid: Grid, names: Sequence[str], edges: Floats, places: int) -> Map:
    figures = [f"{_percent(share, places)} %" for share in shown.squares.tolist()]
    if shown.low is not None and shown.high is not None and grid.side == 1:
        ends = zip(figures, shown.low.tolist(), shown.high.tolist(), strict=True)
        figures = [f"{figure} ({_percent(low, places)} to {_percent(high, places)})" for figure, low, high in ends]
    steps = np.searchsorted(edges[1:-1], shown.squares, side="right").tolist()
    squares = "".join(
        f'<rect x="{x}" y="{y}" width="1" height="1" class="m{step}"><title>{name}: {figure}</title></rect>'
        for (x, y), step, name, figure in zip(grid.places(), steps, names, figures, strict=True)
    )
    digits = min(max(0, -math.floor(math.log10(100 * float(edges[1] - edges[0])))), 9)
    return Map(shown.title, shown.text, squares, [f"{100 * edge:.{digits}f}" for edge in edges.tolist()])


def _percent(share: float, places: int) -> str:
    return percent(share, places).replace("-", "−")


def _outline(grid: Grid, sensitive: Mask) -> str:
    """Return the path of the squares inside of the sensitive ones; half of its stroke is inside of each."""
    marked = zip(grid.places(), sensitive.tolist(), strict=True)
    return "".join(f"M{x + 0.08:.2f} {y + 0.08:.2f}h.84v.84h-.84z" for (x, y), mark in marked if mark)

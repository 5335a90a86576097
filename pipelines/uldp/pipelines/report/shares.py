"""The shares of one variable as the page shows them: the largest values, their intervals, pictures, and tags."""

import math
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from uldp.pipelines.results.tables import decimals, of_attributes, shown, unit_of, value_labels
from uldp.schemas.arrays import Floats, Mask
from uldp.schemas.collection import CollectionSpec
from uldp.schemas.estimate import Estimate
from uldp.schemas.table import Table, TableName

#: How many of the largest values the page lists.
TOP = 20

#: Lower and upper ends.
Interval = tuple[Floats, Floats]


@dataclass(frozen=True)
class Row:
    """One of the largest values: its share, and if they are known, the ends of its interval and the true share."""

    label: str
    sensitive: bool
    share: float
    low: float | None
    high: float | None
    truth: float | None


@dataclass(frozen=True)
class Scale:
    """A linear scale of shares for the bars, with ``low`` at 0 % and ``high`` at 100 % of the width."""

    low: float
    high: float
    ticks: Sequence[float]

    @classmethod
    def covering(cls, shares: Sequence[float]) -> Self:
        """Return the scale that holds zero and all ``shares``, with two to seven ticks at round values."""
        low, high = min(0.0, *shares), max(0.0, *shares)
        high = 1.0 if low == high else high
        step = 10.0 ** math.floor(math.log10(high - low))
        step *= next(part for part in (0.2, 0.5, 1, 2) if (high - low) / (step * part) <= 6)
        return cls(low, high, [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)])

    def __call__(self, share: float) -> str:
        """Return the position of a share in percent of the width."""
        return f"{100 * (share - self.low) / (self.high - self.low):.2f}"


@dataclass(frozen=True)
class Score:
    """The l1 error of an estimate, and the share of its 95 % intervals that hold the truth, if it has intervals."""

    l1: float
    covered: float | None


@dataclass(frozen=True)
class Picture:
    """An image as a data URI, with its alternative text and its caption."""

    uri: str
    alt: str
    caption: str


@dataclass(frozen=True)
class Hidden:
    """A tag: the share of users who hide their value behind it, and its standard error."""

    tag: str
    mass: float
    stderr: float


@dataclass(frozen=True)
class Shares:
    """The shares of one variable of a collection.

    Attributes:
        of: The end of a phrase that names the attribute of a record; empty if the collection has one variable.
        size: The number of values.
        unit: ``values``, or ``bins`` of a number.
        n: Number of reports behind the shares.
        expected_l1: The l1 error that noise alone costs the unbiased estimate.
        score: The errors of the estimate, if the truth is known.
        places: The number of decimals of a share in percent.
        rows: The largest values.
        scale: The scale of the bars of ``rows``.
        hidden: The tags of the variable.
        bound: The largest l1 error from wrong background, if there are tags.
    """

    of: str
    size: int
    unit: str
    n: int
    expected_l1: float
    score: Score | None
    places: int
    rows: Sequence[Row]
    scale: Scale
    scatter: Picture | None
    heat_map: Picture | None
    hidden: Sequence[Hidden]
    bound: float | None


def shares_of(
    estimate: Estimate,
    table: Table,
    spec: CollectionSpec,
    truth: Floats | None,
    grid: tuple[int, int] | None,
) -> Shares:
    """Prepare a table of shares for the page.

    Args:
        estimate: The estimate with the table.
        table: The shares.
        spec: The spec that the estimate was made under.
        truth: Shape (|X|,): the true shares of the only variable of the collection, if they are known.
        grid: Rows and columns of a map, see ``write_report``.
    """
    if table.of:
        truth = None
    interval = _interval(table)
    order, labels = shown(table, spec, TOP), value_labels(table, spec)
    sensitive = _sensitive(table, spec)
    rows = [
        Row(
            labels[i],
            bool(sensitive[i]),
            float(table.values[i]),
            None if interval is None else float(interval[0][i]),
            None if interval is None else float(interval[1][i]),
            None if truth is None else float(truth[i]),
        )
        for i in order
    ]
    hidden, bound = estimate.table(TableName.HIDDEN, table.of), estimate.table(TableName.BOUND, table.of)
    return Shares(
        of=of_attributes(table.of),
        size=len(table.values),
        unit=unit_of(table, spec),
        n=table.n,
        # E|e| = sqrt(2/pi) sd for a normal error e, summed over the values.
        expected_l1=math.sqrt(2 / math.pi) * float(table.stderr.sum()),
        score=None if truth is None else _score(table.values, interval, truth),
        places=decimals(table.stderr[order]),
        rows=rows,
        scale=Scale.covering([figure or 0.0 for row in rows for figure in (row.low, row.high, row.share, row.truth)]),
        scatter=_scatter(table.values, interval, sensitive, truth),
        heat_map=_heat_map(table.values, truth, grid),
        hidden=[] if hidden is None else [Hidden(*each) for each in _entries(hidden, spec)],
        bound=None if bound is None else float(bound.values[0]),
    )


def _entries(table: Table, spec: CollectionSpec) -> list[tuple[str, float, float]]:
    return list(zip(value_labels(table, spec), table.values.tolist(), table.stderr.tolist(), strict=True))


def _sensitive(table: Table, spec: CollectionSpec) -> Mask:
    """Return which values to mark as sensitive: none if all are."""
    variable = spec.variables.get("".join(table.of))  # a file may name any attribute
    if variable is None or variable.size != len(table.values) or variable.sensitive_mask.all():
        return np.zeros(len(table.values), dtype=np.bool_)
    return variable.sensitive_mask


def _interval(table: Table) -> Interval | None:
    return None if table.low is None or table.high is None else (table.low, table.high)


def _score(shares: Floats, interval: Interval | None, truth: Floats) -> Score:
    l1 = float(np.abs(shares - truth).sum())
    if interval is None:
        return Score(l1, None)
    low, high = interval
    # The end of an interval may differ from a share of 0 by a rounding error.
    return Score(l1, float(((low - 1e-12 <= truth) & (truth <= high + 1e-12)).mean()))


def _scatter(distribution: Floats, interval: Interval | None, sensitive: Mask, truth: Floats | None) -> Picture | None:
    if interval is None or len(distribution) <= TOP:
        return None  # the table beside it shows every value
    from uldp.pipelines.report import figures

    against = "their rank" if truth is None else "their true shares"
    return Picture(
        _uri(figures.scatter(distribution, interval, sensitive, truth)),
        f"Scatter plot of the estimated shares of {len(distribution):,} values against {against}, with 95 % intervals.",
        f"All {len(distribution):,} values with 95 % intervals, against {against}. "
        "Axes of shares are logarithmic, but linear around zero.",
    )


def _heat_map(distribution: Floats, truth: Floats | None, grid: tuple[int, int] | None) -> Picture | None:
    if grid is None or math.prod(grid) != len(distribution):
        return None
    from uldp.pipelines.report import figures

    shown = "Estimate" if truth is None else "Truth and estimate"
    text = f"as a {grid[0]} x {grid[1]} grid, row-major, row 0 at the bottom"
    return Picture(
        _uri(figures.heat_maps(distribution, truth, grid)),
        f"{shown} drawn {text}; darker cells hold more users.",
        f"{shown} {text}. Estimates below zero are drawn as 0.",
    )


def _uri(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"

"""The shares of one variable as the page shows them: the largest values, their intervals, pictures, and tags."""

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from uldp.pipelines.report import all_values
from uldp.pipelines.report.coverage import Covered, covered
from uldp.pipelines.report.distribution import Distribution, distribution_of
from uldp.pipelines.report.received import Received
from uldp.pipelines.results.tables import carried, decimals, intervals_text, kind_of, of_attributes, shown
from uldp.pipelines.simulation.truth import KnownShares
from uldp.schemas.arrays import Floats, Mask
from uldp.schemas.estimate import Estimate
from uldp.schemas.labels import value_labels
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import Basis, Table, TableName

#: How many of the largest values the page lists.
TOP = 20


@dataclass(frozen=True)
class Row:
    """One of the largest values."""

    label: str  # the name of the value
    sensitive: bool  # whether to mark it as sensitive
    share: float  # the estimate
    #: The ends of its interval, if there is one; those of the band where ``carried``.
    interval: tuple[float, float] | None
    forged: tuple[float, float] | None  # the ends of the interval that allows for forgers, if the spec assumes any
    #: With tags, the part of the share that was measured; background knowledge puts the rest there.
    visible: float | None
    band: tuple[float, float] | None  # with tags, the ends of the interval that holds whatever is behind the tags
    carried: bool  # whether background puts more than a tenth of the share
    p_value: float | None  # of a candidate, the probability of so large an estimate if nobody holds it
    found: bool  # whether that is significant among all candidates
    truth: float | None  # the true share, if it is known


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

    def cut(self, share: float) -> str:
        """Return the position of a share; of one outside of the scale, the nearer end."""
        return self(min(max(share, self.low), self.high))


@dataclass(frozen=True)
class Score:
    """The l1 error of an estimate, and how many of its intervals cover the truth."""

    l1: float
    covered: Sequence[Covered]


@dataclass(frozen=True)
class Picture:
    """An image as a data URI, with its alternative text and its caption."""

    uri: str
    alt: str
    caption: str


@dataclass(frozen=True)
class Hidden:
    """A tag: the share of users who hide their value behind it, its standard error, and the ends of its intervals."""

    tag: str
    mass: float
    stderr: float
    interval: tuple[float, float] | None
    forged: tuple[float, float] | None


@dataclass(frozen=True)
class Shares:
    """The shares of one variable of a collection."""

    of: str  # the end of a phrase that names the attribute of a record; empty if the collection has one variable
    size: int  # the number of values
    unit: str  # ``values``, or ``bins`` of a number
    n: int  # number of reports behind the shares
    intervals: str | None  # a description of the intervals; None without intervals
    any_background: bool  # whether the intervals of the shares are their bands, because no background has a strength
    half: float | None  # half of an interval, the mean over all values; None without intervals
    score: Score | None  # the errors of the estimate, if the truth is known
    places: int  # the number of decimals of a share in percent
    rows: Sequence[Row]  # the largest values
    scale: Scale  # the scale of the bars of ``rows``
    scatter: Picture | None
    #: The figure of all bins of a number, or of all values in an order; it needs no scatter plot.
    distribution: Distribution | None
    hidden: Sequence[Hidden]  # the tags of the variable
    bound: float | None  # the largest l1 error from wrong background, if there are tags


def shares_of(estimate: Estimate, table: Table, spec: CollectionSpec, truth: KnownShares | None) -> Shares:
    """Prepare a table of an estimate's shares for the page, with the truth of the only variable, if it is known."""
    if table.of:
        truth = None
    names = (TableName.VISIBLE, TableName.BAND, TableName.HIDDEN, TableName.BOUND, TableName.P_VALUE, TableName.FOUND)
    visible, band, hidden, bound, p_value, found = (estimate.table(name, table.of) for name in names)
    order, labels = shown(table, spec, TOP), value_labels(table, spec)
    sensitive, of_background = sensitive_of(table, spec), carried(table, visible, band)
    rows = [
        Row(
            labels[i],
            bool(sensitive[i]),
            float(table.values[i]),
            _interval_of(band if band is not None and of_background[i] else table, i),
            _forged_of(table, i),
            None if visible is None else float(visible.values[i]),
            None if band is None else _interval_of(band, i),
            bool(of_background[i]),
            None if p_value is None else float(p_value.values[i]),
            found is not None and bool(found.values[i]),
            None if truth is None else float(truth.shares[i]),
        )
        for i in order
    ]
    shares = None if truth is None else truth.shares
    distribution = _distribution(estimate, table, spec)
    return Shares(
        of=of_attributes(table.of),
        size=len(table.values),
        unit=kind_of(table.of, spec).unit,
        n=table.n,
        intervals=None if table.low is None else intervals_text(table),
        any_background=table.basis is Basis.ANY_BACKGROUND,
        half=None if table.low is None or table.high is None else float((table.high - table.low).mean()) / 2,
        score=None
        if truth is None
        else Score(float(np.abs(table.values - truth.shares).sum()), covered(table, visible, band, truth)),
        places=decimals(table.stderr[order]),
        rows=rows,
        scale=Scale.covering(
            [
                end
                for row in rows
                for end in (
                    row.share,
                    row.truth or 0.0,
                    row.visible or 0.0,
                    *(() if row.carried or row.interval is None else row.interval),  # as those of bands, it may be wide
                )
            ]
        ),
        scatter=None if distribution is not None else _scatter(table, sensitive, shares),
        distribution=distribution,
        hidden=[] if hidden is None else hidden_of(hidden, spec),
        bound=None if bound is None else float(bound.values[0]),
    )


@dataclass(frozen=True)
class AllValues:
    """A table of all values of a variable."""

    of: str  # the end of a phrase that names the attribute of a record; empty if the collection has one variable
    size: int  # the number of values
    unit: str  # ``values``, or ``bins`` of a number
    headings: Sequence[str]  # the names of the columns behind that of the labels
    rows: str  # the rows as HTML, with escaped labels


def all_values_of(
    estimate: Estimate, spec: CollectionSpec, received: Mapping[tuple[str, ...], Received], truth: KnownShares | None
) -> list[AllValues]:
    """Prepare tables of all values, of grids and of many values, with a column of what was ``received``."""
    tables = []
    for table in estimate.tables:
        variable = spec.variable(table.of)
        on_a_grid = variable is not None and variable.columns is not None
        if table.name is not TableName.SHARE or (len(table.values) <= TOP and not on_a_grid):
            continue
        visible, band = (estimate.table(name, table.of) for name in (TableName.VISIBLE, TableName.BAND))
        columns = {"Estimate": table.values, "Low": table.low, "High": table.high}
        columns |= {
            "Visible": None if visible is None else visible.values,
            "Up to": None if band is None else band.high,
            "Truth": None if table.of or truth is None else truth.shares,
        }
        places = decimals(table.stderr)
        known = {name: (column, places) for name, column in columns.items() if column is not None}
        if on_a_grid and table.of in received:
            known["Received"] = received[table.of].shares, received[table.of].places
        rows = all_values.rows(value_labels(table, spec), [*known.values()])
        of, unit = of_attributes(table.of), kind_of(table.of, spec).unit
        tables.append(AllValues(of, len(table.values), unit, [*known], rows))
    return tables


def hidden_of(hidden: Table, spec: CollectionSpec) -> list[Hidden]:
    """Return the masses of the tags in a table."""
    return [
        Hidden(tag, float(hidden.values[i]), float(hidden.stderr[i]), _interval_of(hidden, i), _forged_of(hidden, i))
        for i, tag in enumerate(value_labels(hidden, spec))
    ]


def _distribution(estimate: Estimate, table: Table, spec: CollectionSpec) -> Distribution | None:
    """Draw bins of a number, or values of which an estimate has the shares up to each."""
    variable, below = spec.variable(table.of), estimate.table(TableName.BELOW, table.of)
    if variable is None or not table.whole or (variable.kind.ends is None and below is None):
        return None
    names = None if variable.kind.ends is not None else value_labels(table, spec)
    quantiles = estimate.table(TableName.QUANTILE, table.of)
    return distribution_of(table.values, names, variable.kind.ends, below, quantiles)


def sensitive_of(table: Table, spec: CollectionSpec) -> Mask:
    """Return which values to mark as sensitive: none if all are."""
    variable = spec.variable(table.of)  # a file may name any attribute
    if variable is None or variable.size != len(table.values) or variable.sensitive_mask.all():
        return np.zeros(len(table.values), dtype=np.bool_)
    return variable.sensitive_mask


def _interval_of(table: Table, i: int) -> tuple[float, float] | None:
    return None if table.low is None or table.high is None else (float(table.low[i]), float(table.high[i]))


def _forged_of(table: Table, i: int) -> tuple[float, float] | None:
    if table.low_forged is None or table.high_forged is None:
        return None
    return float(table.low_forged[i]), float(table.high_forged[i])


def _scatter(table: Table, sensitive: Mask, truth: Floats | None) -> Picture | None:
    size = len(table.values)
    if table.low is None or table.high is None or size <= TOP:
        return None  # the table beside it shows every value
    from uldp.pipelines.report import figures

    against = "their rank" if truth is None else "their true shares"
    svg = figures.scatter(table.values, (table.low, table.high), sensitive, truth)
    return Picture(
        f"data:image/svg+xml;base64,{b64encode(svg).decode()}",
        f"Scatter plot of the estimated shares of {size:,} values against {against}, with 95 % intervals.",
        f"All {size:,} values with 95 % intervals, against {against}. "
        "Axes of shares are logarithmic, but linear around zero.",
    )

"""A distribution over an order as a figure: the share of each bin, and that of users below each, with quantiles."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uldp.pipelines.report.time_line import HEIGHT, WIDTH
from uldp.schemas.arrays import Floats
from uldp.schemas.table import Table

_TICKS = 4


@dataclass(frozen=True)
class Quantile:
    """A quantile on the curve: its level, its place and the ends of its interval on the figure, and its height."""

    level: str
    at: int
    low: int
    high: int
    height: int


@dataclass(frozen=True)
class Distribution:
    """The figure of a table of bins."""

    bars: str  # the path of the outline of the histogram
    curve: str  # the path of the share of users at or below each bin
    band: str  # the path of the area between the ends of its intervals; empty without intervals
    quantiles: Sequence[Quantile]  # the quantiles of the same estimate, if it has them
    ticks: Sequence[tuple[float, str]]  # places in percent of the width with the name of what is there
    most: float  # the share of the fullest bin, which is the height of the histogram


def distribution_of(
    shares: Floats,
    names: Sequence[str] | None,
    ends: tuple[float, float] | None,
    below: Table | None,
    quantiles: Table | None,
) -> Distribution:
    """Draw the shares of bins of equal width, those below zero as 0, named unless they are of a number with ends.

    ``below`` has shares up to some of the bins, or they are summed; ``quantiles`` has levels as keys.
    """
    bins = len(shares)
    low, high = ends or (-0.5, bins - 0.5)
    heights = np.maximum(shares, 0)
    most = float(heights.max()) or 1.0
    edges = np.linspace(0, WIDTH, bins + 1)
    outline = np.stack([np.repeat(edges, 2)[1:-1], np.repeat(HEIGHT * (1 - heights / most), 2)], axis=1)
    curve, band = _summed(heights) if below is None else _measured(below, bins)
    ticks = [i * bins // _TICKS for i in range(_TICKS)]
    return Distribution(
        f"M0 {HEIGHT}L{_points(outline)}L{WIDTH} {HEIGHT}Z",
        curve,
        band,
        [] if quantiles is None else _quantiles(quantiles, low, high),
        [
            (100 * bin_ / bins, f"{low + (high - low) * bin_ / bins:.4g}" if names is None else names[bin_])
            for bin_ in dict.fromkeys(ticks)
        ],
        most,
    )


def _summed(heights: Floats) -> tuple[str, str]:
    below = np.concatenate([[0.0], np.cumsum(heights) / max(float(heights.sum()), 1e-12)])
    edges = np.linspace(0, WIDTH, len(heights) + 1)
    return f"M{_points(np.stack([edges, HEIGHT * (1 - below)], axis=1))}", ""


def _measured(below: Table, bins: int) -> tuple[str, str]:
    """Return the path of the shares below edges, and that of the area between the ends of their intervals."""
    step = -(-bins // (len(below.values) + 1))
    places = np.minimum(np.arange(len(below.values) + 2) * step, bins) * (WIDTH / bins)

    def line(shares: Floats) -> Floats:
        heights = np.concatenate([[0.0], np.clip(shares, 0, 1), [1.0]])
        return np.stack([places, HEIGHT * (1 - heights)], axis=1)

    curve = f"M{_points(line(below.values))}"
    if below.low is None or below.high is None:
        return curve, ""
    return curve, f"M{_points(line(below.low))}L{_points(line(below.high)[::-1])}Z"


def _quantiles(table: Table, low: float, high: float) -> list[Quantile]:
    ends = (table.values if table.low is None else table.low), (table.values if table.high is None else table.high)
    places = [_places(each, low, high) for each in (table.values, *ends)]
    return [
        Quantile(level, at, first, last, round(HEIGHT * (1 - float(level))))
        for level, at, first, last in zip(table.keys or (), *places, strict=True)
    ]


def _places(values: Floats, low: float, high: float) -> list[int]:
    places: list[int] = np.rint(WIDTH * (np.clip(values, low, high) - low) / (high - low)).astype(np.int64).tolist()
    return places


def _points(points: Floats) -> str:
    return "L".join(f"{x} {y}" for x, y in np.rint(points).astype(np.int64).tolist())

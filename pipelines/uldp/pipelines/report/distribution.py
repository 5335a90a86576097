"""The distribution of a number as a figure: the share of each bin, and the sum of the shares below, with quantiles."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uldp.pipelines.report.time_line import HEIGHT, WIDTH
from uldp.schemas.arrays import Floats
from uldp.schemas.table import Table


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
    """The figure of a table of bins.

    Attributes:
        bars: The path of the outline of the histogram.
        curve: The path of the share of users at or below each number.
        quantiles: The quantiles of the same estimate, if it has them.
        ticks: Places in percent of the width with the number there.
        most: The share of the fullest bin, which is the height of the histogram.
    """

    bars: str
    curve: str
    quantiles: Sequence[Quantile]
    ticks: Sequence[tuple[float, str]]
    most: float


def distribution_of(shares: Floats, ends: tuple[float, float], quantiles: Table | None) -> Distribution:
    """Draw the shares of bins of equal width.

    Args:
        shares: Shape (bins,): the share of each bin; one below zero is drawn as 0.
        ends: The least and the largest number.
        quantiles: The table of quantiles; its keys are the levels.
    """
    low, high = ends
    heights = np.maximum(shares, 0)
    most = float(heights.max()) or 1.0
    edges = np.linspace(0, WIDTH, len(shares) + 1)
    tops = HEIGHT * (1 - heights / most)
    below = np.concatenate([[0.0], np.cumsum(heights) / max(float(heights.sum()), 1e-12)])
    outline = np.stack([np.repeat(edges, 2)[1:-1], np.repeat(tops, 2)], axis=1)
    return Distribution(
        f"M0 {HEIGHT}L{_points(outline)}L{WIDTH} {HEIGHT}Z",
        f"M{_points(np.stack([edges, HEIGHT * (1 - below)], axis=1))}",
        [] if quantiles is None else _quantiles(quantiles, low, high),
        [(25.0 * i, f"{low + (high - low) * i / 4:.4g}") for i in range(4)],
        most,
    )


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

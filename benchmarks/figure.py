"""The table as one figure: a line for each row, its rate and its memory as points. Needs matplotlib."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from benchmarks.rows import Row

_INCHES_A_ROW = 0.19


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the figure to ``path``, as the kind of image that its suffix says.

    Args:
        rows: The table. What could not be run has a line without points.
        path: The file.
    """
    parts = list(dict.fromkeys(row.part for row in rows))
    height = _INCHES_A_ROW * len(rows) + 1.2
    figure = Figure(figsize=(10, height), layout="constrained")
    rates, memory = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
    lines = range(len(rows))
    for axes, values in ((rates, [row.rate for row in rows]), (memory, [row.megabytes for row in rows])):
        for index, part in enumerate(parts):
            points = [
                (value, line)
                for line, row, value in zip(lines, rows, values, strict=True)
                if row.part == part and value is not None
            ]
            if points:
                axes.plot(*zip(*points, strict=True), "o", color=f"C{index}", markersize=4)
        axes.set_xscale("log")
        drawn = [value for value in values if value is not None] or [1.0]
        axes.set_xlim(_decade(min(drawn) / 1.2, math.floor), _decade(max(drawn) * 1.2, math.ceil))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(color="#e3e6eb", linewidth=0.6)
        axes.set_axisbelow(True)
    rates.set_yticks(lines, [f"{row.label}  ({row.n:,})" if row.n > 1 else row.label for row in rows], fontsize=7)
    for label, row in zip(rates.get_yticklabels(), rows, strict=True):
        label.set_color(f"C{parts.index(row.part)}")
    rates.set_ylim(len(rows) - 0.5, -0.5)
    rates.set_xlabel("reports (estimates) per second")
    memory.set_xlabel("peak MB")
    figure.savefig(path, dpi=130)


def _decade(value: float, rounded: Callable[[float], int]) -> float:
    """Return the power of ten next to ``value``, below or above it."""
    return float(10.0 ** rounded(math.log10(value)))

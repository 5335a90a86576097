"""The figures of the HTML report, by matplotlib, as SVG with the same bytes on every run, and no labels."""

import io
import math
from typing import Any, Literal

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from uldp.pipelines.report.colours import LIGHT
from uldp.schemas.arrays import Floats, Mask

SENSITIVE, OTHER, INK, FAINT = (LIGHT[name] for name in ("sensitive", "estimate", "ink", "line"))

_STYLE: dict[str, Any] = {
    "svg.hashsalt": "uldp-stream",  # without this salt, the ids of SVG elements are random
    "svg.fonttype": "path",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": LIGHT["faint"],
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "xtick.color": LIGHT["soft"],
    "ytick.color": LIGHT["soft"],
    "legend.frameon": False,
    "savefig.dpi": 200,  # resolution of the rasterized parts
    "agg.path.chunksize": 300,  # a path of thousands of lines takes more than linear time to rasterize
}


def scatter(distribution: Floats, interval: tuple[Floats, Floats], sensitive: Mask, truth: Floats | None) -> bytes:
    """Draw every estimate, shape (|X|,), with its 95 % interval, against the truth, or its rank if that is unknown.

    Axes of shares are logarithmic, but linear around zero, because estimates near zero are noise and may be negative.
    """
    with matplotlib.style.context(["default", _STYLE]):
        figure = Figure(figsize=(5.2, 5.2 if truth is not None else 4.2), layout="constrained")
        axes = figure.add_subplot()
        ends_low, ends_high = interval
        linear = _linear_width((ends_high - ends_low) / 2, sensitive)
        low, high = float(min(ends_low.min(), distribution.min())), float(max(ends_high.max(), distribution.max()))
        if truth is None:
            x = np.empty(len(distribution))
            x[np.argsort(-distribution, kind="stable")] = np.arange(1, len(distribution) + 1)
            axes.set_xlabel("rank")
            axes.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
        else:
            x = truth
            low, high = min(low, 0.0), max(high, float(truth.max()))
            axes.axline((0, 0), slope=1, color=INK, linewidth=0.8, zorder=4, label="estimate = truth")
            axes.set_xlabel("true share of users (%)")
            _share_axis(axes, "x", linear, 0.0, float(truth.max()))
        _share_axis(axes, "y", linear, low, high)
        axes.set_ylabel("estimated share of users (%)")
        groups = [(~sensitive, OTHER, "o", "not sensitive"), (sensitive, SENSITIVE, "D", "sensitive")]
        groups = [group for group in groups if group[0].any()]
        pixels = len(x) > 2000  # more points as vectors would make the page too large
        for mask, colour, marker, label in groups:
            bars = _upright(x[mask], ends_low[mask], ends_high[mask])
            axes.plot(*bars, color=colour, alpha=0.35, lw=0.8, solid_capstyle="butt", rasterized=pixels)
            axes.plot(
                x[mask],
                distribution[mask],
                marker,
                color=colour,
                alpha=0.85,
                markersize=3,
                markeredgewidth=0,
                label=label if len(groups) > 1 else "one value",
                rasterized=pixels,
            )
        figure.legend(loc="outside upper left", ncols=3, markerscale=1.6, handletextpad=0.3)
        return _svg(figure)


def _upright(x: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return upright lines as one path with gaps: a path of its own for each takes a hundred times as long."""
    gap = np.full(len(x), np.nan)
    return np.repeat(x, 3), np.stack([low, high, gap], axis=1).ravel()


def _linear_width(half: Floats, sensitive: Mask) -> float:
    """Return the power of ten nearest to half a median interval: smaller estimates' signs say little."""
    typical = max(float(np.median(half[mask])) for mask in (sensitive, ~sensitive) if mask.any())
    return float(10.0 ** round(math.log10(typical)))


def _share_axis(axes: Axes, name: Literal["x", "y"], linear: float, low: float, high: float) -> None:
    # Leave some room around the outermost points; on a logarithmic axis, a factor makes this room.
    low, high = min(1.2 * low, -0.1 * min(linear, high)), 1.2 * high
    steps = (0.5, 1, 2, 5) if max(-low, high) <= 300 * linear else (1,)
    powers = 10.0 ** np.arange(math.ceil(math.log10(max(-low, high) / linear)) + 1)
    positive = linear * np.unique(np.outer(powers, steps))
    ticks = np.concatenate([-positive[::-1], [0.0], positive])
    ticks = ticks[(ticks >= low) & (ticks <= high)]
    labels = [f"{100 * tick:.6g}".replace("-", "−") for tick in ticks]
    getattr(axes, f"set_{name}scale")("symlog", linthresh=linear, linscale=0.8)
    getattr(axes, f"set_{name}ticks")(ticks, labels)
    getattr(axes, f"set_{name}lim")(low, high)
    getattr(axes, f"{name}axis").minorticks_off()


def _svg(figure: Figure) -> bytes:
    out = io.BytesIO()
    # Else savefig would place the parts by a drawing of its own, which rasterizes all points twice.
    layout = figure.get_layout_engine()
    assert layout is not None
    layout.execute(figure)
    figure.set_layout_engine(None)
    # The ground is that of the page, which may be dark.
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    return out.getvalue()

"""The worst setting of each statistic, by law."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tests.mechanisms.laws_of_numbers import LAWS, Figures, Setting, measure, names, settings

__all__ = ["lines", "names"]

#: By law: the heading of its figure, the figure, and how bad it is.
_FIGURES: Mapping[str, tuple[str, Callable[[Figures], float], Callable[[float], float]]] = {
    "bias": ("bias, z", lambda each: each.bias, abs),
    "stderr": ("stderr / sd", lambda each: each.stderr, lambda ratio: abs(np.log(max(ratio, 1e-9)))),
    "least": ("least covered", lambda each: each.least, lambda covered: -covered),
    "mean": ("mean covered", lambda each: each.mean, lambda covered: -covered),
    "alarms": ("alarms", lambda each: each.alarms, abs),
    "inside": ("outside", lambda each: each.outside, abs),
}
#: Intervals that cover so often are conservative.
_OFTEN = 0.98


def measured(windows: int, only: Sequence[str]) -> dict[str, dict[Setting, Figures]]:
    """Return the figures of each statistic in each setting of some protocols."""
    found: dict[str, dict[Setting, Figures]] = {}
    for name in only:
        began = time.process_time()
        for setting in settings(name):
            for statistic, figures in measure(setting, windows).items():
                found.setdefault(statistic, {})[setting] = figures
        print(f"{name}: {time.process_time() - began:.0f} s", file=sys.stderr, flush=True)
    return found


def lines(windows: int, only: Sequence[str]) -> Iterator[str]:
    """Yield a table of the worst figures, and one of the laws that are broken, with the worst setting of each."""
    found = measured(windows, only)
    least = min(each.windows for of in found.values() for each in of.values())
    yield f"Windows of a setting: {windows}, and {least} where there are many reports or values.\n"
    yield "| statistic | settings | broken | " + " | ".join(each[0] for each in _FIGURES.values()) + " | above .98 |"
    yield "| --- " * (len(_FIGURES) + 4) + "|"
    for statistic in sorted(found):
        of = found[statistic]
        often = sum(each.mean > _OFTEN for each in of.values())
        broken = sum(bool(each.broken) for each in of.values())
        shown = (_shown(law, figure) for law, (_, figure) in _worst(of).items())
        yield f"| {statistic} | {len(of)} | {broken} | {' | '.join(shown)} | {often} |"
    yield "\n| statistic | law | broken in | worst | where |"
    yield "| --- | --- | --- | --- | --- |"
    for statistic in sorted(found):
        for law in LAWS:
            breaking = {setting: each for setting, each in found[statistic].items() if law in each.broken}
            if breaking:
                setting, figure = _worst(breaking)[law]
                assert setting is not None
                where = f"{setting.name}, epsilon {setting.epsilon:g}, n {setting.n:,}"
                yield f"| {statistic} | {law} | {len(breaking)} | {_shown(law, figure)} | {where} |"
    total = sum(bool(each.broken) for of in found.values() for each in of.values())
    yield f"\nOf {sum(map(len, found.values())):,} statistics in settings, {total:,} break a law."


def _worst(of: Mapping[Setting, Figures]) -> dict[str, tuple[Setting | None, float]]:
    """Return the setting in which a figure is worst, and the figure, by law; None and NaN if it has none."""
    found: dict[str, tuple[Setting | None, float]] = {}
    for law, (_, figure, badness) in _FIGURES.items():
        there = [
            (badness(value), setting, value) for setting, each in of.items() if not np.isnan(value := figure(each))
        ]
        found[law] = max(there, key=lambda each: each[0])[1:] if there else (None, np.nan)
    return found


def _shown(law: str, figure: float) -> str:
    if np.isnan(figure):
        return ""
    return f"{figure:.1f}" if law == "bias" else f"{figure:.4f}" if law == "inside" else f"{figure:.3f}"

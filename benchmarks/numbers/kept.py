"""Roll-ups of windows of the same devices, which keep their responses: standard errors over what they should be."""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.random import default_rng

from benchmarks.numbers.progress import shown
from tests.build import spec
from tests.mechanisms.gathered_numbers import Gathering
from tests.mechanisms.laws_of_numbers import Figures, judged
from tests.mechanisms.populations import Population

DOMAINS: dict[str, dict[str, Any]] = {
    "tree": {"size": 16},
    "duchi": {"number": {"low": 0.0, "high": 10.0}},
    "pairs": {"ranking": {"of": ["a", "b", "c", "d"]}},
    "marginals": {"record": {"a": {"size": 2}, "b": {"size": 3}, "c": {"size": 2}}},
}
#: The budget of all reports of a device, that of one, and the number of windows.
BUDGETS = ((3.0, 1.0, 6), (2.0, 1.0, 6), (1.2, 1.0, 6), (4.0, 2.0, 24))
N, ROLL_UPS = 2_000, 300


class Setting(NamedTuple):
    """A mechanism, its budgets, and the number of windows."""

    mechanism: str
    lasting: float
    epsilon: float
    windows: int


def settings() -> list[Setting]:
    """Return the 16 settings."""
    return [Setting(name, *budget) for name, budget in itertools.product(DOMAINS, BUDGETS)]


def measure(setting: Setting, roll_ups: int = ROLL_UPS) -> dict[str, tuple[Figures, float]]:
    """Return the figures of each statistic, and the mean over its entries of stderr over sd."""
    mechanism = {"name": setting.mechanism, "epsilon": setting.epsilon, "lasting_epsilon": setting.lasting}
    views = {"views": [["a", "b"], ["b", "c"]]} if setting.mechanism == "marginals" else {}
    population = Population(spec(domain=DOMAINS[setting.mechanism], mechanism=mechanism | views))
    rng = default_rng([settings().index(setting), 8])
    found = {}
    for name, of in Gathering(population).roll_ups(N, roll_ups, rng, setting.windows).items():
        sd, claimed = of.array("unbiased").std(axis=0, ddof=1), np.sqrt((of.array("stderr") ** 2).mean(axis=0))
        if (sd > 1e-9).any():
            found[name] = judged(of), float((claimed[sd > 1e-9] / sd[sd > 1e-9]).mean())
    return found


def lines() -> Iterator[str]:
    """Yield a row for each statistic of each setting, and the range of the ratios."""
    yield f"{ROLL_UPS} roll-ups of a setting, of {N:,} devices each.\n"
    yield "| mechanism, lasting, epsilon, windows | statistic | stderr / sd, mean | farthest | least | mean | broken |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    ratios = []
    for setting in shown("kept", settings()):
        for name, (figures, ratio) in measure(setting).items():
            ratios.append(ratio)
            of = f"{setting.mechanism}, {setting.lasting:g}, {setting.epsilon:g}, {setting.windows}"
            covered = f"{figures.least:.3f} | {figures.mean:.3f}"
            yield f"| {of} | {name} | {ratio:.2f} | {figures.stderr:.2f} | {covered} | {', '.join(figures.broken)} |"
    yield f"\nStandard errors over standard deviations: {min(ratios):.2f} to {max(ratios):.2f}."

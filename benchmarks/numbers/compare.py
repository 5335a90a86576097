"""How often two windows of one population are found to differ as a whole, or in one value, by mechanism and size."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.random import default_rng

from benchmarks.numbers.progress import shown
from tests.build import spec
from tests.mechanisms.gathered_numbers import Gathering
from tests.mechanisms.laws_of_numbers import ALPHA, judged
from tests.mechanisms.populations import Population

VALUES, SENSITIVE = 40, list(range(5, 15))
#: Two of these have noise on all values, and the others on sensitive ones alone.
MECHANISMS = ("rr", "oue", "urr", "urap", "uss", "ubd", "uhr")
EPSILONS, SIZES, WINDOWS = (1.0, 4.0), ((2_000, 300), (10_000, 150), (20_000, 5_000), (3_000, 3_000)), 300
#: No more alarms than this at level .05 are wanted.
MOST = 0.08


class Setting(NamedTuple):
    """A mechanism, its budget, and the reports of both windows."""

    mechanism: str
    epsilon: float
    n: int
    other: int


def settings() -> list[Setting]:
    """Return the 56 settings."""
    product = itertools.product(MECHANISMS, EPSILONS, SIZES)
    return [Setting(mechanism, epsilon, *sizes) for mechanism, epsilon, sizes in product]


def measure(setting: Setting, windows: int = WINDOWS) -> tuple[float, float, float]:
    """Return the alarms of the whole distribution, the most of one value, and the least coverage of a difference."""
    sensitive = {"sensitive": SENSITIVE} if setting.mechanism.startswith("u") else {}
    mechanism = {"name": setting.mechanism, "epsilon": setting.epsilon}
    population = Population(spec(domain={"size": VALUES}, mechanism=mechanism, **sensitive))
    rng = default_rng([settings().index(setting), 9])
    found = Gathering(population).changes(setting.n, setting.other, windows, rng)
    whole = found["compare, whole"].array("p_value")
    figures = judged(found["compare"])
    return float((whole <= ALPHA).mean()), figures.alarms, figures.least


def lines() -> Iterator[str]:
    """Yield a row for each setting, and in how many there are too many alarms."""
    yield f"{WINDOWS} pairs of windows of a setting.\n"
    yield "| mechanism, epsilon, n | alarms of the whole | most of one value | least covered |"
    yield "| --- | --- | --- | --- |"
    alarms = []
    for setting in shown("compare", settings()):
        whole, single, least = measure(setting)
        alarms.append(whole)
        name = f"{setting.mechanism}, {setting.epsilon:g}, {setting.n:,} and {setting.other:,}"
        yield f"| {name} | {whole:.3f} | {single:.3f} | {least:.3f} |"
    # Two standard errors of the alarms of so many windows.
    chance = 2 * np.sqrt(MOST * (1 - MOST) / WINDOWS)
    many = np.count_nonzero(np.array(alarms) > MOST + chance)
    yield f"\nAlarms above {MOST} by more than chance in {many} of {len(alarms)}; the most {max(alarms):.3f}."

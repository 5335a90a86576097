"""Mean scores of candidates: their bias, how often intervals cover, and the error, by the reports about each pair."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, default_rng

from benchmarks.numbers.progress import shown
from tests.build import spec
from tests.mechanisms.gathered_numbers import Gathered
from tests.mechanisms.laws_of_numbers import Figures, judged
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.encoding import Held
from uldp.schemas.arrays import Floats, Values
from uldp.schemas.table import TableName

#: The numbers of candidates and of reports.
SIZES = ((7, 100), (7, 1_000), (10, 300), (20, 1_000), (20, 5_000), (32, 1_000), (32, 5_000))
POPULATIONS, EPSILONS, WINDOWS = ("worths", "one order", "any order"), (1.0, 4.0), 300


class Setting(NamedTuple):
    """The number of candidates and of reports, who ranks how, and the budget."""

    candidates: int
    n: int
    population: str
    epsilon: float


def settings() -> list[Setting]:
    """Return the 42 settings."""
    product = itertools.product(SIZES, POPULATIONS, EPSILONS)
    return [Setting(*size, population, epsilon) for size, population, epsilon in product]


def _ranks(setting: Setting, rng: Generator) -> Values:
    """Draw the places that the users of a window give to the candidates, shape (n, candidates)."""
    k, n = setting.candidates, setting.n
    if setting.population == "one order":
        return np.tile(np.arange(k), (n, 1))
    worths = -0.3 * np.arange(k) if setting.population == "worths" else np.zeros(k)
    return np.argsort(np.argsort(-(worths + rng.gumbel(size=(n, k))), axis=1), axis=1)


def truth(setting: Setting) -> Floats:
    """Return the mean scores: how many others users rank below each candidate."""
    k = setting.candidates
    if setting.population == "one order":
        return np.arange(k)[::-1].astype(np.float64)
    worths = np.exp(-0.3 * np.arange(k)) if setting.population == "worths" else np.ones(k)
    return np.asarray((worths[:, np.newaxis] / (worths[:, np.newaxis] + worths)).sum(axis=1) - 0.5)


def measure(setting: Setting, windows: int = WINDOWS) -> tuple[Figures, float, float]:
    """Return the figures of the unbiased scores, the largest bias, and the root mean square of the errors."""
    rng, gathered = default_rng([settings().index(setting), 7]), Gathered()
    domain = {"ranking": {"of": [f"c{at}" for at in range(setting.candidates)]}}
    protocol = build_protocol(spec(domain=domain, mechanism={"name": "pairs", "epsilon": setting.epsilon}))
    for _ in range(windows):
        held = Held(_ranks(setting, rng), np.full(setting.n, -1))
        cells = protocol.mechanism.statistic(protocol.perturb([held], rng))
        tables = protocol.decoder.tables(cells, setting.n, "empirical")
        (table,) = (each for each in tables if each.name == TableName.SCORE)
        gathered.add(
            table.keys or (),
            truth=truth(setting),
            values=table.values,
            unbiased=table.unbiased,
            stderr=table.stderr,
            low=table.low,
            high=table.high,
        )
    errors = gathered.array("unbiased") - truth(setting)
    return judged(gathered), float(np.abs(errors.mean(axis=0)).max()), float(np.sqrt((errors**2).mean()))


def lines() -> Iterator[str]:
    """Yield a row for each setting, and the worst figures."""
    yield f"{WINDOWS} windows of a setting.\n"
    yield "| candidates, n, rankings, epsilon | bias | z | stderr / sd | least | mean | error | laws broken |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    found = []
    for setting in shown("borda", settings()):
        figures, bias, error = measure(setting)
        found.append([abs(figures.bias), figures.least, figures.mean, bool(figures.broken)])
        name = f"{setting.candidates}, {setting.n:,}, {setting.population}, {setting.epsilon:g}"
        shares = f"{figures.stderr:.2f} | {figures.least:.3f} | {figures.mean:.3f}"
        yield f"| {name} | {bias:.3f} | {figures.bias:.1f} | {shares} | {error:.3f} | {', '.join(figures.broken)} |"
    of = np.array(found, dtype=np.float64)
    least = f"least entry {of[:, 1].min():.3f}, least mean {of[:, 2].min():.3f}"
    yield f"\nWorst z of the bias {of[:, 0].max():.1f}; {least}; laws broken in {of[:, 3].sum():.0f} of {len(of)}."

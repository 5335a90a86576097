"""The squared error of ranges of the bins of ``tree``, over the best of several estimators, and over what it was.

The others start from the unbiased estimate: itself, the distribution function that is nearest to its own, and the same
of the estimate smoothed by its second differences, with the penalty that suits the setting best, which no estimator
knows. ``before.json`` has the errors of the shares nearest to what all levels report.
"""

import itertools
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, default_rng

from benchmarks.numbers.before import before
from benchmarks.numbers.progress import shown
from tests.build import spec
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.encoding import Held
from uldp.schemas.arrays import Floats
from uldp.schemas.table import Table, TableName

BINS, BUDGETS = (256, 1_000), ((1.0, 20_000), (3.0, 20_000), (0.5, 100_000), (1.0, 200_000))
SHAPES = ("lognormal", "beta", "two modes", "zipf, shuffled", "spikes", "falling")
WINDOWS, RANGES = 10, 300
_PENALTIES = np.geomspace(1e-1, 1e9, 21)


class Setting(NamedTuple):
    """The number of bins, the budget, the number of reports, and the shape of the shares."""

    bins: int
    epsilon: float
    n: int
    shape: str


class Errors(NamedTuple):
    """What estimates of a setting are off by.

    Attributes:
        published: The mean squared error of the shares of ranges, as published.
        best: The least of those of the other estimators.
        p90: The root mean square of the error of the 90 % quantile, as a part of the range.
        upper: The mean error of the share of the upper half.
    """

    published: float
    best: float
    p90: float
    upper: float


def settings() -> list[Setting]:
    """Return the 48 settings."""
    return [Setting(bins, *budget, shape) for bins, budget, shape in itertools.product(BINS, BUDGETS, SHAPES)]


def shares(shape: str, bins: int) -> Floats:
    """Return shares of bins of a shape."""
    x, rng = (np.arange(bins) + 0.5) / bins, default_rng(9)
    weights = {
        "lognormal": np.exp(-0.5 * ((np.log(100 * x) - 2.5) / 0.7) ** 2) / x,
        "beta": x * (1 - x) ** 4,
        "two modes": np.exp(-0.5 * ((x - 0.25) / 0.03) ** 2) + 0.3 * np.exp(-0.5 * ((x - 0.7) / 0.1) ** 2),
        "zipf, shuffled": rng.permutation(1 / np.arange(1, bins + 1)),
        "spikes": rng.dirichlet(np.full(bins, 0.05)),
        "falling": 1 / np.arange(1, bins + 1),
    }[shape]
    return np.asarray(weights / weights.sum())


def measure(setting: Setting, windows: int = WINDOWS) -> Errors:
    """Return the errors of a setting. Equal settings have equal draws."""
    rng, truth = default_rng([settings().index(setting), 6]), shares(setting.shape, setting.bins)
    ends = np.sort([rng.choice(setting.bins + 1, 2, replace=False) for _ in range(RANGES)], axis=1)
    of_all, off, upper = list[list[float]](), list[float](), list[float]()
    for table in _windows(setting, truth, windows, rng):
        estimates = [table.values, *_others(table.unbiased)]
        errors = [np.append(0.0, np.cumsum(each - truth)) for each in estimates]
        of_all.append([float(((each[ends[:, 1]] - each[ends[:, 0]]) ** 2).mean()) for each in errors])
        off.append((_place(table.values, 0.9) - _place(truth, 0.9)) / setting.bins)
        upper.append(-float(errors[0][setting.bins // 2]))
    published, *others = np.mean(of_all, axis=0)
    return Errors(float(published), float(min(others)), float(np.sqrt(np.mean(np.square(off)))), float(np.mean(upper)))


def _windows(setting: Setting, truth: Floats, windows: int, rng: Generator) -> Iterator[Table]:
    """Yield the table of shares of each window."""
    mechanism = {"name": "tree", "epsilon": setting.epsilon, "bins": setting.bins}
    protocol = build_protocol(spec(domain={"number": {"low": 0.0, "high": 1.0}}, mechanism=mechanism))
    for _ in range(windows):
        places = (rng.choice(setting.bins, setting.n, p=truth) + rng.random(setting.n)) / setting.bins
        cells = protocol.mechanism.statistic(protocol.perturb([Held(places, np.full(setting.n, -1))], rng))
        tables = protocol.decoder.tables(cells, setting.n, "auto")
        yield next(table for table in tables if table.name == TableName.SHARE)


@cache
def _curves(bins: int) -> tuple[Floats, Floats]:
    """Return the eigenvalues and eigenvectors of the penalty of second differences."""
    second = np.diff(np.eye(bins), 2, axis=0)
    values, vectors = np.linalg.eigh(second.T @ second)
    return np.maximum(values, 0.0), vectors


def _others(unbiased: Floats | None) -> Iterator[Floats]:
    """Yield the other estimates: the unbiased one, and monotone ones, smoothed by no penalty and by each."""
    assert unbiased is not None
    yield unbiased
    yield _monotone(unbiased)
    values, vectors = _curves(len(unbiased))
    along = vectors.T @ unbiased
    for penalty in _PENALTIES:
        yield _monotone(vectors @ (along / (1 + penalty * values)))


def _monotone(shares: Floats) -> Floats:
    """Return the shares of the distribution function that is nearest to theirs."""
    from scipy.optimize import isotonic_regression  # takes half a second

    below = np.clip(isotonic_regression(np.cumsum(shares)).x, 0.0, 1.0)
    below[-1] = 1.0
    return np.diff(below, prepend=0.0)


def _place(shares: Floats, level: float) -> float:
    """Return the quantile at a level, in bins."""
    below = np.maximum.accumulate(np.append(0.0, np.cumsum(shares)))
    return float(np.interp(level * below[-1], below, np.arange(len(below))))


def lines() -> Iterator[str]:
    """Yield a row for each setting, and the means and the worst."""
    yield f"{WINDOWS} windows of a setting. Squared errors are of {RANGES} ranges, times 10,000.\n"
    yield "| bins, epsilon, n, shape | published | before | over before | over best | p90 | bias of the upper half |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    ratios = []
    for number, setting in enumerate(shown("ordered", settings())):
        errors, was = measure(setting), before("ordered")[str(number)]
        ratios.append([errors.published / was, errors.published / min(was, errors.best)])
        name = f"{setting.bins:,}, {setting.epsilon:g}, {setting.n:,}, {setting.shape}"
        over = " | ".join(f"{each:.2f}" for each in ratios[-1])
        squares = f"{1e4 * errors.published:.3f} | {1e4 * was:.3f}"
        yield f"| {name} | {squares} | {over} | {errors.p90:.4f} | {errors.upper:+.4f} |"
    of = np.array(ratios)
    means, worst = np.exp(np.log(of).mean(axis=0)), of.max(axis=0)
    yield f"\nOver before: geometric mean {means[0]:.2f}, worst {worst[0]:.2f}."
    above = np.count_nonzero(of[:, 1] > 1.35)
    yield f"Over the best: geometric mean {means[1]:.2f}, worst {worst[1]:.2f}, above 1.35 in {above}."

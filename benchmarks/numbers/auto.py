"""The squared error of ``auto`` over that of the better of empirical Bayes and ``wls``, by domain, shape and budget.

Empirical Bayes is what ``auto`` was for values without an order; its errors are in ``before.json``, of the same draws.
"""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.random import default_rng

from benchmarks.numbers.before import before
from benchmarks.numbers.progress import shown
from tests.build import spec
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.decoder import SharesDecoder
from uldp.schemas.arrays import Floats

SIZES, EPSILONS, REPORTS = (5, 10, 15, 20, 50, 100, 1_000), (1.0, 4.0), (10_000, 1_000_000)
MECHANISMS = ("oue", "rr", "urr")
SHAPES = ("zipf", "geometric", "linear", "two large", "equal")
#: Windows of a setting; with a thousand values, a third of them.
WINDOWS = 48


class Setting(NamedTuple):
    """A mechanism with its budget, the shares of a number of values, and the number of reports."""

    mechanism: str
    size: int
    epsilon: float
    shape: str
    n: int


def settings() -> list[Setting]:
    """Return the 420 settings."""
    return [Setting(*each) for each in itertools.product(MECHANISMS, SIZES, EPSILONS, SHAPES, REPORTS)]


def shares(shape: str, size: int) -> Floats:
    """Return shares of a shape, in falling order."""
    rank = np.arange(size)
    weights = {
        "zipf": 1 / (1 + rank),
        "geometric": 0.7**rank,
        "linear": size - rank.astype(np.float64),
        "two large": np.where(rank < 2, 0.35, 0.3 / max(size - 2, 1)),
        "equal": np.ones(size),
    }[shape]
    return np.asarray(weights / weights.sum())


def errors(setting: Setting, estimator: str, windows: int = WINDOWS) -> float:
    """Return the mean squared error of the shares of an estimator. Equal settings have equal draws."""
    rng = default_rng([settings().index(setting), 5])
    truth, sensitive = shares(setting.shape, setting.size), {}
    if setting.mechanism == "urr":  # half of the values are sensitive, whatever their shares
        truth = default_rng(setting.size).permutation(truth)
        sensitive = {"sensitive": list(range(max(setting.size // 2, 2)))}
    mechanism = {"name": setting.mechanism, "epsilon": setting.epsilon}
    decoder = build_protocol(spec(domain={"size": setting.size}, mechanism=mechanism, **sensitive)).decoder
    assert isinstance(decoder, SharesDecoder)
    drawn = [rng.spawn(1)[0] for _ in range(windows if setting.size < 1_000 else max(windows // 3, 1))]
    return float(np.mean([(decoder.simulate(truth, setting.n, estimator, each) ** 2).sum() for each in drawn]))


def lines() -> Iterator[str]:
    """Yield a table by number of values, and the worst settings."""
    bayes = before("auto")
    ratios: dict[Setting, float] = {}
    for setting, key in zip(shown("auto", settings()), map(str, range(len(settings()))), strict=True):
        auto, wls = (errors(setting, estimator) for estimator in ("auto", "wls"))
        ratios[setting] = auto / min(bayes[key], wls)
    yield f"{WINDOWS} windows of a setting.\n"
    yield "| values | settings | geometric mean | worst | above 1.1 | below .9 |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for size in (*SIZES, None):
        of = np.array([ratio for setting, ratio in ratios.items() if size in (setting.size, None)])
        figures = f"{np.exp(np.log(of).mean()):.3f} | {of.max():.2f} | {(of > 1.1).sum()} | {(of < 0.9).sum()}"
        yield f"| {'all' if size is None else format(size, ',')} | {len(of)} | {figures} |"
    yield "\n| worst settings | ratio |"
    yield "| --- | --- |"
    for setting in sorted(ratios, key=ratios.__getitem__, reverse=True)[:10]:
        name = f"{setting.mechanism}, {setting.size:,} values, {setting.shape}, epsilon {setting.epsilon:g}"
        yield f"| {name}, n {setting.n:,} | {ratios[setting]:.2f} |"

"""The filter and the smoother of ``uldp ask --over time`` beside each window's own estimates: errors and coverage.

Four truths are synthetic. With a file of check-ins (columns lat, lon, day, hour) there is a fifth, of the hours of a
week: ``python -m benchmarks.over_time [FILE]``.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.random import Generator, default_rng

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.questions.over_time import over_time
from uldp.schemas.arrays import Floats
from uldp.schemas.specs.collection import CollectionSpec

T, K, HOUR = 24 * 14, 20, 3_600_000
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def truths(rng: Generator) -> dict[str, Floats]:
    """Return shares over time, each of shape (T, K)."""
    start = 1 / np.arange(1.0, K + 1)
    steps = rng.normal(0, 0.05, (T, K)).cumsum(axis=0)
    day = 1 + 0.6 * np.sin(2 * np.pi * (np.arange(T)[:, np.newaxis] / 24 + np.arange(K) / K))
    levels = np.array([rng.permutation(start) for _ in range(3)])[np.arange(T) * 3 // T]
    found = {
        "nothing changes": np.tile(start, (T, 1)),
        "random walk of 5 %": start * np.exp(steps),
        "daily cycle": start * day,
        "jumps": levels,
    }
    return {name: truth / truth.sum(axis=1, keepdims=True) for name, truth in found.items()}


def checkins(path: Path) -> Floats:
    """Return the shares of the cells with the most check-ins in each hour of a week, and of all others; (168, K).

    The hours of a week are thinly filled, so that each is joined with its two neighbours.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if 40.7 <= float(row["lat"]) < 40.8 and -74.04 <= float(row["lon"]) < -73.92
        ]
    cells = np.array(
        [int((float(row["lat"]) - 40.7) * 250) * 25 + int((float(row["lon"]) + 74.04) / 0.0048) for row in rows]
    )
    hours = np.array([_DAYS.index(row["day"]) * 24 + int(row["hour"]) for row in rows])
    most = np.argsort(-np.bincount(cells))[: K - 1]
    place = np.array([int(np.flatnonzero(most == cell)[0]) if cell in most else K - 1 for cell in cells.tolist()])
    counts = np.zeros((168, K))
    np.add.at(counts, (hours, place), 1)
    joined = counts + np.roll(counts, 1, axis=0) + np.roll(counts, -1, axis=0)
    shares: Floats = joined / np.maximum(joined.sum(axis=1, keepdims=True), 1)
    return shares


def measure(truth: Floats, name: str, epsilon: float, n: int, rng: Generator) -> Mapping[str, float]:
    """Draw the windows of a truth, and return errors over those of the windows' own estimates, and coverage."""
    keys = {"collection": "c", "version": 1, "domain": {"size": truth.shape[1]}, "window": {"size": "1h"}}
    spec = CollectionSpec.parse(keys | {"mechanism": {"name": name, "epsilon": epsilon}})
    protocol, sizes = build_protocol(spec), rng.poisson(n, len(truth)) + 1
    estimates, published = [], []
    for shares, size in zip(truth, sizes.tolist(), strict=True):
        symbols = rng.choice(len(shares), size, p=shares)
        cells = protocol.mechanism.statistic(protocol.mechanism.perturb(symbols, rng))
        estimates.append(protocol.decoder.linear(cells, size))
        published.append(protocol.decoder.tables(cells, size, "auto")[0].values)
    found = over_time(estimates, [np.zeros(truth.shape[1])] * len(truth), [HOUR * t for t in range(len(truth))])
    own = [each.values for each in estimates]
    unbiased, auto = (float(np.abs(np.array(each) - truth).sum()) for each in (own, published))
    measured: dict[str, float] = {}
    for kind, values, causal in (("filter", found.filtered, True), ("smoother", found.smoothed, False)):
        low, high = found.interval(0.95, causal=causal)
        error = float(np.abs(np.clip(values, 0, 1) - truth).sum())
        measured |= {
            f"{kind} / unbiased": error / unbiased,
            f"{kind} / auto": error / auto,
            f"{kind} coverage": float(((low <= truth) & (truth <= high)).mean()),
        }
    return measured


def rows(seed: int = 0, file: Path | None = None) -> Iterator[tuple[str, str, float, int, Mapping[str, float]]]:
    """Yield truth, mechanism, epsilon, n and what was measured."""
    rng = default_rng(seed)
    of = truths(rng) | ({} if file is None else {"check-ins": checkins(file)})
    for truth, shares in of.items():
        for name, epsilon, n in (("oue", 1.0, 1_000), ("oue", 1.0, 10_000), ("rr", 3.0, 1_000)):
            yield truth, name, epsilon, n, measure(shares, name, epsilon, n, rng)


def main(file: Path | None) -> None:
    """Print a table."""
    for truth, name, epsilon, n, found in rows(file=file):
        numbers = "  ".join(f"{kind} {number:.3f}" for kind, number in found.items())
        print(f"{truth:<20}{name:<4} epsilon {epsilon:g}  n {n:>6,}  {numbers}")


if __name__ == "__main__":
    import sys

    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)

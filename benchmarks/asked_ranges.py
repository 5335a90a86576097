"""How often intervals of ranges and of quantiles cover the truth, as ``uldp ask --range`` and ``--quantile`` give them.

    python -m benchmarks.asked_ranges --windows 200

Numbers are of the five distributions of ``benchmarks.quantiles``, in 256 bins; epsilon is 1. A window has 16 ranges
with random ends, and quantiles at .05, .5 and .95. The numbers of a window are drawn, so an interval of a range covers
if it holds the probability of the range, and one of a quantile if some quantile at this level is within.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from benchmarks.options import read_options
from benchmarks.quantiles import SHAPES
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.questions import Period, Row, Span, Version, quantiles, ranges, rows_of, shares_of
from uldp.schemas.arrays import Floats
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.kinds import Range

WINDOWS, BINS, RANGES = 200, 256, 16
MECHANISMS, SIZES = ("tree", "block"), (2_000, 20_000)
LEVELS = (0.05, 0.5, 0.95)
# The distributions are those of so many numbers.
_NUMBERS = 40_000


class Covered(NamedTuple):
    """The coverage of ranges and of each quantile, and how many times as wide as its error a range's interval is."""

    ranges: float
    quantiles: Sequence[float]
    width: float


def measure(name: str, shape: str, n: int, windows: int, seed: int = 1) -> Covered:
    """Draw windows of n users of a shape, and return how often intervals cover."""
    rng, version = np.random.default_rng(seed), _version(name)
    numbers = np.sort(SHAPES[shape]((np.arange(_NUMBERS) + 0.5) / _NUMBERS).clip(0, 1))
    held, wide, errors, of_levels = 0.0, 0.0, 0.0, np.zeros(len(LEVELS))
    for _ in range(windows):
        (shares,) = shares_of(_span(version, numbers[rng.integers(0, _NUMBERS, n)], rng))
        ends = np.sort([rng.choice(BINS + 1, 2, replace=False) for _ in range(RANGES)], axis=1)
        wanted = [Range(int(first), int(end), "") for first, end in ends]
        found = list(rows_of(ranges(shares, wanted, "auto")))
        truth = np.diff(np.searchsorted(numbers, ends / BINS) / _NUMBERS, axis=1)[:, 0]
        low, high = _ends(found)
        held += float(((low <= truth) & (truth <= high)).mean())
        wide += float((high - low).mean())
        errors += float(np.abs(np.array([each.estimate for each in found]) - truth).mean())
        low, high = _ends(list(rows_of(quantiles(shares, LEVELS, "auto"))))
        below = (
            np.searchsorted(numbers, low, side="left") / _NUMBERS,
            np.searchsorted(numbers, high, "right") / _NUMBERS,
        )
        of_levels += (below[0] <= LEVELS) & (below[1] >= LEVELS)
    return Covered(held / windows, (of_levels / windows).tolist(), wide / errors)


def _version(name: str) -> Version:
    keys: dict[str, Any] = {
        "collection": "c",
        "version": 1,
        "domain": {"number": {"low": 0, "high": 1}},
        "window": {"size": "1h"},
    }
    mechanism = {"name": name, "epsilon": 1, "bins": BINS}
    return Version(CollectionSpec.parse(keys | {"mechanism": mechanism}))


def _span(version: Version, numbers: Floats, rng: Generator) -> Span:
    n, protocol = len(numbers), version.protocol
    payloads = protocol.perturb([Held(numbers, np.full(n, -1))], rng)
    cells = as_dense(protocol.mechanism.statistic(payloads))
    return Span(version, Period(0, 3_600_000, "window"), cells, (n,), (0,), Accounting(n, n), ())


def _ends(answers: Sequence[Row]) -> tuple[Floats, Floats]:
    low, high = (np.array([getattr(each, end) for each in answers], dtype=np.float64) for end in ("low", "high"))
    return low, high


def rows(windows: int) -> Iterator[tuple[str, str, int, Covered]]:
    """Measure each mechanism at each shape and number of reports."""
    for name in MECHANISMS:
        for shape in SHAPES:
            for n in SIZES:
                yield name, shape, n, measure(name, shape, n, windows)


def main() -> None:
    """Print a Markdown table."""
    windows = read_options(__doc__, windows=WINDOWS).windows
    print("| mechanism | numbers | n | ranges | quantiles at .05, .5, .95 | width over error |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, shape, n, found in rows(windows):
        of_levels = ", ".join(f"{each:.3f}" for each in found.quantiles)
        print(f"| {name} | {shape} | {n:,} | {found.ranges:.3f} | {of_levels} | {found.width:.1f} |", flush=True)


if __name__ == "__main__":
    main()

"""How often intervals of days, weeks and months cover the truth, from a year of hours of few reports each.

    python -m benchmarks.rollups --years 4

The shares of values have a cycle of a day, and users are drawn anew each hour. Each length of a period has three
answers: the mean of the published rows of ``auto`` with the error of independent rows, as a dashboard takes it; the
mean of ``unbiased`` weighted by n, from rows alone; and the estimate of the summed counts, as ``uldp ask`` gives it.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import NamedTuple

import numpy as np

from benchmarks.options import read_options
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.questions.periods import EVERY, Every, period_of
from uldp.mechanisms.questions.rollup import roll_up
from uldp.mechanisms.questions.span import Version
from uldp.schemas.arrays import Floats, Mask
from uldp.schemas.pane import Accounting, Pane, PaneKind
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.schemas.table import Table

YEARS, HOURS, REPORTS = 4, 8760, 150
HOUR = 3_600_000
#: 2026-01-01T00:00:00Z.
START = 1_767_225_600_000
#: The quantile of 95 % intervals.
_Z = 1.959964
SPEC = {
    "collection": "year",
    "version": 1,
    "domain": {"size": 20},
    "sensitive": list(range(10)),
    "mechanism": {"name": "urr", "epsilon": 1},
    "window": {"size": "1h"},
}


class Coverage(NamedTuple):
    """The share of intervals that cover the truth, and the mean l1 distance to it, of one answer."""

    covered: float
    l1: float


def shares(hours: int) -> Floats:
    """Return the shares at so many hours, shape (hours, 20): they fall as 1, 1/2, ..., and move with the day."""
    values, hour = np.arange(20), np.arange(hours)
    weights = (1 / (1 + values)) * (1 + 0.5 * np.sin(2 * np.pi * (hour[:, np.newaxis] / 24 + values / 20)))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def measure(every: Every, seed: int, hours: int = HOURS) -> tuple[Coverage, Coverage, Coverage]:
    """Return the coverage of the mean of rows, of the mean of ``unbiased``, and of summed counts, over all values."""
    version = Version(CollectionSpec.parse(SPEC))
    windows = list(_windows(version, hours, np.random.default_rng(seed)))
    truth = shares(hours)
    spans = roll_up(version, windows, every, UTC)
    periods = [period_of(w.window_start, w.window_end, every, UTC).start for w in windows]
    of_period = np.array([[start == span.period.start for start in periods] for span in spans])
    rows = [version.decoder.tables(window.cells, window.n, "auto")[0] for window in windows]
    sizes = np.array([window.n for window in windows])
    summed = [span.tables("auto")[0] for span in spans]
    of_spans = np.array([sizes[of] @ truth[of] / sizes[of].sum() for of in of_period])
    equal, by_n = np.ones(len(rows)), sizes.astype(np.float64)
    low, high = (
        np.array([end for each in summed if (end := getattr(each, name)) is not None]) for name in ("low", "high")
    )
    return (
        _coverage(*_mean(rows, [row.values for row in rows], of_period, equal), of_spans),
        _coverage(*_mean(rows, [_unbiased(row) for row in rows], of_period, by_n), of_spans),
        _coverage(low, high, np.array([each.values for each in summed]), of_spans),
    )


def _windows(version: Version, hours: int, rng: np.random.Generator) -> Iterator[Statistic]:
    decoder = version.decoder
    assert isinstance(decoder, PureDecoder)
    for hour, p in enumerate(shares(hours)):
        start = START + hour * HOUR
        cells = decoder.draw_counts(p, REPORTS, rng)
        pane, accounting = Pane(PaneKind.ON_TIME, 0), Accounting(REPORTS, REPORTS)
        spec = version.spec
        yield Statistic(*spec.key, spec.device_digest, start, start + HOUR, pane, accounting, cells=cells)


def _unbiased(row: Table) -> Floats:
    assert row.unbiased is not None
    return row.unbiased


def _mean(
    rows: Sequence[Table], values: Sequence[Floats], of_period: Mask, weights: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the ends of the intervals of weighted means, and the means, each of shape (periods, values)."""
    share = of_period * weights
    share = share / share.sum(axis=1, keepdims=True)
    mean = share @ np.array(values)
    half = _Z * np.sqrt(share**2 @ np.array([row.stderr for row in rows]) ** 2)
    return mean - half, mean + half, mean


def _coverage(low: Floats, high: Floats, values: Floats, truth: Floats) -> Coverage:
    covered = float(((low <= truth) & (truth <= high)).mean())
    return Coverage(covered, float(np.abs(values - truth).sum(axis=1).mean()))


def main() -> None:
    """Print a Markdown table."""
    years = read_options(__doc__, years=YEARS).years
    print("| periods | mean of rows of `auto` | mean of `unbiased` | summed counts | l1 of the first | of the last |")
    print("| --- | --- | --- | --- | --- | --- |")
    for every in EVERY:
        rows, unbiased, summed = np.mean([measure(every, seed) for seed in range(years)], axis=0)
        covered = " | ".join(f"{each[0]:.3f}" for each in (rows, unbiased, summed))
        print(f"| {every} | {covered} | {rows[1]:.4f} | {summed[1]:.4f} |")


if __name__ == "__main__":
    main()

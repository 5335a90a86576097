"""How often intervals over several windows cover the truth: of devices that keep responses, and of sliding windows.

    python -m benchmarks.asked_windows --runs 1000

There are 10 values, whose shares fall as 1, 1/2, 1/3, .... With kept responses, the same 500 devices report in each of
four windows: the share of each value and of three together, from all windows, and the change from the first window to
the last, of the same devices, though no user's value changes. "As if others" is the first without the covariances of
windows. Sliding windows of three hours begin each hour of a day, with other users in each hour, and the answers are of
the day, and of the change from its first half to its second.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any

import numpy as np
from numpy.random import Generator

from benchmarks.options import read_options
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.mechanism import WithMemory
from uldp.mechanisms.questions import Period, Shares, Span, Version, compare, roll_up, rows_of, shares_of
from uldp.mechanisms.questions.rollup import total
from uldp.mechanisms.questions.sums import sum_ends
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.pane import Accounting, Pane, PaneKind
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic

RUNS, DEVICES, WINDOWS, HOUR = 1000, 500, 4, 3_600_000
MECHANISMS = ("rr", "oue", "hrr", "ss")
NAMES = ("share", "sum of 3", "change", "as if others")
#: 2026-01-01T00:00:00Z.
START = 1_767_225_600_000
_HOURS, _WIDTH = 24, 3
TRUTH = (1 / np.arange(1, 11)) / (1 / np.arange(1, 11)).sum()
_MEMBERS = np.eye(10)[:, [0, 4, 8]].sum(axis=1, keepdims=True)


def kept(name: str, runs: int, seed: int = 1) -> Floats:
    """Return the coverage of each of ``NAMES`` for devices that keep responses."""
    rng, version = np.random.default_rng(seed), _version(name, lasting_epsilon=2.0)
    mechanism = version.protocol.mechanism
    assert isinstance(mechanism, WithMemory)
    covered = np.zeros(len(NAMES))
    for _ in range(runs):
        held = rng.choice(10, DEVICES, p=TRUTH)
        symbols = version.protocol.encoding.encode([Held(held, np.full(DEVICES, -1))], rng)
        permanent = mechanism.permanent(symbols, rng)
        windows = [as_dense(mechanism.statistic(mechanism.again(permanent, rng))) for _ in range(WINDOWS)]
        spans = [_span(version, cells, DEVICES, hour) for hour, cells in enumerate(windows)]
        together, alone = total(spans), _span(version, np.sum(windows, axis=0), DEVICES * WINDOWS, 0)
        first, last = (next(shares_of(spans[at])) for at in (0, -1))
        change = list(rows_of(compare(first, last, same_devices=True)))[:10]
        changed = float(np.mean([_holds(each.low, each.high, 0.0) for each in change]))
        of_others, _ = _of_shares(next(shares_of(alone)))
        covered += np.array([*_of_shares(next(shares_of(together))), changed, of_others])
    return covered / runs


def sliding(name: str, runs: int, seed: int = 1) -> Floats:
    """Return the coverage of the first three of ``NAMES`` for sliding windows."""
    rng = np.random.default_rng(seed)
    version = _version(name, {"size": f"{_WIDTH}h", "period": "1h"})
    covered = np.zeros(3)
    for _ in range(runs):
        hours = [_hour(version, rng) for _ in range(_HOURS)]
        windows = [_statistic(version, hours, first) for first in range(_HOURS - _WIDTH + 1)]
        (day,) = roll_up(version, windows, "1d", UTC)
        assert day.n == DEVICES // _WIDTH * _HOURS
        apart = windows[::_WIDTH]
        half = [_total(version, apart[:4]), _total(version, apart[4:])]
        first, last = (next(shares_of(each)) for each in half)
        change = list(rows_of(compare(first, last)))[:10]
        changed = float(np.mean([_holds(each.low, each.high, 0.0) for each in change]))
        covered += np.array([*_of_shares(next(shares_of(day))), changed])
    return covered / runs


def _version(name: str, window: Any = None, **mechanism: Any) -> Version:
    keys = {"collection": "c", "version": 1, "domain": {"size": 10}, "window": window or {"size": "1h"}}
    return Version(CollectionSpec.parse(keys | {"mechanism": {"name": name, "epsilon": 1.0} | mechanism}))


def _span(version: Version, cells: Counts, n: int, hour: int) -> Span:
    period = Period(START + hour * HOUR, START + (hour + 1) * HOUR, f"hour {hour}")
    return Span(version, period, cells, (n,), (0,), Accounting(n, n), ())


def _hour(version: Version, rng: Generator) -> Counts:
    """Return the cells of an hour, of which each window of three has 500 reports."""
    n, mechanism = DEVICES // _WIDTH, version.protocol.mechanism
    return as_dense(mechanism.statistic(mechanism.perturb(rng.choice(10, n, p=TRUTH), rng)))


def _statistic(version: Version, hours: Sequence[Counts], first: int) -> Statistic:
    n, start = DEVICES // _WIDTH * _WIDTH, START + first * HOUR
    cells: Counts = np.sum(hours[first : first + _WIDTH], axis=0)
    of_window = *version.spec.key, version.spec.device_digest, start, start + _WIDTH * HOUR
    return Statistic(*of_window, Pane(PaneKind.ON_TIME, 0), Accounting(n, n), cells=cells)


def _total(version: Version, windows: Sequence[Statistic]) -> Span:
    return total(roll_up(version, windows, None, UTC))


def _of_shares(shares: Shares) -> tuple[float, float]:
    """Return how many of the shares of values, and whether that of three together, are within their intervals."""
    (table,) = shares.span.tables("empirical")
    assert table.low is not None
    assert table.high is not None
    _, _, low, high = sum_ends(shares, _MEMBERS)
    of_sum = float((TRUTH @ _MEMBERS)[0])
    return float(((table.low <= TRUTH) & (table.high >= TRUTH)).mean()), float(_holds(low[0], high[0], of_sum))


def _holds(low: float | None, high: float | None, truth: float) -> bool:
    assert low is not None
    assert high is not None
    return bool(low <= truth <= high)


def rows(runs: int) -> Iterator[tuple[str, str, Floats]]:
    """Measure each mechanism."""
    for name in MECHANISMS:
        yield "kept responses", name, kept(name, runs)
        yield "sliding windows", name, sliding(name, runs)


def main() -> None:
    """Print a Markdown table."""
    runs = read_options(__doc__, runs=RUNS).runs
    print(f"| windows | mechanism | {' | '.join(NAMES)} |")
    print(f"| --- | --- | {' | '.join('---' for _ in NAMES)} |")
    for windows, name, covered in rows(runs):
        figures = [f"{each:.3f}" for each in covered] + [""] * (len(NAMES) - len(covered))
        print(f"| {windows} | {name} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()

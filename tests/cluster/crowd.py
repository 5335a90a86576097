"""Devices that report now, and what goes wrong on the way, with the truth: what a collector must make of it."""

import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import yaml

from mechanisms.catalog import build_mechanism
from schemas.collection import CollectionSpec
from schemas.durations import milliseconds
from schemas.records import Accounting
from transforms.columnar import Layout, report_schema
from transforms.encode import encode_columns

SPEC = CollectionSpec.parse(
    {
        "collection": "crowd",
        "version": 1,
        "domain": {"size": 625},
        "sensitive": list(range(0, 625, 10)),
        "mechanism": {"name": "urr", "epsilon": 4.0},
        "window": {"size": "30s", "early_every": "1s", "allowed_lateness": "1h"},
    }
)
WINDOW_MS = milliseconds(SPEC.window.size)
HOUR_MS = 3_600_000
#: How old a report is when it is sent, at the most, in ms: windows see it out of order.
OLDEST_MS = 2_000
#: The share of reports that are held back and sent within the allowed lateness, held back for longer, outside of the
#: domain, and no reports at all. And of those of which a second copy is sent, among the others.
HELD_BACK, LATE, OUTSIDE, GARBAGE, TWICE = 0.02, 0.02, 0.01, 0.01, 0.05

Counts = npt.NDArray[np.int64]


def write_spec(folder: Path) -> Path:
    """Write ``SPEC`` as a file into a folder; returns its path."""
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(SPEC.model_dump(mode="json", exclude_none=True)), encoding="utf-8")
    return path


@dataclass
class Crowd:
    """Sends single reports of ``SPEC``.

    Nothing of the truth depends on how long a message is on its way: what is late is later by an hour.

    Attributes:
        seed: Of its randomness.
        counts: By the start of the window, in ms: how often each value is reported. It is what must be counted.
        accounting: Where a collector must find what was sent, but for what is no report.
        garbage: How many messages were no reports.
    """

    seed: int
    counts: dict[int, Counts] = field(default_factory=lambda: defaultdict(lambda: np.zeros(SPEC.size, np.int64)))
    accounting: Accounting = field(default_factory=Accounting)
    garbage: int = 0

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self._mechanism = build_mechanism(SPEC)
        self._layout = Layout.of(report_schema(), *SPEC.key, None)
        began = time.time_ns() // 1_000_000
        self._held_back_at = began - 2 * WINDOW_MS
        self._late_at = began - 3 * HOUR_MS
        self._copies: list[bytes] = []

    def counts_by_window(self) -> dict[int, list[int]]:
        """Return ``counts``."""
        return {start: counts.tolist() for start, counts in self.counts.items()}

    @property
    def late_window(self) -> int:
        """The start of the window of all that is late."""
        return self._late_at - self._late_at % WINDOW_MS

    def send(self, n: int) -> list[bytes]:
        """Make ``n`` messages, and the copies of those before, in random order."""
        rng, size = self._rng, self._mechanism.size
        well = 1 - HELD_BACK - LATE - OUTSIDE - GARBAGE
        fresh, held, late, outside, garbage = rng.multinomial(n, [well, HELD_BACK, LATE, OUTSIDE, GARBAGE]).tolist()
        times = time.time_ns() // 1_000_000 - rng.integers(0, OLDEST_MS, n - garbage)
        times[fresh : fresh + held] = self._held_back_at
        times[fresh + held : fresh + held + late] = self._late_at
        symbols = self._mechanism.perturb(rng.integers(0, SPEC.size, n - garbage), rng)
        good = fresh + held
        for start in np.unique(times[:good] - times[:good] % WINDOW_MS).tolist():
            inside = times[:good] // WINDOW_MS == start // WINDOW_MS
            self.counts[start] += np.bincount(symbols[:good][inside], minlength=size)
        symbols[good + late :] += size
        ids = rng.integers(0, 1 << 64, (n - garbage, 2), np.uint64)
        reports = encode_columns(self._layout, ids, times, symbols)
        again = self._copies
        self._copies = [reports[row] for row in rng.choice(good, int(TWICE * good), replace=False).tolist()]
        self.accounting += Accounting(n - garbage + len(again), good, len(again), late, outside)
        self.garbage += garbage
        messages = [*reports, *map(rng.bytes, [20] * garbage), *again]
        rng.shuffle(messages)
        return messages

    def send_last_copies(self) -> list[bytes]:
        """Return the copies of the messages before, and make no more of them."""
        again, self._copies = self._copies, []
        self.accounting += Accounting(received=len(again), duplicate=len(again))
        return again

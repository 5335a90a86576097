"""Devices that report now, and what goes wrong on the way, with the truth: what a collector must make of it."""

import time
from collections import defaultdict
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tests import build
from tests.build import HOUR
from uldp.mechanisms.catalog import build_protocol
from uldp.schemas.arrays import Payloads, ReportIds, Times
from uldp.schemas.codec.columnar import Layout, report_schema
from uldp.schemas.codec.encode import encode_batch, encode_columns
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import milliseconds

SPEC = build.spec(
    collection="crowd",
    domain={"size": 625},
    sensitive=list(range(0, 625, 10)),
    mechanism={"name": "urr", "epsilon": 4.0},
    window={"size": "30s", "early_every": "1s", "allowed_lateness": "1h"},
)
#: How old a report is when it is sent, at the most, in ms: windows see it out of order.
OLDEST_MS = 2_000
#: The shares of messages that are no reports, and of those of which a second copy is sent, among the next messages.
GARBAGE, TWICE = 0.01, 0.05

Counts = npt.NDArray[np.int64]


class Fate(IntEnum):
    """What a report is: as it should be, held back for less than the allowed lateness, or for longer, or impossible."""

    WELL = 0
    HELD_BACK = 1
    LATE = 2
    IMPOSSIBLE = 3


#: Of each fate.
SHARES = (0.95, 0.02, 0.02, 0.01)


@dataclass
class Crowd:
    """Sends reports of a spec like ``SPEC``, which may have other windows.

    Nothing of the truth depends on how long a message is on its way: what is late is later by an hour.

    Attributes:
        seed: Of its randomness.
        batch: How many reports are in a message; if it is 1, they are not batched.
        spec: The spec.
        shares: Of each fate.
        counts: By the start of the slice, in ms: how often each value is reported. It is what must be counted. A fixed
            window is one slice.
        accounting: Where a collector must find what was sent, but for what is no report.
        late: How many different reports are late.
        rejected: How many different reports and other messages must be rejected.
    """

    seed: int
    batch: int = 1
    spec: CollectionSpec = SPEC
    shares: tuple[float, ...] = SHARES
    counts: dict[int, Counts] = field(default_factory=lambda: defaultdict(lambda: np.zeros(SPEC.size, np.int64)))
    accounting: Accounting = field(default_factory=Accounting)
    late: int = 0
    rejected: int = 0

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self._mechanism = build_protocol(self.spec).mechanism
        self._layout = Layout.of(report_schema(), *self.spec.key, None)
        self._slice_ms = milliseconds(self.spec.window.slice)
        began = time.time_ns() // 1_000_000
        self._held_back_at = began - 2 * self._slice_ms
        self._late_at = began - 3 * HOUR
        self._copies: list[bytes] = []
        self._of_copies = Accounting()

    def counts_by_window(self) -> dict[int, list[int]]:
        """Return ``counts``."""
        return {start: counts.tolist() for start, counts in self.counts.items()}

    @property
    def late_window(self) -> int:
        """The start of the window of all that is late."""
        return self._late_at - self._late_at % self._slice_ms

    def send(self, n: int) -> list[bytes]:
        """Make messages of ``n`` reports, others that are none, and second copies of those before, in random order."""
        rng = self._rng
        fates = rng.choice(len(self.shares), n, p=self.shares)
        times = time.time_ns() // 1_000_000 - rng.integers(0, OLDEST_MS, n)
        times[fates == Fate.HELD_BACK], times[fates == Fate.LATE] = self._held_back_at, self._late_at
        symbols = self._mechanism.perturb(rng.integers(0, self.spec.size, n), rng)
        good, starts = fates <= Fate.HELD_BACK, times - times % self._slice_ms
        for start in np.unique(starts[good]).tolist():
            self.counts[start] += np.bincount(symbols[good & (starts == start)], minlength=self.spec.size)
        symbols[fates == Fate.IMPOSSIBLE] += self.spec.size
        ids = rng.integers(0, 1 << 64, (n, 2), np.uint64)
        messages = self._encode(ids, times, symbols)
        garbage = [rng.bytes(20) for _ in range(int(GARBAGE * len(messages)))]
        late, impossible = int((fates == Fate.LATE).sum()), int((fates == Fate.IMPOSSIBLE).sum())
        self.accounting += Accounting(n, n - late - impossible, 0, late, impossible)
        self.late += late
        self.rejected += impossible + len(garbage)
        sent = [*messages, *garbage, *self.send_copies()]
        again = rng.random(len(messages)) < TWICE
        self._copies = [messages[each] for each in np.flatnonzero(again).tolist()]
        copied = fates[np.repeat(again, self.batch)[:n]]
        late, impossible = int((copied == Fate.LATE).sum()), int((copied == Fate.IMPOSSIBLE).sum())
        self._of_copies = Accounting(len(copied), 0, len(copied) - late - impossible, late, impossible)
        rng.shuffle(sent)
        return sent

    def send_copies(self) -> list[bytes]:
        """Return the second copies of messages sent before. What is late or impossible is that once more."""
        copies, self._copies = self._copies, []
        self.accounting += self._of_copies
        self._of_copies = Accounting()
        return copies

    def _encode(self, ids: ReportIds, times: Times, symbols: Payloads) -> list[bytes]:
        if self.batch == 1:
            return encode_columns(self._layout, ids, times, symbols)
        bounds = [*range(0, len(ids), self.batch), len(ids)]
        return [encode_batch(*self.spec.key, ids[a:b], times[a:b], symbols[a:b]) for a, b in pairwise(bounds)]

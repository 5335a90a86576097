"""Devices whose reports are one each, with copies, late and impossible ones among them."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import yaml

from tests import build
from tests.cluster.daemons import wait_until
from tests.cluster.following import Results
from tests.cluster.kafka import send
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.kafka.topic import KafkaTopic

#: Of each batch, so many are sent again with the next, and so many are sent beside it that are late or impossible.
COPIES, LATE, IMPOSSIBLE = 10, 2, 3
#: Longer than a window and its allowed lateness.
TOO_LONG_MS = 3_600_000
OUTAGE_SECONDS = 60.0


def one_each(reports: int, overlap: int = 1) -> CollectionSpec:
    """Return a spec of which each report has a symbol of its own and no privacy.

    So a right count is 1: a 2 is a double count, a 0 a loss. So many windows overlap, and each of them has the report.
    """
    window = {"size": "10s", "early_every": "1s", "allowed_lateness": "30m"}
    return build.spec(
        collection="one-each",
        domain={"size": reports},
        mechanism={"name": "identity"},
        window=window if overlap == 1 else window | {"period": f"{10 // overlap}s"},
    )


def write_spec(spec: CollectionSpec, folder: Path) -> Path:
    """Write a spec as a file into a folder; returns its path."""
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(spec.model_dump(mode="json", exclude_none=True)), encoding="utf-8")
    return path


#: A collection in which nothing is late but what is published after its window.
GROWING = build.spec(
    collection="growing",
    domain={"size": 4},
    mechanism={"name": "identity"},
    window={"size": "10s", "early_every": "1s", "allowed_lateness": "0s"},
)


@dataclass
class OnTime:
    """Sends reports to partitions of a topic, each with the present as its time.

    Attributes:
        topic: The topic.
        sent: The number of reports.
    """

    EACH: ClassVar[int] = 100

    topic: KafkaTopic
    sent: int = 0

    def send(self, *partitions: int) -> None:
        """Send ``EACH`` reports to each of these partitions."""
        for partition in partitions:
            now, first = time.time_ns() // 1_000_000, self.sent
            reports = [build.report(number, 0, now, GROWING.key) for number in range(first, first + self.EACH)]
            send(self.topic, partition, [build.message(report) for report in reports])
            self.sent += self.EACH


@dataclass
class Devices:
    """Makes what devices send now.

    Attributes:
        spec: What they report to; see ``one_each``.
        sent: What all they sent is to be accounted as, if each message comes once.
    """

    spec: CollectionSpec
    sent: Accounting = field(default_factory=Accounting)
    _again: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._randomness = np.random.default_rng(5)

    def batch(self, n: int) -> list[bytes]:
        """Make new reports, with copies of some of the batch before, and some that cannot be counted, in any order."""
        now, first, size = time.time_ns() // 1_000_000, self.sent.counted, self.spec.size
        fresh = [self._report(now, symbol) for symbol in range(first, first + n)]
        late = [self._report(now - TOO_LONG_MS, 0) for _ in range(LATE)]
        impossible = [self._report(now, size) for _ in range(IMPOSSIBLE)]
        bodies = [*fresh, *self._again, *late, *impossible]
        self.sent += Accounting(len(bodies), n, len(self._again), LATE, IMPOSSIBLE)
        self._again = fresh[:COPIES]
        return [bodies[index] for index in self._randomness.permutation(len(bodies))]

    def _report(self, at: int, symbol: int) -> bytes:
        return Report(*self.spec.key, self._randomness.bytes(16), at, symbol).encode()


def assert_counted_once(devices: Devices, results: Results, overlap: int = 1) -> None:
    """Assert that each report is in the counts of so many windows, once."""
    assert devices.sent.counted == devices.spec.size
    assert results.total().counted == overlap * devices.sent.counted
    # Without the windows that count nothing, whose counts are a single 0.
    counts = np.sum([*results.counts().values()], axis=0)
    assert counts.tolist() == [overlap] * devices.spec.size


def wait_a_minute() -> None:
    """Wait for as long as a broker may be away: the time is the condition."""
    over = time.monotonic() + OUTAGE_SECONDS
    wait_until(lambda: time.monotonic() > over, "a minute has passed", seconds=2 * OUTAGE_SECONDS)


def connections_to(endpoint: str) -> int:
    """How many connections are open to a port of this machine, by the kernel's table."""
    port = f":{int(endpoint.rpartition(':')[2]):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return sum(row[2].endswith(port) and row[3] == "01" for row in rows)

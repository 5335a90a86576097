"""What a stream keeps for deduplication: bounded by window + allowed lateness, however long it runs.

    python -m benchmarks.state

A live job on Beam's local runner follows a stream of 48 hourly windows. Its memory, and the ids that it remembers, are
read whenever a window has fired. Reports may be an hour late, and ids are forgotten with their window; then a day; and
then, to see what forgetting saves, as long as the stream lasts.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from benchmarks.rows import Row, alone, clock, print_table
from uldp.collector.id_table import Hashes
from uldp.collector.seen import Lot
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.jobs.settings import JobSettings
from uldp.schemas.records import Message, ReportBatch
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms import remembered
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.remembered import forget_expired, pack_ids

WINDOWS, REPORTS_PER_WINDOW, BATCH = 48, 100_000, 1_000
START, HOUR = 1_767_225_600_000, 3_600_000
#: Parts of the run at whose ends memory is read.
QUARTERS = 4


class Kept(NamedTuple):
    """What a job keeps at a moment: resident megabytes, and ids that it has not forgotten."""

    megabytes: float
    ids: int


def spec(lateness: str) -> CollectionSpec:
    """Hourly windows of identity reports: there is next to no state but the ids."""
    return CollectionSpec.parse(
        {
            "collection": "state",
            "version": 1,
            "domain": {"size": 2},
            "mechanism": {"name": "identity"},
            "window": {"size": "1h", "allowed_lateness": lateness},
        }
    )


def publish(stream: LocalStream, windows: int, rng: np.random.Generator) -> None:
    """Append a segment for each window."""
    for window in range(windows):
        start = START + window * HOUR
        messages = [
            Message(
                ReportBatch(
                    "state",
                    1,
                    rng.bytes(16 * BATCH),
                    np.full(BATCH, start).tobytes(),
                    symbols=np.zeros(BATCH, dtype=np.uint32).tobytes(),
                ).encode(),
                start + batch,
            )
            for batch in range(REPORTS_PER_WINDOW // BATCH)
        ]
        stream.append(messages)
    stream.close()


class _Watch:
    """Counts the ids in state as they are written and forgotten, and what is kept whenever a window fires on time."""

    def __init__(self) -> None:
        self.ids = 0
        self.kept: list[Kept] = []

    def pack_ids(self, lot: Lot, hashes: Hashes) -> bytes:
        self.ids += len(hashes[0])
        return pack_ids(lot, hashes)

    def forget_expired(self, bag: Any, expiring: Counter[int], now: int) -> Counter[int]:
        before = self.ids
        left = forget_expired(bag, expiring, now)
        self.ids = before - expiring.total() + left.total()  # those that stay are written again
        return left


#: Of this process. The runner copies whatever it is given, so that nothing else would see what happens.
_watch = _Watch()


def _fired(line: str) -> None:
    if "on time" in line:
        _watch.kept.append(Kept(_resident_megabytes(), _watch.ids))


def run(windows: int, lateness: str) -> tuple[float, list[Kept]]:
    """Follow a stream of so many windows; returns the seconds, and what was kept at the end of each quarter."""
    with tempfile.TemporaryDirectory() as folder:
        stream = LocalStream.create(Path(folder, "stream"), simulated_clock=True)
        publish(stream, windows, np.random.default_rng(5))
        began = clock()
        options = jobs.pipeline_options([])
        with mock.patch.multiple(remembered, pack_ids=_watch.pack_ids, forget_expired=_watch.forget_expired):
            jobs.follow([spec(lateness)], stream.path, Path(folder, "out"), options, JobSettings(say=_fired))
        seconds = clock() - began
    # The last windows fire when the stream has been closed, and then all is forgotten.
    kept = _watch.kept[:-2]
    return seconds, [kept[len(kept) * quarter // QUARTERS - 1] for quarter in range(1, QUARTERS + 1)]


def _resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1e6


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure each; ``quick`` takes a tenth of the windows."""
    windows = WINDOWS // (10 if quick else 1)
    lateness_of = {"ids are forgotten": "1h", "ids are held a day": "24h", "ids are held for good": f"{windows}h"}
    for label, lateness in lateness_of.items():
        (seconds, kept), megabytes = alone(run, windows, lateness)
        remark = "at each quarter: " + "; ".join(f"{at.ids:,} ids, {at.megabytes:,.0f} MB" for at in kept)
        yield Row("state", label, windows * REPORTS_PER_WINDOW, seconds, megabytes=megabytes, remark=remark)


if __name__ == "__main__":
    print_table(rows())

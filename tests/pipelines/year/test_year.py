"""A year of an installation on one machine, hour by hour, with the counts that the test has kept.

Devices post, specs come and go, the job is stopped and killed, and an operator's timer prunes.

The clock of all commands is the test's. It stands still while something happens, so each message has a known time.
"""

import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import pytest

from tests.build import HOUR, MINUTE
from tests.pipelines.year.installation import Installation, resident, size_of, until
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest, total_accounting
from uldp.schemas.arrays import Counts
from uldp.schemas.records import ReportBatch
from uldp.schemas.specs.collection import CollectionSpec

#: 2024-01-01T00:00:00Z in milliseconds: files have the times of the machine, which are later than all of this year.
START = 1_704_067_200_000
DAY, WEEK, MONTH = 24, 168, 730
SIZE = 8
SPEC = f"""
collection: %s
version: 1
domain: {{size: {SIZE}}}
mechanism: {{name: rr, epsilon: 1.0}}
limits: {{min_reports: 10, max_age: 30d}}
"""
HOURLY = SPEC % "steady" + "window: {size: 1h, allowed_lateness: 1h}\n"
DAILY = SPEC % "daily" + "window: {size: 1d, allowed_lateness: 1h}\n"
OF_CAMPAIGN = SPEC + "window: {size: 6h, allowed_lateness: 1d}\n"
#: Hours at which the job is stopped, and how; from the last on, it runs to the end of the year.
STOPS = {800: signal.SIGKILL, 1500: signal.SIGTERM, 2200: signal.SIGKILL, 3000: signal.SIGINT, 3700: signal.SIGKILL}
#: Messages that the job may be behind.
AHEAD = 48
#: What is allowed: memory, as a multiple of that a month after the last start; files of results and their bytes, those
#: of a week that is not joined yet, and for each day before; and files of the stream.
MEMORY, FILES, FILES_A_DAY, BYTES, BYTES_A_DAY, SEGMENTS = 1.1, 1_000, 8, 4 << 20, 64 << 10, 1_000


class Figures(NamedTuple):
    """What an hour finds: seconds since the beginning, bytes of memory, and files and their bytes."""

    hour: int
    seconds: int
    memory_of_job: int
    memory_of_edge: int
    files: int
    nbytes: int
    segments: int

    @classmethod
    def of(cls, here: Installation, hour: int, seconds: int) -> Self:
        memory = resident(here.job), resident(here.collect)
        return cls(hour, seconds, *memory, *size_of(here.out), size_of(here.stream)[0])


class Year:
    """The devices, and what is right about their reports."""

    def __init__(self, here: Installation) -> None:
        self._here, self._rng = here, np.random.default_rng(41)
        self.cells: dict[tuple[str, int], Counts] = {}
        self.early = self.batch(campaign(0), 9, 20)
        self.counted, self.duplicate, self.late, self.rejected = (Counter[str]() for _ in range(4))

    def batch(self, collection: str, hour: int, n: int, wrong: int = 0) -> tuple[bytes, Counts]:
        """A batch of reports of an hour, the last of them of values that are not in the domain; and its counts."""
        symbols = self._rng.integers(SIZE, size=n)
        symbols[n - wrong :] = SIZE
        times = np.full(n, START + hour * HOUR, dtype=np.int64).tobytes()
        body = ReportBatch(collection, 1, self._rng.bytes(16 * n), times, symbols=symbols.astype(np.uint32).tobytes())
        return body.encode(), np.bincount(symbols[: n - wrong], minlength=SIZE)

    def count(self, collection: str, hour: int, window: int, cells: Counts) -> None:
        """Take the reports of a batch as counted."""
        start = START + hour // window * window * HOUR
        self.cells[collection, start] = self.cells.get((collection, start), np.zeros(SIZE, dtype=np.int64)) + cells
        self.counted[collection] += int(cells.sum())

    def post(self, collection: str, hour: int, window: int, n: int, *, copies: int = 0, wrong: int = 0) -> None:
        """Post reports of now that count, and the same again; the wrong ones among them are rejected each time."""
        body, cells = self.batch(collection, hour, n, wrong)
        assert [self._here.post(body) for _ in range(1 + copies)] == [202] * (1 + copies)
        self.count(collection, hour, window, cells)
        self.duplicate[collection] += copies * (n - wrong)
        self.rejected[collection] += (1 + copies) * wrong


def campaign(month: int) -> str:
    return f"campaign-{month:02d}"


def change_specs(here: Installation, year: Year, hour: int) -> None:
    """Let specs come, change and go."""
    month, left = divmod(hour, MONTH)
    name, before = campaign(month), campaign(month - 1)
    if left == 1 and month > 0:
        here.keep_up(0)  # a version closes behind what the job has read: what waits would be rejected
        here.write(before, OF_CAMPAIGN % before + "retired: true\n")
        until(lambda: (kept := kept_spec(here, before)) is not None and kept.closes is not None)
        assert here.post(year.batch(before, hour, 5)[0]) == 422
    elif left == 9 and month == 0:
        # A device that is too early: kept, and sent again when the spec is there.
        assert here.post(year.early[0]) == 202
    elif left == 10:
        here.keep_up(0)  # what was posted before is judged without the spec
        here.write(name, OF_CAMPAIGN % name)
        until(lambda: kept_spec(here, name) is not None)
    elif left == 11 and month == 0:
        until(lambda: any(here.out.glob("rejected/*.avro")))
        assert "1 sent again" in here.run("replay", here.out / "rejected", "--to", here.stream)
        here.segments += 1
        year.count(name, 9, 6, year.early[1])
    elif hour == 5 * MONTH + 230:
        here.write("steady", HOURLY + "estimator: [empirical, norm-sub]\n")


def kept_spec(here: Installation, name: str) -> CollectionSpec | None:
    path = here.out / "specs" / f"{name}-v1" / "spec.yaml"
    return CollectionSpec.load(path) if path.exists() else None


def post_hour(here: Installation, year: Year, hour: int) -> None:
    """Post what the devices of an hour send."""
    year.post("steady", hour, 1, 24, copies=hour % 10 == 0, wrong=2 if hour % 50 == 30 and hour > DAY else 0)
    if hour % 100 == 50:
        body, _ = year.batch("steady", hour - 5, 7)
        assert here.post(body) == 202
        year.late["steady"] += 7
    if hour % 4 == 0:
        year.post("daily", hour, DAY, 12)
    if hour % 3 == 0 and hour % MONTH > 12:
        year.post(campaign(hour // MONTH), hour, 6, 16)


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process from /proc")
def test_a_year_of_hours_is_exact_and_takes_no_more_memory_and_files_than_is_said(tmp_path: Path) -> None:
    hours, began, figures = 12 * MONTH, time.monotonic(), list[Figures]()
    with Installation(tmp_path, START) as here:
        year = Year(here)
        here.write("steady", HOURLY)
        here.write("daily", DAILY)
        here.start_collect()
        here.start_stream()
        until(lambda: kept_spec(here, "daily") is not None)
        for hour in range(hours):
            here.clock.set(START + hour * HOUR + 50 * MINUTE)
            if hour == 3000:
                here.kill_collect()
                here.start_collect()
            if hour in STOPS:
                here.stop_stream(STOPS[hour])
                here.start_stream()
            change_specs(here, year, hour)
            post_hour(here, year, hour)
            here.keep_up(AHEAD)
            if hour % WEEK == WEEK - 1:
                here.begin_to_keep_house()
            if hour % MONTH == MONTH - 1:
                figures.append(Figures.of(here, hour, int(time.monotonic() - began)))
        # The last windows end, and then all that was posted before the last message is written.
        for after in (3 * DAY, 4 * DAY):
            here.clock.set(START + (hours + after) * HOUR + 50 * MINUTE)
            year.post("steady", hours + after, 1, 24)
            here.keep_up(0)
        here.begin_to_keep_house()
        here.end_keeping_house()
        assert "steady v1: " in here.run("status", here.out)
        assert "campaign" in here.run("show", here.out, "--last", "1")
        here.stop_stream(signal.SIGTERM)
        print(here.run("audit", here.stream, here.out))  # noqa: T201

        folder = ResultsFolder(here.out)
        panes = newest(folder.statistics())
        end = START + hours * HOUR
        found = {
            (pane.collection, pane.window_start): pane.cells.tolist()
            for pane in panes
            if pane.n and pane.window_start < end
        }
        assert found == {key: cells.tolist() for key, cells in year.cells.items() if key[1] < end}
        for name in ("steady", "daily", *(campaign(month) for month in range(hours // MONTH))):
            total = total_accounting([pane for pane in panes if pane.collection == name])
            assert total.duplicate == year.duplicate[name]
            assert total.late == year.late[name]
            assert total.rejected == year.rejected[name]
        last = max(each.window_start for each in folder.estimates() if each.collection == "steady")
        by = {each.estimator for each in folder.estimates() if each.window_start == last}
        assert by == {"empirical", "norm-sub"}

        print(*figures, sep="\n")  # noqa: T201 (the figures of the year, which pytest shows if a bound is exceeded)
        since = next(each for each in figures if each.hour > max(STOPS) + MONTH)
        assert figures[-1].memory_of_job < MEMORY * since.memory_of_job
        assert figures[-1].memory_of_edge < MEMORY * since.memory_of_edge
        for each in figures:
            assert each.files < FILES + FILES_A_DAY * each.hour // DAY
            assert each.nbytes < BYTES + BYTES_A_DAY * each.hour // DAY
            assert each.segments < SEGMENTS

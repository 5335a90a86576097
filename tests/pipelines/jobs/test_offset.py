"""Windows with an offset: a job of which all times are later by it has the same panes, as much later."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.build import HOUR, MINUTE, START, message, report, spec
from tests.pipelines.command import Run as Command
from uldp.mechanisms.devices.device import Device
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.framing import report_store
from uldp.schemas.records import Message, iso
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import milliseconds
from uldp.schemas.specs.specfile import SpecError
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import write_messages

#: A job of one collection in a folder, with all times so much later; returns its panes.
Run = Callable[[Path, CollectionSpec, int], Sequence[object]]
#: No multiple of a slice.
OFFSET = 23 * MINUTE
WINDOWS = {
    "fixed": {"size": "2h", "allowed_lateness": "1h"},
    "short": {"size": "30m", "allowed_lateness": "10m"},
    "sliding": {"size": "4h", "period": "30m", "allowed_lateness": "1h"},
}


def messages(later: int) -> list[Message]:
    """A report each five minutes of a day, some of them late, and some copies."""
    found = []
    for number in range(288):
        published = START + later + number * 5 * MINUTE
        late = (number % 7 == 6) * 90 * MINUTE + (number % 31 == 30) * 5 * HOUR
        found.append(message(report(number - number % 11 % 2, number % 5, published - late), published))
    return found


def panes(out: Path, later: int) -> Sequence[object]:
    """All panes of a job, with the times of one without an offset."""
    return sorted(
        (
            pane.window_start - later,
            pane.window_end - later,
            pane.pane.revision,
            pane.pane.kind,
            pane.accounting.received,
            pane.n,
            pane.flags,
            pane.cells.tolist() if isinstance(pane, Statistic) else None,
        )
        for pane in ResultsFolder(out, lambda error: pytest.fail(str(error))).panes()
    )


def stream(folder: Path, of: CollectionSpec, later: int) -> Sequence[object]:
    followed = LocalStream.create(folder / "stream", simulated_clock=True)
    for one in messages(later):
        followed.append([one])
    followed.close()
    options = jobs.pipeline_options([])
    jobs.follow([of], followed.path, folder / "out", options)
    return panes(folder / "out", later)


def backfill(folder: Path, of: CollectionSpec, later: int) -> Sequence[object]:
    (folder / "archive").mkdir(parents=True)
    with (folder / "archive" / "0.avro").open("wb") as file:
        write_messages(file, messages(later))
    jobs.backfill([of], folder / "archive", folder / "out", jobs.pipeline_options([]))
    return panes(folder / "out", later)


@pytest.mark.parametrize(
    ("run", "window"),
    [
        (stream, "fixed"),
        *(pytest.param(stream, window, marks=pytest.mark.nightly) for window in WINDOWS if window != "fixed"),
        *((backfill, window) for window in WINDOWS),
    ],
)
def test_panes_are_those_of_windows_without_offset(tmp_path: Path, run: Run, window: str) -> None:
    limits = {"min_reports": 4}
    plain, later = (
        spec(window=WINDOWS[window] | {"offset": offset}, limits=limits) for offset in ("0s", f"{OFFSET}ms")
    )
    without = run(tmp_path / "plain", plain, 0)
    assert len(without) >= 12
    assert run(tmp_path / "later", later, OFFSET) == without


@pytest.mark.parametrize("window", WINDOWS)
def test_devices_round_to_the_slices_of_the_collector(window: str) -> None:
    of = spec(window=WINDOWS[window] | {"offset": f"{OFFSET}ms"})
    period = milliseconds(of.window.slice)
    device = Device(of, {})
    for time in (START, START + OFFSET - 1, START + OFFSET, START + 7 * HOUR):
        sent = report_store().decode(device.report(0, time))[1]["event_time"]
        assert time - period < sent <= time
        assert (sent - OFFSET) % period == 0
        assert of.sent_time(np.array([time])).tolist() == [sent]


def test_an_offset_is_less_than_a_slice() -> None:
    remedy = "offset must be less than period, 30m; 45m means the same windows as 15m"
    with pytest.raises(SpecError, match=remedy):
        spec(window={"size": "2h", "period": "30m", "offset": "45m"})


# Days, weeks and months of windows with an offset, and jobs that stop.

DAY = 24 * HOUR
#: 2026-03-02T00:00:00Z, a Monday.
MONDAY = 1_772_409_600_000


@pytest.mark.parametrize(
    ("window", "every", "zone", "begins"),
    [
        ({"size": "1d", "offset": "22h"}, "1d", "Etc/GMT-2", -2 * HOUR),
        ({"size": "7d", "offset": "4d"}, "1w", "UTC", 0),
        ({"size": "1h", "offset": "30m"}, "1d", "Asia/Kolkata", -5.5 * HOUR),
        ({"size": "6h", "period": "1h", "offset": "30m"}, "1d", "Asia/Kolkata", -5.5 * HOUR),
    ],
)
def test_windows_with_an_offset_add_up_to_periods_of_their_zone(
    window: dict[str, str], every: str, zone: str, begins: float, uldp: Command, tmp_path: Path
) -> None:
    """A report each hour of three weeks is in the day or the week of the zone, as plain arithmetic says."""
    first, period = int(MONDAY + begins), {"1d": DAY, "1w": 7 * DAY}[every]
    times = [first + 7 * MINUTE + hour * HOUR for hour in range(21 * 24)]
    (tmp_path / "archive").mkdir()
    with (tmp_path / "archive" / "0.avro").open("wb") as file:
        write_messages(file, [message(report(number, number % 5, at)) for number, at in enumerate(times)])
    of = spec(window=window, mechanism={"name": "identity"})
    jobs.backfill([of], tmp_path / "archive", tmp_path / "out", jobs.pipeline_options([]))

    code, text, error = uldp("ask", tmp_path / "out", "--every", every, "--zone", zone, "--json")
    assert (code, error) == (0, "")
    rows = [json.loads(line) for line in text.splitlines()]
    expected = Counter((at - first) // period for at in times)
    found = {row["start"]: row["n"] for row in rows}
    assert found == {iso(first + number * period): n for number, n in expected.items()}
    for row in rows:
        holders = sum(
            row["start"] == iso(first + (at - first) // period * period)
            for number, at in enumerate(times)
            if str(number % 5) == row["label"]
        )
        assert row["estimate"] * row["n"] == pytest.approx(holders)

"""Streams and results as they are, and as they were when half of the stream was there."""

import io
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import yaml
from numpy.random import default_rng

from tests import build
from tests.build import HOUR, MINUTE, START
from uldp.mechanisms.devices.device import Device
from uldp.pipelines.cli import main
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.archive import held_twice
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError, opened, packed_messages
from uldp.transforms.io.stored_files import left

#: A command that takes longer hangs.
HANGS_AFTER_SECONDS = 120
SEGMENTS = 6
SPEC = build.MINIMAL | {
    "window": {"size": "30m", "allowed_lateness": "5m"},
    "limits": {"min_reports": 21, "max_rejected_ratio": 0.9},
}


class Ran(NamedTuple):
    """What a command has printed."""

    code: int
    out: str
    err: str


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError("the command hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(HANGS_AFTER_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def uldp(*arguments: str | Path) -> Ran:
    """Run the command in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    argv = mock.patch.object(sys, "argv", ["uldp", *map(str, arguments)])
    with argv, redirect_stdout(out), redirect_stderr(err), _time_limit():
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Ran(code, out.getvalue(), err.getvalue())


def messages(segment: int) -> Iterator[Message]:
    """Twenty minutes of reports, some of them late, copied or wrong; the last window has few."""
    began = START + segment * 20 * MINUTE
    for number in range(20 if segment < SEGMENTS - 1 else 4):
        yield build.message(build.report(100 * segment + number, number % 5, began + number * MINUTE // 2))
    published = began + 12 * MINUTE
    yield build.message(build.report(100 * segment, 0, began), published)
    yield build.message(build.report(100 * segment + 50, 1, began - 2 * HOUR), published)
    yield build.message(build.report(100 * segment + 51, 99, began), published)
    yield Message(b"no report", published)


@dataclass(frozen=True)
class Place:
    """A folder with ``spec.yaml`` and ``stream``, and what commands have made of them.

    These are the results ``live`` of a job, ``apart`` of another one with ``--private-to private``, ``batch`` of a
    backfill, ``joined``, in which ``uldp compact`` has joined panes, and ``zoned``, with answers about zones; and
    ``client``, a stream of one value.
    """

    root: Path

    @property
    def spec(self) -> Path:
        return self.root / "spec.yaml"

    def __truediv__(self, name: str) -> Path:
        return self.root / name

    def copy(self, root: Path) -> "Place":
        shutil.copytree(self.root, root)
        return Place(root)


def compact(place: Place, out: str) -> Ran:
    """Join all panes but those of the newest windows, whose day is not over."""
    with mock.patch("uldp.pipelines.results.moved._DAY", 0):
        return uldp("compact", place / out)


def send_one_value(path: Path) -> None:
    """Write the reports of devices that all hold the first value: enough for ``uldp verify`` without one segment."""
    stream = LocalStream.create(path, simulated_clock=True)
    device = Device(build.spec(), {}, default_rng(1))
    for _ in range(3):
        stream.append([Message(device.report(0, START), START) for _ in range(700)])
    stream.close()


def run_zoned(place: Place) -> Ran:
    """Count the reports of devices that hide the last of their values behind a tag, and say its zone."""
    (place / "zones.csv").write_text("3,a\n4,b\n")
    tags = [{"name": "home", "zones": "zones.csv", "zone_epsilon": 0.5}]
    spec, hiding = place / "zoned.yaml", place / "hiding"
    spec.write_text(yaml.safe_dump(build.MINIMAL | {"sensitive": [0], "tags": tags, "limits": {"min_reports": 1}}))
    stream = LocalStream.create(hiding, simulated_clock=True)
    device = Device(CollectionSpec.load(spec), {3: "home", 4: "home"}, default_rng(1))
    for hour in range(3):
        now = START + hour * HOUR
        stream.append([Message(device.report(value % 5, now), now) for value in range(50)])
    stream.close()
    return uldp("stream", "--spec", spec, "--from", hiding, "--to", place / "zoned")


def prepare(root: Path) -> tuple[Place, Place]:
    """Make a place, and return what was there earlier, and what is there now."""
    now = Place(root / "now")
    now.root.mkdir()
    now.spec.write_text(yaml.safe_dump(SPEC))
    stream = LocalStream.create(now / "stream", simulated_clock=True)
    for segment in range(SEGMENTS // 2):
        stream.append(list(messages(segment)))
    breaks_off = stream.path / f"{SEGMENTS // 2:012d}.avro"
    breaks_off.touch()
    assert run_stream(now).code == 1
    breaks_off.unlink()
    earlier = now.copy(root / "earlier")
    for segment in range(SEGMENTS // 2, SEGMENTS):
        stream.append(list(messages(segment)))
    stream.close()
    assert run_stream(now).code == 0
    assert run_backfill(now).code == 0
    assert run_stream_apart(now).code == 0
    shutil.copytree(now / "live", now / "joined")
    assert compact(now, "joined").code == 0
    assert any((now / "joined").rglob("shared/*.avro"))
    assert run_zoned(now).code == 0
    send_one_value(now / "client")
    return earlier, now


def run_stream(place: Place, to: str = "live", *options: str | Path) -> Ran:
    arguments = ("--spec", place.spec, "--from", place / "stream", "--to", place / to, "--watermark-delay", "0s")
    return uldp("stream", *arguments, *options)


def run_stream_apart(place: Place) -> Ran:
    return run_stream(place, "apart", "--private-to", place / "private")


def run_backfill(place: Place) -> Ran:
    return uldp("backfill", "--spec", place.spec, "--from", place / "stream", "--to", place / "batch")


def state(out: Path, private: Path | None = None) -> dict[str, Any]:
    """What readers see of results: the newest panes and estimates, and the kept records. Damaged files are left out."""
    private = private or out

    def leave_out(error: ValueError) -> None:
        return

    panes = newest(ResultsFolder(out, leave_out).panes())
    cells = {pane.key: pane.cells.tolist() for pane in panes if isinstance(pane, Statistic)}
    estimates = newest(ResultsFolder(out, leave_out).estimates())
    late: Counter[bytes] = Counter()
    paths = sorted(map(str, (private / "late").glob("*.avro")))
    held = held_twice(paths)
    for path in paths:
        with suppress(StreamError), opened(path) as file:
            late.update(each.data for part in left(packed_messages(file, path), held.get(path, ())) for each in part)
    return {
        "panes": {pane.key: (pane.accounting, pane.flags, cells.get(pane.key)) for pane in panes},
        "few": {path.parent.name for path in (private / "few").glob("*/2*/*.avro")},
        "estimates": {(each.key, each.estimator): each.tables[0].values.tolist() for each in estimates},
        "late": late,
        "rejected": Counter(
            (record.reason, *each) for record in ResultsFolder(private, leave_out).rejected() for each in record.each()
        ),
    }

"""Streams and results as they are, and as they were when half of the stream was there."""

import io
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Collection, Iterator
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
OTHER_SPEC = SPEC | {"collection": "d", "domain": {"size": 3}, "mechanism": {"name": "rr", "epsilon": 1.0}}


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
    """Twenty minutes of reports of two collections, some of them late, copied or wrong; the last windows have few."""
    began = START + segment * 20 * MINUTE
    for number in range(20 if segment < SEGMENTS - 1 else 4):
        time = began + number * MINUTE // 2
        yield build.message(build.report(100 * segment + number, number % 5, time))
        yield build.message(build.report(100 * segment + number, number % 3, time, ("d", 1)))
    published = began + 12 * MINUTE
    yield build.message(build.report(100 * segment, 0, began), published)
    yield build.message(build.report(100 * segment + 50, 1, began - 2 * HOUR), published)
    yield build.message(build.report(100 * segment + 51, 99, began), published)
    yield Message(b"no report", published)


@dataclass(frozen=True)
class Place:
    """A folder with specs and ``stream``, and what commands have made of them.

    These are the results ``live`` of a job that was resumed, with rows in ``tables/rows.duckdb``; ``apart`` of another
    one with ``--private-to private``, with rows in ``rows``; ``batch`` of a backfill; ``joined``, in which ``uldp
    compact`` has joined panes; ``merged`` from a stream and a backfill; and ``zoned``, with answers about zones.
    ``client`` is a stream of one value.
    """

    root: Path

    @property
    def specs(self) -> list[str | Path]:
        return [each for name in ("c", "d") for each in ("--spec", self.root / f"{name}.yaml")]

    def __truediv__(self, name: str) -> Path:
        return self.root / name

    def copy(self, root: Path, names: Collection[str] | None = None) -> "Place":
        """Copy all, or the specs and some folders, and let jobs know their sources and sinks there."""
        root.mkdir(exist_ok=True)
        for path in self.root.iterdir():
            if path.is_dir() and (names is None or path.name in names):
                shutil.copytree(path, root / path.name)
            elif path.is_file():
                shutil.copy2(path, root)
        for path in [*root.glob("*/job.json"), *root.glob("*/merged.json")]:
            path.write_text(path.read_text().replace(str(self.root), str(root)))
        return Place(root)


def compact(place: Place, out: str) -> Ran:
    """Join all panes but those of the newest windows, whose day is not over."""
    with mock.patch("uldp.pipelines.results.compact._DAY", 0):
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


def write_specs(place: Place) -> None:
    for spec in (SPEC, OTHER_SPEC):
        (place / f"{spec['collection']}.yaml").write_text(yaml.safe_dump(spec))


@contextmanager
def stop_after_half(stream: LocalStream) -> Iterator[None]:
    """Send half of the segments; a job stops behind them, at one that is empty and that nobody finds later."""
    for segment in range(SEGMENTS // 2):
        stream.append(list(messages(segment)))
    breaks_off = stream.path / f"{SEGMENTS // 2:012d}.avro"
    breaks_off.touch()
    yield
    breaks_off.unlink()


def prepare(root: Path) -> tuple[Place, Place]:
    """Make a place, and return what was there earlier, and what is there now."""
    now = Place(root / "now")
    now.root.mkdir()
    write_specs(now)
    stream = LocalStream.create(now / "stream", simulated_clock=True)
    (now / "tables").mkdir()
    with stop_after_half(stream):
        assert run_stream_with_rows(now).code == 1
        assert run_stream_apart(now).code == 1
    assert run_backfill(now).code == 0
    earlier = now.copy(root / "earlier")
    shutil.rmtree(now / "batch")
    for segment in range(SEGMENTS // 2, SEGMENTS):
        stream.append(list(messages(segment)))
    stream.close()
    for run in (run_stream_with_rows, run_stream_apart, run_backfill):
        assert run(now).code == 0
    shutil.copytree(now / "live", now / "joined")
    assert compact(now, "joined").code == 0
    assert len(list((now / "joined" / "counts").iterdir())) < len(list((now / "live" / "counts").iterdir()))
    assert merge(now, "merged").code == 0
    assert run_zoned(now).code == 0
    send_one_value(now / "client")
    return earlier, now


def run_stream(place: Place, to: str = "live", *options: str | Path) -> Ran:
    arguments = (*place.specs, "--from", place / "stream", "--to", place / to, "--watermark-delay", "0s", "--keep-ids")
    return uldp("stream", *arguments, *options)


def run_stream_with_rows(place: Place) -> Ran:
    return run_stream(place, "live", "--estimates-to", f"duckdb:{place / 'tables' / 'rows.duckdb'}")


def run_stream_apart(place: Place) -> Ran:
    rows = f"parquet:{place / 'rows'}"
    return run_stream(place, "apart", "--private-to", place / "private", "--estimates-to", rows)


def run_backfill(place: Place, to: str = "batch", source: str = "stream") -> Ran:
    return uldp("backfill", *place.specs, "--from", place / source, "--to", place / to, "--keep-ids")


def merge(place: Place, out: str, *folders: str) -> Ran:
    return uldp("merge", *(place / each for each in folders or ("live", "batch")), "--to", place / out)


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
        "few": {path.name.split(".")[1] for path in (private / "few").glob("*.avro")},
        "estimates": {(each.key, each.estimator): each.tables[0].values.tolist() for each in estimates},
        "late": late,
        "rejected": Counter(
            (record.reason, *each) for record in ResultsFolder(private, leave_out).rejected() for each in record.each()
        ),
    }

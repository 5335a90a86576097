"""What many windows cost: a backfill with estimates and files, and to show its results.

    python -m benchmarks.panes

Five collections of four values have 5,000 windows of a minute each, and some 100 reports a window: 25,000 panes, each
with an estimate. Then one collection has a year of windows of an hour. Each command runs in a process of its own, with
the start of the interpreter, and times are those of the processor. Bytes are those of the disk's blocks.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.rows import Row, print_table
from uldp.mechanisms.catalog import build_protocol
from uldp.schemas.codec.columnar import Layout, report_schema
from uldp.schemas.codec.encode import encode_columns
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.message_files import write_messages

#: Reports of a window, on average; and windows of a file of the archive.
REPORTS, AT_ONCE = 100, 100
START = 1_767_225_600_000
MINUTE, HOUR = 60_000, 3_600_000

_SPEC = """collection: answers-{number}
version: 1
domain: {{size: 4}}
sensitive: all
mechanism: {{name: rr, epsilon: 1.0}}
window: {{size: {minutes}m}}
limits: {{min_reports: 1}}
"""


class Taken(NamedTuple):
    """What a command takes: seconds of the processor, and the peak of its resident memory in megabytes."""

    seconds: float
    megabytes: float


def write_archive(folder: Path, collections: int, windows: int, size: int) -> list[str]:
    """Write specs, and an archive of single reports of so many windows of ``size`` ms; returns the options of a job."""
    (folder / "archive").mkdir()
    paths = [folder / f"{number}.yaml" for number in range(collections)]
    for number, path in enumerate(paths):
        path.write_text(_SPEC.format(number=number, minutes=size // MINUTE), encoding="utf-8")
    specs = [CollectionSpec.load(path) for path in paths]
    rng = np.random.default_rng(1)
    for first in range(0, windows, AT_ONCE):
        messages: list[Message] = []
        for spec in specs:
            n = REPORTS * min(AT_ONCE, windows - first)
            times = START + first * size + rng.integers(0, size * n // REPORTS, n)
            values = np.minimum(rng.geometric(0.4, n) - 1, spec.size - 1)
            payloads = build_protocol(spec).mechanism.perturb(values, rng)
            ids = rng.integers(0, 1 << 64, (n, 2), np.uint64)
            data = encode_columns(Layout.of(report_schema(), *spec.key, None), ids, times, payloads)
            messages += map(Message, data, times.tolist())
        with (folder / "archive" / f"{first:08d}.avro").open("wb") as file:
            write_messages(file, [messages[index] for index in rng.permutation(len(messages))])
    return [part for path in paths for part in ("--spec", str(path))] + ["--from", str(folder / "archive")]


def uldp(*arguments: str) -> Taken:
    """Run ``uldp`` in a process of its own, and drop what it prints."""
    run = [sys.executable, "-c", "from uldp.pipelines.cli import main; main()", *arguments]
    process = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"uldp {' '.join(arguments)} ended with exit code {process.returncode}")
    return Taken(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6)


def stored(out: Path) -> tuple[int, int]:
    """Return the number of files below a folder, and their bytes as blocks of the disk."""
    files = [path for path in out.rglob("*") if path.is_file()]
    return len(files), sum(path.stat().st_blocks * 512 for path in files)


def measure(label: str, collections: int, windows: int, size: int) -> Iterator[Row]:
    """Backfill, and show all windows and the last one."""
    panes = collections * windows
    with tempfile.TemporaryDirectory() as name:
        out = Path(name, "results")
        job = write_archive(Path(name), collections, windows, size)
        taken = uldp("backfill", *job, "--to", str(out))
        files, nbytes = stored(out)
        remark = (
            f"{files:,} files, {nbytes / 1e6:.1f} MB; {1000 * taken.seconds / panes:.2f} ms a pane with its reports"
        )
        yield Row(
            "panes", f"backfill of {label}", panes * REPORTS, taken.seconds, megabytes=taken.megabytes, remark=remark
        )
        for what, options in (("show --json", ["--json"]), ("show", []), ("show --last 1", ["--last", "1"])):
            taken = uldp("show", str(out), *options)
            yield Row("panes", f"{what}, {label}", panes, taken.seconds, megabytes=taken.megabytes)


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure both; ``quick`` takes a hundredth of the windows."""
    less = 100 if quick else 1
    yield from measure(f"{25_000 // less:,} panes", 5, 5_000 // less, MINUTE)
    yield from measure("a year of hours", 1, 8_760 // less, HOUR)


if __name__ == "__main__":
    print_table(rows())

"""What the commands take: ``uldp simulate``, and ``uldp backfill`` with one worker and with two.

    python -m benchmarks.commands

Each runs in a process of its own, without the start of the interpreter; seconds are those of the clock. The archive is
what the simulation wrote: the check-ins in Manhattan, a message for each report. Workers are processes of Beam's local
runner; the memory is that of the process that runs the pipeline, which with one worker is the worker too.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.rows import Row, alone, print_table

EXAMPLE = Path(__file__).parents[1] / "examples" / "manhattan"
#: A minute of one worker, or more.
USERS = 20_000_000
TWO_WORKERS = ("--direct_num_workers=2", "--direct_running_mode=multi_processing")


def run_uldp(arguments: list[str], log: Path) -> float:
    """Run ``uldp``, with all its output in ``log``; returns the seconds that it took.

    Only in a process of its own: it never gets its output back.
    """
    from uldp.pipelines.cli import cli

    with log.open("wb") as file:
        for stream in (1, 2):  # of the workers too, which are processes of Beam's
            os.dup2(file.fileno(), stream)
    began = time.monotonic()
    cli.main(arguments, standalone_mode=False)
    return time.monotonic() - began


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Simulate an archive, and backfill it twice; ``quick`` has few users.

    Raises:
        AssertionError: if one worker and two do not give the same counts.
    """
    users = USERS // 1000 if quick else USERS
    spec = str(EXAMPLE / "spec.yaml")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stream, log = folder / "stream", folder / "log"
        simulate = ["simulate", spec, "--truth", str(EXAMPLE / "truth.csv"), "--users", str(users), "--to", str(stream)]
        seconds, megabytes = alone(run_uldp, simulate, log)
        yield Row("commands", "uldp simulate", users, seconds, megabytes=megabytes)
        backfill = ["backfill", "--spec", spec, "--from", str(stream), "--to"]
        seconds, megabytes = alone(run_uldp, [*backfill, str(folder / "one")], log)
        yield Row("commands", "uldp backfill, one worker", users, seconds, megabytes=megabytes)
        label = "uldp backfill, two workers"
        try:
            both, megabytes = alone(run_uldp, [*backfill, str(folder / "two"), *TWO_WORKERS], log)
        except Exception as error:  # of Beam's runner, whatever it is
            yield Row("commands", label, users, None, remark=f"failed: {str(error).strip().splitlines()[-1][:200]}")
            return
        assert counts(folder / "two") == counts(folder / "one"), "two workers count differently"
        remark = f"{seconds / both:.2f} times as fast as one"
        yield Row("commands", label, users, both, megabytes=megabytes, remark=remark)


def counts(results: Path) -> dict[Path, bytes]:
    """Return every file of support counts: equal counts give equal bytes."""
    return {path.relative_to(results): path.read_bytes() for path in sorted((results / "counts").rglob("*.avro"))}


if __name__ == "__main__":
    print_table(rows())

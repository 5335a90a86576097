"""What the commands take: ``uldp simulate``, and ``uldp backfill`` with one worker and with two.

    python -m benchmarks.commands

Each runs in a process of its own, without the start of the interpreter. The archive is what the simulation wrote: the
check-ins in Manhattan, a message for each report. Workers are processes of Beam's local runner; the memory is that of
the process that runs the pipeline, which with one worker is the worker too. Seconds are those of the processor, but for
two workers, which the clock compares with one. Both naive graphs run before the backfill and behind it. Their messages
come from memory, while the command reads files, removes copies, estimates and writes results.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import Row, alone, clock, print_table

EXAMPLE = Path(__file__).parents[1] / "examples" / "manhattan"
#: A minute of one worker, or more.
USERS = 12_000_000
#: The reports of the naive graphs.
NAIVE = "few symbols"
TWO_WORKERS = ("--direct_num_workers=2", "--direct_running_mode=multi_processing")


class Taken(NamedTuple):
    """What a command takes: seconds of the processor, of all threads of its process, and of the clock."""

    seconds: float
    elapsed: float


def run_uldp(arguments: list[str], log: Path) -> Taken:
    """Run ``uldp``, with all its output in ``log``; returns what it took.

    Only in a process of its own: it never gets its output back.
    """
    from uldp.pipelines.cli import cli

    with log.open("wb") as file:
        for stream in (1, 2):  # of the workers too, which are processes of Beam's
            os.dup2(file.fileno(), stream)
    began = Taken(clock(), time.monotonic())
    cli.main(arguments, standalone_mode=False)
    return Taken(clock() - began.seconds, time.monotonic() - began.elapsed)


def naive_rates(share: float) -> tuple[float, float]:
    """Return how many reports a second both naive graphs count, each in a process of its own."""
    # Imported here, because it imports Beam: the processes that run commands must not have it beforehand.
    from benchmarks.throughput import build, naive_graphs, run_alone

    reports = build(NAIVE, share).reports
    one, other = (reports / alone(run_alone, label, share)[0].seconds for label in naive_graphs("symbols"))
    return one, other


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Simulate an archive, and backfill it twice; ``quick`` has few users.

    Raises:
        AssertionError: if one worker and two do not give the same counts.
    """
    users, share = (USERS // 1000, 0.1) if quick else (USERS, 1.0)
    spec = str(EXAMPLE / "spec.yaml")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stream, log = folder / "stream", folder / "log"
        simulate = ["simulate", spec, "--truth", str(EXAMPLE / "truth.csv"), "--users", str(users), "--to", str(stream)]
        taken, megabytes = alone(run_uldp, simulate, log)
        yield Row("commands", "uldp simulate", users, taken.seconds, megabytes=megabytes)
        backfill = ["backfill", "--spec", spec, "--from", str(stream), "--to"]
        before = naive_rates(share)
        one, megabytes = alone(run_uldp, [*backfill, str(folder / "one")], log)
        naive, keyed = (statistics.mean(rates) for rates in zip(before, naive_rates(share), strict=True))
        rate = users / one.seconds
        yield Row(
            "commands", "uldp backfill, one worker", users, one.seconds, rate / naive, rate / keyed, megabytes=megabytes
        )
        label = "uldp backfill, two workers"
        try:
            both, megabytes = alone(run_uldp, [*backfill, str(folder / "two"), *TWO_WORKERS], log)
        except Exception as error:  # of Beam's runner, whatever it is
            yield Row("commands", label, users, None, remark=f"failed: {str(error).strip().splitlines()[-1][:200]}")
            return
        assert counts(folder / "two") == counts(folder / "one"), "two workers count differently"
        remark = f"by the clock; {one.elapsed / both.elapsed:.2f} times as fast as one"
        yield Row("commands", label, users, both.elapsed, megabytes=megabytes, remark=remark)


def counts(results: Path) -> dict[Path, bytes]:
    """Return every file of support counts: equal counts give equal bytes."""
    return {path.relative_to(results): path.read_bytes() for path in sorted((results / "counts").rglob("*.avro"))}


if __name__ == "__main__":
    print_table(rows())

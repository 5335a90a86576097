"""What the commands take: ``uldp simulate``, and ``uldp backfill``.

    python -m benchmarks.commands

Each runs in a process of its own, without the start of the interpreter. The archive is what the simulation wrote: the
check-ins in Manhattan, a message for each report. Both naive graphs run before the backfill and behind it. Their
messages come from memory, while the command reads files, removes copies, estimates and writes results.
"""

import os
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.rows import Row, alone, clock, print_table

EXAMPLE = Path(__file__).parents[1] / "examples" / "manhattan"
#: Some ten seconds of a backfill.
USERS = 12_000_000
#: The reports of the naive graphs.
NAIVE = "few symbols"


def run_uldp(arguments: list[str], log: Path) -> float:
    """Run ``uldp``, with all its output in ``log``; returns the seconds of the processor, of all threads.

    Only in a process of its own: it never gets its output back.
    """
    from uldp.pipelines.cli import cli

    with log.open("wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    began = clock()
    cli.main(arguments, standalone_mode=False)
    return clock() - began


def naive_rates(share: float) -> tuple[float, float]:
    """Return how many reports a second both naive graphs count, each in a process of its own."""
    # Imported here, because it imports Beam: the processes that run commands must not have it beforehand.
    from benchmarks.throughput import build, naive_graphs, run_alone

    reports = build(NAIVE, share).reports
    one, other = (reports / alone(run_alone, label, share)[0].seconds for label in naive_graphs("symbols"))
    return one, other


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Simulate an archive, and backfill it; ``quick`` has few users."""
    users, share = (USERS // 1000, 0.1) if quick else (USERS, 1.0)
    spec = str(EXAMPLE / "spec.yaml")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stream, log = folder / "stream", folder / "log"
        simulate = ["simulate", spec, "--truth", str(EXAMPLE / "truth.csv"), "--users", str(users), "--to", str(stream)]
        seconds, megabytes = alone(run_uldp, simulate, log)
        yield Row("commands", "uldp simulate", users, seconds, megabytes=megabytes)
        before = naive_rates(share)
        seconds, megabytes = alone(
            run_uldp, ["backfill", "--spec", spec, "--from", str(stream), "--to", str(folder / "results")], log
        )
        naive, keyed = (statistics.mean(rates) for rates in zip(before, naive_rates(share), strict=True))
        rate = users / seconds
        yield Row("commands", "uldp backfill", users, seconds, rate / naive, rate / keyed, megabytes=megabytes)


if __name__ == "__main__":
    print_table(rows())

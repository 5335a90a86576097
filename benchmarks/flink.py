"""How fast a Flink cluster on this machine works off what a Kafka topic holds, with one slot and with two.

    python -m benchmarks.flink

Needs Java 17, Maven and the extra ``[kafka]``; what it downloads is that of the tests. A topic of four partitions holds
what ``uldp simulate`` has sent, with deduplication to be done. ``uldp stream`` follows it on the cluster, and beside it
the local runner follows the same reports in a local stream. Seconds are those of the clock, from the first pane to the
one that holds the last report: what it takes to start a job is left out. Beside them are the microseconds of the
processor for a report, of the TaskManagers and of their Python processes, which other work changes less.

JobManager, TaskManagers, their Python processes and the broker share the machine's cores, so two slots are twice as
fast only where there are cores for both. How they scale where each adds a part of a core is seen where all TaskManagers
and Python processes together are held to ``SHARE`` of a core for each slot of the job.
"""

import logging
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import yaml

from benchmarks.cores import NotPermittedError, held_to
from benchmarks.processes import seconds_of, session
from benchmarks.rows import Row, print_table
from benchmarks.workloads import collection_specs
from tests.cluster.daemons import Daemon, wait_until
from tests.cluster.flink import Flink
from tests.cluster.following import Results, following, run_uldp, uldp
from tests.cluster.kafka import KafkaBroker

PARTITIONS, REPEAT = 4, 3
#: Reports, and how many of them are in a message.
CASES = {"single reports": (2_000_000, 1), "batches of 1,000": (10_000_000, 1000)}
#: Of a core, for a slot that is held to it: little enough that two cores have as much again for all the rest.
SHARE = 0.5


@dataclass(frozen=True)
class Way:
    """How a stream is followed.

    Attributes:
        slots: On how many slots; 0 is the local runner.
        share: Of a core, for each slot of the job, shared by all; None for what there is.
        base: The label of the way that it is compared with.
    """

    slots: int
    share: float | None
    base: str


WAYS = {
    "local runner": Way(0, None, "local runner"),
    "one slot": Way(1, None, "local runner"),
    "two slots": Way(2, None, "local runner"),
    "one slot on half a core": Way(1, SHARE, "one slot on half a core"),
    "two slots on half a core each": Way(2, SHARE, "one slot on half a core"),
}
#: Not as often as tests have it.
AS_USERS_DO = ("--checkpointing_interval=10000", "--max_bundle_time_mills=500")
SECONDS = 600.0


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Follow each stream in each way, in turn; ``quick`` does so once, with few reports."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spec, truth = _write_inputs(folder)
        with KafkaBroker(folder / "kafka") as broker, Flink(folder / "flink") as flink:
            for number, (case, (users, batch)) in enumerate(CASES.items()):
                users //= 10 if quick else 1
                topic, archive = broker.create(f"reports-{number}", PARTITIONS, retention_ms="-1"), folder / case
                for to in (topic, archive):
                    sent = ["--truth", truth, "--users", users, "--to", to]
                    run_uldp("simulate", spec, *sent, *(["--batch-size", batch] if batch > 1 else []))
                taken: defaultdict[str, list[_Taken]] = defaultdict(list)
                for turn in range(1 if quick else REPEAT):
                    for label, way in WAYS.items():
                        out = folder / f"{case} {label} {turn}"
                        try:
                            with _job(flink, way, topic if way.slots else archive, spec, out):
                                taken[label].append(_follow(flink, Results(out), users))
                        except NotPermittedError as error:
                            print(f"        {label}: not run, for want of permission ({error})", file=sys.stderr)
                medians = {
                    label: _Taken(*map(statistics.median, zip(*turns, strict=True))) for label, turns in taken.items()
                }
                for label, median in medians.items():
                    base = WAYS[label].base
                    remark = f"{medians[base].clock / median.clock:.2f} times as fast as {base}"
                    if WAYS[label].slots:
                        remark += f"; {median.jvm:.2f} us in the JVMs, {median.python:.2f} us in Python"
                    yield Row("flink", f"{case}, {label}", users, users * median.clock / 1e6, remark=remark)


@contextmanager
def _job(flink: Flink, way: Way, source: object, spec: Path, out: Path) -> Iterator[None]:
    """Follow a source on some slots of the cluster; on none of them, with the local runner."""
    with ExitStack() as stack:
        if not way.slots:
            command = uldp("stream", "--spec", spec, "--from", source, "--to", out)
            stack.enter_context(Daemon(command, out.with_suffix(".log")))
        else:
            if way.share is not None:
                # Of two TaskManagers, a job on one slot leaves one idle.
                held = [*flink.cluster.task_managers, flink.workers.pid]
                stack.enter_context(held_to(way.slots * way.share, held))
            slots = f"--parallelism={way.slots}"
            stack.enter_context(following(flink, str(source), spec, out, slots, *AS_USERS_DO))
        yield


class _Taken(NamedTuple):
    """What a report took, in microseconds: of the clock, and of the processor in JVMs and in Python."""

    clock: float
    jvm: float
    python: float


def _follow(flink: Flink, results: Results, n: int) -> _Taken:
    """Return what a report takes once the first are counted, until ``n`` are; from the start if one pane has all."""
    started = _spent(flink)
    first = wait_until(lambda: results.total().received, "there is a pane", SECONDS)
    first, began = (first, _spent(flink)) if first < n else (0, started)
    wait_until(lambda: results.total().received >= n, "all is counted", SECONDS)
    return _Taken(*((end - start) / (n - first) * 1e6 for start, end in zip(began, _spent(flink), strict=True)))


def _spent(flink: Flink) -> tuple[float, float, float]:
    """Return the seconds of the clock, of the TaskManagers, and of the Python processes of all jobs."""
    python = seconds_of(session(flink.workers.pid))
    return time.monotonic(), seconds_of(flink.cluster.task_managers), python


def _write_inputs(folder: Path) -> tuple[Path, Path]:
    """Write a spec whose windows of an hour fire every second, and a truth in which all values are as frequent."""
    (described,) = collection_specs("urr", 1, 625)
    fields = described.model_dump(mode="json", exclude_none=True)
    fields["window"]["early_every"] = "1s"
    spec, truth = folder / "spec.yaml", folder / "truth.csv"
    spec.write_text(yaml.safe_dump(fields), encoding="utf-8")
    truth.write_text(
        "value,tag,weight\n" + "".join(f"{value},,1\n" for value in range(described.size)), encoding="utf-8"
    )
    return spec, truth


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    print_table(rows())

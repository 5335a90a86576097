"""How fast a Flink cluster on this machine works off what a Kafka topic holds, with one slot and with two.

    python -m benchmarks.flink

Needs Java 17, Maven and the extra ``[kafka]``; what it downloads is that of the tests. A topic of four partitions holds
what ``uldp simulate`` has sent, with deduplication to be done. ``uldp stream`` follows it on the cluster, and beside it
the local runner follows the same reports in a local stream. Seconds are those of the clock, from the first pane to the
one that holds the last report: what it takes to start a job is left out. JobManager, TaskManagers, their Python
processes and the broker share the machine's cores, so two slots are twice as fast only where there are cores for both.
"""

import logging
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import yaml

from benchmarks.rows import Row, print_table
from benchmarks.workloads import collection_specs
from tests.cluster.flink import Daemon, Flink, wait_until
from tests.cluster.following import Results, following, run_uldp, uldp
from tests.cluster.kafka import KafkaBroker

PARTITIONS, REPEAT = 4, 3
#: Reports, and how many of them are in a message.
CASES = {"single reports": (2_000_000, 1), "batches of 1,000": (10_000_000, 1000)}
#: On how many slots.
WAYS = {"local runner": 0, "one slot": 1, "two slots": 2}
#: Not as often as tests have it.
AS_USERS_DO = ("--checkpointing_interval=10000", "--max_bundle_time_mills=500")
SECONDS = 600.0


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Follow each stream in each way, in turn; ``quick`` does so once, with few reports."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spec, truth = _write_inputs(folder)
        with KafkaBroker(folder / "kafka") as broker, Flink(folder / "flink") as flink:
            for number, (label, (users, batch)) in enumerate(CASES.items()):
                users //= 10 if quick else 1
                topic, archive = broker.create(f"reports-{number}", PARTITIONS, retention_ms="-1"), folder / label
                for to in (topic, archive):
                    sent = ["--truth", truth, "--users", users, "--to", to]
                    run_uldp("simulate", spec, *sent, *(["--batch-size", batch] if batch > 1 else []))
                taken = defaultdict(list)
                for turn in range(1 if quick else REPEAT):
                    for way, slots in WAYS.items():
                        out = folder / f"{label} {way} {turn}"
                        with _job(flink, slots, topic if slots else archive, spec, out):
                            taken[way].append(users / _rate(Results(out), users))
                medians = {way: statistics.median(seconds) for way, seconds in taken.items()}
                for way, seconds in medians.items():
                    remark = f"{medians['local runner'] / seconds:.2f} times as fast as the local runner"
                    yield Row("flink", f"{label}, {way}", users, seconds, remark=remark)


def _job(flink: Flink, slots: int, source: object, spec: Path, out: Path) -> AbstractContextManager[object]:
    """Follow a source on some slots of the cluster; on none of them, with the local runner."""
    if slots:
        return following(flink, str(source), spec, out, f"--parallelism={slots}", *AS_USERS_DO)
    return Daemon(uldp("stream", "--spec", spec, "--from", source, "--to", out), out.with_suffix(".log"))


def _rate(results: Results, n: int) -> float:
    """Return how many reports a second are counted, once the first are, until ``n`` are."""
    first = wait_until(lambda: results.total().received, "there is a pane", SECONDS)
    began = time.monotonic()
    wait_until(lambda: results.total().received >= n, "all is counted", SECONDS)
    return (n - first) / (time.monotonic() - began)


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

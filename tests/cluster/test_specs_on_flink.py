"""Specs that come, change and retire while a Flink cluster counts by them, and while its workers are killed."""

import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.cluster.daemons import Daemon, wait_until
from tests.cluster.flink import Flink
from tests.cluster.following import OFTEN, Results, run_uldp
from tests.cluster.kafka import KafkaBroker, Sender
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.flags import Flag
from uldp.schemas.framing import report_store
from uldp.schemas.pane import PaneKind
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.moments import milliseconds_of
from uldp.transforms.io.kafka.topic import KafkaTopic

PARTITIONS, SIZE, EACH = 4, 8_000, 3
COLLECTIONS = ("steady", "old", "one", "two")
SPEC = (
    f"collection: %s\nversion: 1\ndomain: {{size: {SIZE}}}\nmechanism: {{name: identity}}\nlimits: {{min_reports: 1}}\n"
)
FIXED = "window: {size: 10s, early_every: 5s, allowed_lateness: 30m}\n"
SLIDING = "window: {size: 10s, period: 5s, allowed_lateness: 30m}\n"
#: What becomes of the folder while the job runs, with a kill each: the name of a file and its content.
CHANGES = (
    ("one", SPEC % "one" + FIXED),
    ("steady", SPEC % "steady" + FIXED + "estimator: [empirical, norm-sub]\n"),
    ("two", SPEC % "two" + SLIDING),
    ("old", SPEC % "old" + FIXED + "retired: true\n"),
    ("steady", "collection: steady\nversion: 1\nestimator: {"),
)
#: The command with seals that are nearer to each other, so that the test takes no hour.
MAIN = (
    "from uldp.pipelines.jobs.sealed_specs import SealedSpecs; SealedSpecs.EVERY_MS, SealedSpecs.AT_ONCE = 3000, 1.0\n"
    "from uldp.pipelines.cli import main; main()"
)


def put(specs: Path, name: str, content: str) -> None:
    (specs / f".{name}").write_text(content, encoding="utf-8")
    (specs / f".{name}").replace(specs / f"{name}.yaml")


class Devices(threading.Thread):
    """Send reports to all collections until they are stopped: each has a symbol of its own, and some come twice."""

    def __init__(self, topic: KafkaTopic) -> None:
        super().__init__(daemon=True)
        self._sender, self._randomness = Sender(topic), np.random.default_rng(11)
        self._stopped, self.sent = threading.Event(), 0

    def run(self) -> None:
        again: list[bytes] = []
        while not self._stopped.wait(0.25):
            now, symbols = time.time_ns() // 1_000_000, range(self.sent, self.sent + EACH)
            fresh = [
                Report(name, 1, self._randomness.bytes(16), now, symbol).encode()
                for name in COLLECTIONS
                for symbol in symbols
            ]
            for body in [*fresh, *again]:
                self._sender.send(int(self._randomness.integers(PARTITIONS)), [Message(body, now)])
            again, self.sent = fresh[:: EACH - 1], self.sent + EACH

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def messages_of(topic: KafkaTopic) -> Iterator[tuple[bytes, int]]:
    """Read what a topic holds: each message, and when the broker took it."""
    consumer = Consumer({"bootstrap.servers": topic.servers, "group.id": "truth", "enable.auto.commit": False})
    try:
        for partition in range(PARTITIONS):
            offsets = consumer.get_watermark_offsets(TopicPartition(topic.name, partition), timeout=10)
            assert offsets is not None
            consumer.assign([TopicPartition(topic.name, partition, 0)])
            left = offsets[1]
            while left:
                read = consumer.consume(left, timeout=10)
                left -= len(read)
                for message in read:
                    value = message.value()
                    assert value is not None
                    yield value, message.timestamp()[1]
    finally:
        consumer.close()


@contextmanager
def following(flink: Flink, topic: KafkaTopic, folder: Path) -> Iterator[str]:
    """Run ``uldp stream --specs`` on all of a cluster; gives the id of the job, and cancels it at the end."""
    command = [
        sys.executable,
        "-c",
        MAIN,
        "stream",
        "--specs",
        "specs",
        "--from",
        str(topic),
        "--to",
        str(folder / "out"),
    ]
    command += ["--watermark-delay", "3s", *flink.arguments, f"--parallelism={flink.size}", *OFTEN]
    with Daemon(command, folder / "out.log") as submitter:
        job = submitter.wait_until(flink.cluster.running_jobs, f"{topic} is followed", seconds=180)[0]
        try:
            yield job
        finally:
            flink.cluster.cancel(job)


def kept(out: Path, collection: str) -> CollectionSpec | None:
    path = out / "specs" / f"{collection}-v1" / "spec.yaml"
    return CollectionSpec.load(path) if path.exists() else None


def opens_and_closes(out: Path, collection: str) -> tuple[int, int]:
    """The publish times, in milliseconds, between which the reports of a collection count."""
    spec = kept(out, collection)
    assert spec is not None
    opens = 0 if spec.opens is None else milliseconds_of(spec.opens)
    return opens, 1 << 62 if spec.closes is None else milliseconds_of(spec.closes)


def has_taken(out: Path, name: str, content: str) -> bool:
    """Whether the results say that a change is in force, or that it is refused."""
    if content[-1] == "{":
        return any(Flag.SPEC_REFUSED in pane.flags for pane in Results(out).panes())
    spec = kept(out, name)
    if spec is None:
        return False
    return spec.closes is not None if "retired" in content else "norm-sub" not in content or len(spec.estimators) == 2


@pytest.mark.nightly
def test_counts_are_exact_while_specs_come_and_go(broker: KafkaBroker, flink: Flink, tmp_path: Path) -> None:
    specs, out, cluster = tmp_path / "specs", tmp_path / "out", flink.cluster
    results = Results(out)
    specs.mkdir()
    for name in ("steady", "old"):
        put(specs, name, SPEC % name + FIXED)
    topic = broker.create("specs", PARTITIONS, retention_ms="-1", message_timestamp_type="LogAppendTime")
    devices = Devices(topic)
    with following(flink, topic, tmp_path) as job:
        devices.start()
        wait_until(results.panes, "a pane", seconds=240)
        cluster.wait_for_checkpoints(job, 1)
        for number, (name, content) in enumerate(CHANGES):
            put(specs, name, content)
            cluster.kill_task_manager(number % 2)  # while workers learn of it
            cluster.start_task_manager(number % 2)
            wait_until(partial(has_taken, out, name, content), f"{name} is taken", seconds=240)
            cluster.wait_for_checkpoints(job, 1)
        wait_until(lambda: time.time() * 1000 > opens_and_closes(out, "old")[1] + 1000, "old has closed")
        devices.stop()

        times = {name: opens_and_closes(out, name) for name in COLLECTIONS}
        counts: dict[str, Counter[int]] = defaultdict(Counter)
        rejected: Counter[tuple[str, bytes]] = Counter()
        for data, at in messages_of(topic):
            record = report_store().decode(data)[1]
            name = record["collection"]
            if at < times[name][0]:
                rejected[Reason.UNKNOWN_COLLECTION, data] += 1
            elif at >= times[name][1]:
                rejected[Reason.RETIRED_VERSION, data] += 1
            else:
                counts[name][record["payload"]] += 1
        windows = dict.fromkeys(COLLECTIONS, 1) | {"two": 2}

        def all_there() -> bool:
            panes = results.panes()
            received = sum(pane.accounting.counted + pane.accounting.duplicate for pane in panes)
            wanted = sum(windows[name] * counts[name].total() for name in COLLECTIONS)
            return received >= wanted and all(pane.pane.kind is not PaneKind.EARLY for pane in panes)

        wait_until(all_there, "all is counted in closed windows", seconds=240)
        cluster.wait_for_checkpoints(job, 1)
        assert cluster.checkpoints(job)["restored"] >= len(CHANGES)

    folder = ResultsFolder(out)
    assert Counter((each.reason, data) for each in folder.rejected() for data, _ in each.each()) == rejected
    assert {reason for reason, _ in rejected} == {Reason.UNKNOWN_COLLECTION, Reason.RETIRED_VERSION}
    panes = newest(folder.statistics())
    for name in COLLECTIONS:
        mine = [pane for pane in panes if pane.collection == name]
        expected = np.zeros(SIZE, dtype=np.int64)
        expected[[*counts[name]]] = windows[name]
        assert np.sum([pane.cells for pane in mine if pane.n], axis=0).tolist() == expected.tolist()
        copies = counts[name].total() - len(counts[name])
        assert sum(pane.accounting.duplicate for pane in mine) == windows[name] * copies
        assert copies
    assert {pane.collection for pane in panes if Flag.SPEC_REFUSED in pane.flags} == {"steady"}
    of_steady = [each for each in folder.estimates() if each.collection == "steady"]
    last = max(each.window_start for each in of_steady)
    assert {each.estimator for each in of_steady if each.window_start == last} == {"empirical", "norm-sub"}
    log = (flink.folder / "workers.log").read_text(encoding="utf-8", errors="replace")
    assert "steady.yaml: refused, the spec before stays in force: line 3:" in log
    assert "one.yaml: new spec of one-v1, takes reports published from" in log

    # A backfill of the topic by the specs that the results keep counts the same, byte for byte.
    arguments = [each for name in COLLECTIONS for each in ("--spec", out / "specs" / f"{name}-v1" / "spec.yaml")]
    run_uldp("backfill", *arguments, "--from", topic, "--to", tmp_path / "whole")
    whole = newest(ResultsFolder(tmp_path / "whole").statistics())
    assert {(pane.key, pane.cells.tobytes()) for pane in whole if pane.n} == {
        (pane.key, pane.cells.tobytes()) for pane in panes if pane.n
    }

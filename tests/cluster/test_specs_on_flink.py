"""Specs that come, change and retire as a job on Flink is stopped and submitted again, and its workers are killed."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.cluster.daemons import Daemon, wait_until
from tests.cluster.flink import Flink
from tests.cluster.following import OFTEN, Results, run_uldp, uldp
from tests.cluster.kafka import KafkaBroker, Sender
from tests.downloads import ROOT
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.framing import report_store
from uldp.schemas.pane import PaneKind
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import milliseconds_of
from uldp.transforms.io.kafka.topic import KafkaTopic

PARTITIONS, SIZE, EACH = 4, 8_000, 3
COLLECTIONS = ("steady", "old", "one", "two")
SPEC = (
    f"collection: %s\nversion: 1\ndomain: {{size: {SIZE}}}\nmechanism: {{name: identity}}\nlimits: {{min_reports: 1}}\n"
)
FIXED = "window: {size: 10s, early_every: 5s, allowed_lateness: 30m}\n"
SLIDING = "window: {size: 10s, period: 5s, allowed_lateness: 30m}\n"
#: What becomes of the folder between two submissions: the names of files and their content.
CHANGES: tuple[dict[str, str], ...] = (
    {"one": SPEC % "one" + FIXED, "steady": SPEC % "steady" + FIXED + "estimator: [empirical, norm-sub]\n"},
    {
        "two": SPEC.replace("identity", "rr, epsilon: 2") % "two" + SLIDING,
        "old": SPEC % "old" + FIXED + "retired: true\n",
    },
)
#: Stops a job with a savepoint, and submits it again from there.
STOP = ROOT / "deploy" / "flink" / "stop.sh"


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


def command(flink: Flink, topic: KafkaTopic, folder: Path) -> list[str]:
    """``uldp stream --specs`` on all of a cluster."""
    read = ["--specs", folder / "specs", "--from", topic, "--to", folder / "out", "--watermark-delay", "3s"]
    return uldp("stream", *read, *flink.arguments, f"--parallelism={flink.size}", *OFTEN)


@contextmanager
def submitted(flink: Flink, arguments: list[str], log: Path) -> Iterator[str]:
    """Submit a job, perhaps in place of one that runs; gives its id, and cancels it at the end if it still runs."""
    cluster = flink.cluster
    before = set(cluster.running_jobs())
    with Daemon(arguments, log) as submitter:

        def new() -> set[str]:
            return set(cluster.running_jobs()) - before

        (job,) = submitter.wait_until(new, "the job runs", seconds=240)
        try:
            yield job
        finally:
            if job in cluster.running_jobs():
                cluster.cancel(job)


def opens_and_closes(out: Path, collection: str) -> tuple[int, int]:
    """The publish times, in milliseconds, between which the reports of a collection count."""
    spec = CollectionSpec.load(out / "specs" / f"{collection}-v1" / "spec.yaml")
    opens = 0 if spec.opens is None else milliseconds_of(spec.opens)
    return opens, 1 << 62 if spec.closes is None else milliseconds_of(spec.closes)


def has_passed(moment: int) -> bool:
    return time.time_ns() // 1_000_000 > moment


@pytest.mark.nightly
def test_counts_are_exact_when_specs_come_and_go(broker: KafkaBroker, flink: Flink, tmp_path: Path) -> None:
    specs, out, cluster = tmp_path / "specs", tmp_path / "out", flink.cluster
    results = Results(out)
    specs.mkdir()
    for name in ("steady", "old"):
        put(specs, name, SPEC % name + FIXED)
    topic = broker.create("specs", PARTITIONS, retention_ms="-1", message_timestamp_type="LogAppendTime")
    devices, arguments = Devices(topic), command(flink, topic, tmp_path)
    with ExitStack() as stack:
        job = stack.enter_context(submitted(flink, arguments, tmp_path / "0.log"))
        devices.start()
        wait_until(results.panes, "a pane", seconds=240)
        cluster.wait_for_checkpoints(job, 1)
        for number, changes in enumerate(CHANGES):
            cluster.kill_task_manager(number)
            cluster.start_task_manager(number)
            cluster.wait_for_checkpoints(job, 2)
            for name, content in changes.items():
                put(specs, name, content)
            again = [str(STOP), cluster.master, job, *arguments]
            job = stack.enter_context(submitted(flink, again, tmp_path / f"{number + 1}.log"))
            cluster.wait_for_checkpoints(job, 1)
            cluster.kill_task_manager(number)  # before what is new opens
            cluster.start_task_manager(number)
            cluster.wait_for_checkpoints(job, 1)
            opens = max(opens_and_closes(out, name)[0] for name in changes)
            wait_until(partial(has_passed, opens), "what is new has opened", seconds=90)
            cluster.kill_task_manager(1 - number)
            cluster.start_task_manager(1 - number)
            cluster.wait_for_checkpoints(job, 1)
        wait_until(partial(has_passed, opens_and_closes(out, "old")[1] + 5000), "old has closed", seconds=90)
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
        assert cluster.checkpoints(job)["restored"] >= 2

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
    of_steady = [each for each in folder.estimates() if each.collection == "steady"]
    last = max(each.window_start for each in of_steady)
    assert {each.estimator for each in of_steady if each.window_start == last} == {"empirical", "norm-sub"}
    said = (tmp_path / "1.log").read_text(encoding="utf-8")
    assert "one.yaml: new spec of one-v1, takes reports published from" in said
    assert "specs: is read at submission; to change specs, stop the job" in said

    # A backfill of the topic by the specs that the results keep counts the same, byte for byte.
    kept = [each for name in COLLECTIONS for each in ("--spec", out / "specs" / f"{name}-v1" / "spec.yaml")]
    run_uldp("backfill", *kept, "--from", topic, "--to", tmp_path / "whole")
    whole = newest(ResultsFolder(tmp_path / "whole").statistics())
    assert {(pane.key, pane.cells.tobytes()) for pane in whole if pane.n} == {
        (pane.key, pane.cells.tobytes()) for pane in panes if pane.n
    }

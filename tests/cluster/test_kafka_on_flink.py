"""A topic of a real broker, followed by a real Flink cluster whose TaskManagers are killed: every report once."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.utils.timestamp import MAX_TIMESTAMP

from pipelines.cluster import build, cluster_options
from pipelines.outputs import prepare_results
from pipelines.results import newest, read_counts
from schemas.collection import CollectionSpec
from schemas.records import Accounting, Message, PaneKind, Report, SupportCounts
from tests.cluster.flink import FlinkCluster, JobServer, WorkerPool, wait_until
from tests.cluster.kafka import KafkaBroker, send
from transforms.kafka import MAX_MESSAGES, KafkaSource
from transforms.kafkatopic import KafkaTopic

PARTITIONS, BATCHES, EACH, COPIES = 4, 60, 100, 10
REPORTS = BATCHES * EACH
#: How long a message may be on its way to the broker.
DELAY_MS = 3000
#: A moment in the past, in ms.
START = 1767258000000
#: What a reader may hold open: one to ask for the brokers, one to each, and one that is being replaced.
CONNECTIONS_OF_READER = 3

#: Every report has a symbol of its own and no privacy, so that a right count is 1: a 2 is a double count, a 0 a loss.
SPEC = CollectionSpec.parse(
    {
        "collection": "one-each",
        "version": 1,
        "domain": {"size": REPORTS},
        "mechanism": {"name": "identity"},
        "window": {"size": "10s", "early_every": "1s", "allowed_lateness": "30m"},
    }
)


class Senders:
    """Sends reports as they are made, some of them twice."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic, self._sent = topic, 0
        self._randomness = np.random.default_rng(5)
        self._again: list[bytes] = []

    def send(self, batches: int) -> None:
        """Send batches of new reports with copies of those of the batch before."""
        for _ in range(batches):
            now = time.time_ns() // 1_000_000
            symbols = range(self._sent, self._sent + EACH)
            reports = [Report(*SPEC.key, self._randomness.bytes(16), now, symbol).encode() for symbol in symbols]
            self._publish(reports + self._again)
            self._again, self._sent = reports[:COPIES], self._sent + EACH

    def send_last_copies(self) -> None:
        """Send the copies of the last batch."""
        self._publish(self._again)

    def _publish(self, reports: list[bytes]) -> None:
        now = time.time_ns() // 1_000_000
        partitions = self._randomness.integers(PARTITIONS, size=len(reports))
        for partition in range(PARTITIONS):
            chosen = np.flatnonzero(partitions == partition)
            send(self._topic, partition, [Message(reports[index], now) for index in chosen])


def connections_to(servers: str) -> int:
    """How many connections are open to a port of this machine, by the kernel's table."""
    port = f":{int(servers.rpartition(':')[2]):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return sum(row[2].endswith(port) and row[3] == "01" for row in rows)


@contextmanager
def following(cluster: FlinkCluster, arguments: list[str], topic: KafkaTopic, out: Path) -> Iterator[str]:
    """Run the job that follows a topic; gives its id, and cancels it at the end."""
    pipeline = beam.Pipeline(options=cluster_options(arguments))
    build(pipeline, [SPEC], topic, str(out), watermark_delay_ms=DELAY_MS)
    result = pipeline.run()
    try:
        yield cluster.running_job()
    finally:
        result.cancel()


def panes(out: Path) -> list[SupportCounts]:
    return newest(read_counts(out)) if (out / "counts").exists() else []


def total(out: Path) -> Accounting:
    return sum((pane.accounting for pane in panes(out)), Accounting())


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    with KafkaBroker(tmp_path / "kafka") as started:
        yield started


@pytest.fixture
def flink(tmp_path: Path) -> Iterator[tuple[FlinkCluster, list[str]]]:
    folder = tmp_path / "flink"
    with (
        FlinkCluster(folder) as cluster,
        WorkerPool(folder) as workers,
        JobServer(folder, cluster.master) as server,
    ):
        runner = ["--runner=PortableRunner", f"--job_endpoint={server.endpoint}", "--parallelism=2"]
        environment = ["--environment_type=EXTERNAL", f"--environment_config={workers.endpoint}"]
        yield cluster, [*runner, *environment, "--checkpointing_interval=2000", "--max_bundle_time_mills=200"]


def test_readers_that_take_turns_read_every_message_once(broker: KafkaBroker) -> None:
    topic = broker.create("turns", 1)
    send(topic, 0, [Message(b"%d" % index, START) for index in range(3 * MAX_MESSAGES)])
    source = KafkaSource(topic, stop_at_end=True, partitions=(0,))
    readers = [source.create_reader(None, None) for _ in range(3)]
    read: list[list[bytes]] = [[] for _ in readers]
    for turn in range(3 * len(readers)):
        which = turn % len(readers)
        # It finds the consumer where another stands, with messages fetched ahead that are that one's.
        wait_until(readers[which].advance, "a chunk is there")
        read[which] += [message.data for message in readers[which].get_current().messages]
    for which, reader in enumerate(readers):  # a chunk may hold fewer than it could
        while reader.get_watermark() < MAX_TIMESTAMP:
            wait_until(reader.advance, "a chunk is there")
            read[which] += [message.data for message in reader.get_current().messages]
    assert read == [[b"%d" % index for index in range(3 * MAX_MESSAGES)]] * len(readers)


def test_every_report_is_counted_once(
    broker: KafkaBroker, flink: tuple[FlinkCluster, list[str]], tmp_path: Path
) -> None:
    (cluster, arguments), out = flink, tmp_path / "out"
    topic = broker.create("reports", PARTITIONS, retention_ms="-1")
    prepare_results(out, [SPEC])
    senders = Senders(topic)
    idle = connections_to(broker.servers)
    with following(cluster, arguments, topic, out) as job:

        def checkpoints(more: int) -> None:
            before = cluster.completed_checkpoints(job)
            wait_until(lambda: cluster.completed_checkpoints(job) >= before + more, f"{more} checkpoints", seconds=120)

        senders.send(BATCHES // 3)
        wait_until(lambda: panes(out), "a pane", seconds=120)
        for kill in range(2):
            senders.send(BATCHES // 6)
            checkpoints(1 + kill)
            cluster.kill_task_manager(kill)
            senders.send(BATCHES // 12)
            cluster.start_task_manager(kill)
            checkpoints(1)
        senders.send(BATCHES - BATCHES // 3 - 2 * (BATCHES // 6 + BATCHES // 12))
        senders.send_last_copies()
        everything = Accounting(received=REPORTS + BATCHES * COPIES, counted=REPORTS, duplicate=BATCHES * COPIES)
        wait_until(lambda: total(out).received >= everything.received, "all is counted", seconds=120)
        # No more is sent: that time goes on is known only from partitions being read to their ends.
        wait_until(lambda: all(pane.pane.kind != PaneKind.EARLY for pane in panes(out)), "windows closed")
        checkpoints(2)  # of readers that have nothing to read
        assert connections_to(broker.servers) - idle <= 2 * PARTITIONS * CONNECTIONS_OF_READER

    assert total(out) == everything
    assert np.sum([pane.counts for pane in panes(out)], axis=0).tolist() == [1] * REPORTS

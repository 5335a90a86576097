"""A topic of a real broker, followed by a real Flink cluster whose TaskManagers are killed: every report once."""

import re
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from apache_beam.utils.timestamp import MAX_TIMESTAMP

from tests.build import START
from tests.cluster.daemons import wait_until
from tests.cluster.devices import Devices, assert_counted_once, connections_to, one_each, wait_a_minute, write_spec
from tests.cluster.flink import Flink
from tests.cluster.following import Results, following, run_uldp
from tests.cluster.kafka import KafkaBroker, Sender, send
from tests.embedded import ALIKE, OF_AN_ARCHIVE, outputs_of_branches
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message
from uldp.transforms.io.kafka.reader import MAX_MESSAGES
from uldp.transforms.io.kafka.source import KafkaSource
from uldp.transforms.io.kafka.topic import KafkaTopic
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import read_messages

PARTITIONS, BATCHES, EACH = 4, 60, 100
SPEC = one_each(BATCHES * EACH)
#: What a reader may hold open: twice one to ask for the brokers and one to each, and one that is being replaced.
CONNECTIONS_OF_READER = 5


@dataclass
class Senders:
    """Sends what devices do to a topic, over all its partitions."""

    topic: KafkaTopic
    devices: Devices

    def __post_init__(self) -> None:
        self._sender = Sender(self.topic)
        self._randomness = np.random.default_rng(7)

    def send(self, batches: int) -> None:
        """Send so many batches."""
        for _ in range(batches):
            bodies, now = self.devices.batch(EACH), time.time_ns() // 1_000_000
            partitions = self._randomness.integers(PARTITIONS, size=len(bodies))
            for partition in range(PARTITIONS):
                chosen = np.flatnonzero(partitions == partition)
                self._sender.send(partition, [Message(bodies[index], now) for index in chosen])


def assert_readers_agree(topic: KafkaTopic, sent: Accounting, out: Path) -> None:
    """Assert that the commands that read late and rejected records find what was sent, each record once."""
    every = f"{sent.received:,} messages, {sent.received:,} reports"
    assert run_uldp("audit", topic, out) == f"{topic}: {every}: all accounted\n"
    run_uldp("replay", out / "rejected", "--to", out.with_name("again"))
    again = LocalStream.open(out.with_name("again"))
    assert sum(len([*read_messages(path)]) for path in again.segments()) == sent.rejected


def test_readers_that_take_turns_read_every_message_once(broker: KafkaBroker) -> None:
    topic = broker.create("turns", 1)
    send(topic, 0, [Message(b"%d" % index, START) for index in range(3 * MAX_MESSAGES)])
    source = KafkaSource(topic, stop_at_end=True)
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


@pytest.mark.parametrize(("overlap", "kills"), [(1, 1), pytest.param(5, 2, marks=pytest.mark.nightly)])
def test_task_managers_that_are_killed_lose_nothing(
    overlap: int, kills: int, broker: KafkaBroker, flink: Flink, tmp_path: Path
) -> None:
    spec = one_each(BATCHES * EACH, overlap)
    cluster, results, devices = flink.cluster, Results(tmp_path / "out"), Devices(spec)
    topic = broker.create(f"killed-{overlap}", PARTITIONS, retention_ms="-1")
    senders, idle = Senders(topic, devices), connections_to(broker.servers)
    with following(flink, str(topic), write_spec(spec, tmp_path), results.folder) as job:
        senders.send(BATCHES // 3)
        wait_until(results.panes, "a pane", seconds=120)
        # Each worker reads half of the partitions.
        read = partial(cluster.records_read, job, "{ReadKafka, Aggregate")
        wait_until(lambda: sum(read()) == PARTITIONS, "the readers are known", seconds=60)
        assert read() == [PARTITIONS // 2] * 2
        for kill in range(kills):
            senders.send(BATCHES // 6)
            cluster.wait_for_checkpoints(job, 1 + kill)
            cluster.kill_task_manager(kill)
            senders.send(BATCHES // 12)
            cluster.start_task_manager(kill)
            cluster.wait_for_checkpoints(job, 1)
        senders.send(BATCHES - BATCHES // 3 - kills * (BATCHES // 6 + BATCHES // 12))
        # No more is sent: that time goes on is known only from partitions being read to their ends.
        results.wait_for(sum([devices.sent] * overlap, Accounting()))
        cluster.wait_for_checkpoints(job, 2)  # of readers that have nothing to read
        assert connections_to(broker.servers) - idle <= 2 * PARTITIONS * CONNECTIONS_OF_READER
        # The runner without deploy/flink/src makes a state with a name of its own for each bundle of a reader.
        # The next checkpoint may remove the newest one while it is read.
        checkpointed = wait_until(partial(cluster.checkpointed, job), "a checkpoint is read")
        assert b"sdf_checkpoint" in checkpointed
        assert not re.search(rb"sdf_checkpoint:\d+:\d", checkpointed)
    assert results.total() == sum([devices.sent] * overlap, Accounting())
    assert_counted_once(devices, results, overlap)
    assert_readers_agree(topic, devices.sent, results.folder)


@pytest.mark.nightly
def test_a_broker_that_is_away_for_a_minute_is_waited_for(broker: KafkaBroker, flink: Flink, tmp_path: Path) -> None:
    cluster, results, devices = flink.cluster, Results(tmp_path / "out"), Devices(SPEC)
    topic = broker.create("away", PARTITIONS, retention_ms="-1")
    senders = Senders(topic, devices)
    with following(flink, str(topic), write_spec(SPEC, tmp_path), results.folder) as job:
        senders.send(BATCHES // 2)
        wait_until(results.panes, "a pane", seconds=120)
        senders.send(BATCHES // 4)
        broker.stop()
        try:
            wait_a_minute()
        finally:
            broker.start()
        senders.send(BATCHES // 4)
        results.wait_for(devices.sent)
        assert cluster.checkpoints(job)["restored"] == 0  # it never failed
    assert results.total() == devices.sent
    assert_counted_once(devices, results)


@pytest.mark.nightly
def test_windows_of_others_change_nothing(flink: Flink, tmp_path: Path) -> None:
    options = [*flink.arguments, "--parallelism=1"]
    assert outputs_of_branches(tmp_path, *options) == dict.fromkeys(ALIKE, OF_AN_ARCHIVE)

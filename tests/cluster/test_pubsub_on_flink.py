"""A subscription, followed by a real Flink cluster whose TaskManagers are killed: every report once."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import fastavro
import pytest

from tests.cluster.daemons import wait_until
from tests.cluster.devices import (
    Devices,
    assert_counted_once,
    connections_to,
    one_each,
    wait_a_minute,
    write_spec,
)
from tests.cluster.flink import Flink
from tests.cluster.following import Results, following
from tests.cluster.pubsub import PubSubServer, Tally
from tests.reports import rejected_reports
from uldp.pipelines.results.folder import ResultsFolder
from uldp.transforms.io.pubsub.checkpoint import EXTENSION_SECONDS
from uldp.transforms.io.pubsub.source import PubSubSource
from uldp.transforms.io.pubsub.subscription import Topic

BATCHES, EACH = 40, 100
SPEC = one_each(BATCHES * EACH)
#: What a worker's death delays, the start of another, and the checkpoints in which all is acknowledged.
COMES_AGAIN_SECONDS = EXTENSION_SECONDS + 120


@pytest.fixture(scope="module")  # before Flink, whose workers take from the environment where the server is
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PubSubServer]:
    with PubSubServer(tmp_path_factory.mktemp("pubsub")) as started, pytest.MonkeyPatch.context() as patch:
        for name, value in started.environment.items():
            patch.setenv(name, value)
        yield started


def late_bodies(results: Results) -> set[bytes]:
    """The bodies of all messages that were late; what comes again is written again."""
    bodies = set[bytes]()
    for path in results.folder.glob("late/*.avro"):
        with path.open("rb") as file:
            bodies |= {cast(dict[str, bytes], record)["data"] for record in fastavro.reader(file)}
    return bodies


def send(server: PubSubServer, topic: Topic, devices: Devices, batches: int) -> None:
    for _ in range(batches):
        server.publish(topic, devices.batch(EACH))


def wait_until_all_is_done(server: PubSubServer, before: Tally, devices: Devices, results: Results) -> None:
    sent = before.acknowledged + devices.sent.received
    wait_until(lambda: server.tally().acknowledged == sent, "all is acknowledged", COMES_AGAIN_SECONDS)
    results.wait_for(devices.sent)  # nothing is sent any more, so that the clock alone closes windows


def assert_accounted(devices: Devices, results: Results) -> None:
    """What comes again is a copy, or late or impossible again; of what devices send, no two are alike but copies."""
    assert_counted_once(devices, results)
    all_of = results.total()
    assert all_of.received == all_of.counted + all_of.duplicate + all_of.late + all_of.rejected
    assert len(late_bodies(results)) == devices.sent.late
    assert len(rejected_reports(ResultsFolder(results.folder).rejected())) == devices.sent.rejected


@pytest.mark.nightly
def test_task_managers_that_are_killed_lose_nothing(server: PubSubServer, flink: Flink, tmp_path: Path) -> None:
    cluster, results, devices, before = flink.cluster, Results(tmp_path / "out"), Devices(SPEC), server.tally()
    topic, subscription = server.create("killed")
    idle = connections_to(server.proxy.address)
    with following(flink, str(subscription), write_spec(SPEC, tmp_path), results.folder) as job:
        send(server, topic, devices, BATCHES // 4)
        wait_until(results.panes, "a pane", seconds=120)
        for kill in range(2):
            send(server, topic, devices, BATCHES // 8)
            cluster.wait_for_checkpoints(job, 1 + kill)
            send(server, topic, devices, BATCHES // 8)
            cluster.kill_task_manager(kill)
            send(server, topic, devices, BATCHES // 8)
            cluster.start_task_manager(kill)
            cluster.wait_for_checkpoints(job, 1)
        wait_until_all_is_done(server, before, devices, results)
        cluster.wait_for_checkpoints(job, 5)  # of many readers that have nothing to read
        assert connections_to(server.proxy.address) - idle <= PubSubSource(subscription).pullers
    assert server.tally().delivered > server.tally().published  # so something came again
    assert_accounted(devices, results)


@pytest.mark.nightly
def test_a_server_that_is_away_for_a_minute_is_waited_for(server: PubSubServer, flink: Flink, tmp_path: Path) -> None:
    cluster, results, devices, before = flink.cluster, Results(tmp_path / "out"), Devices(SPEC), server.tally()
    topic, subscription = server.create("away")
    with following(flink, str(subscription), write_spec(SPEC, tmp_path), results.folder) as job:
        send(server, topic, devices, BATCHES // 2)
        wait_until(results.panes, "a pane", seconds=120)
        send(server, topic, devices, BATCHES // 4)
        server.proxy.cut()
        try:
            send(server, topic, devices, BATCHES // 8)  # past the proxy
            wait_a_minute()
        finally:
            server.proxy.restore()
        send(server, topic, devices, BATCHES // 8)
        wait_until_all_is_done(server, before, devices, results)
        assert cluster.checkpoints(job)["restored"] == 0  # it never failed
    assert_accounted(devices, results)

"""A subscription that is followed on this machine, without a cluster, by a command that is killed: each report once."""

import time
from pathlib import Path

import pytest

from tests import build
from tests.cluster.daemons import Daemon, wait_until
from tests.cluster.devices import GROWING, Devices, assert_counted_once, one_each, write_spec
from tests.cluster.following import Results, uldp
from tests.cluster.pubsub import PubSubServer
from uldp.schemas.pane import Accounting

BATCHES, EACH = 12, 100
SPEC = one_each(BATCHES * EACH)


@pytest.mark.nightly
def test_a_command_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    devices, results = Devices(SPEC), Results(tmp_path / "out")
    with PubSubServer(tmp_path / "pubsub") as server:
        topic, subscription = server.create("here")
        arguments = ["--spec", write_spec(SPEC, tmp_path), "--from", subscription, "--to", results.folder]
        command = uldp("stream", *arguments, "--watermark-delay", "2s")

        def send(batches: int) -> None:
            for _ in range(batches):
                server.publish(topic, devices.batch(EACH))

        send(BATCHES // 4)  # a backlog
        with Daemon(command, tmp_path / "stream.log", server.environment) as job:
            job.wait_until(results.panes, "a pane")
            before = server.tally().delivered
            send(BATCHES // 4)
            wait_until(lambda: server.tally().delivered > before, "some more is received")
            job.kill()
            send(BATCHES // 4)
            job.start()
            send(BATCHES // 4)
            results.wait_for(devices.sent)
            wait_until(lambda: server.tally().acknowledged == server.tally().published, "all is acknowledged")
    assert_counted_once(devices, results)
    total = results.total()
    assert total.received == total.counted + total.duplicate + total.late + total.rejected >= devices.sent.received


@pytest.mark.nightly
def test_what_is_sent_while_nothing_can_be_pulled_is_not_late(tmp_path: Path) -> None:
    results, sent = Results(tmp_path / "out"), 0
    with PubSubServer(tmp_path / "pubsub") as server:
        topic, subscription = server.create("away")
        arguments = ["--spec", write_spec(GROWING, tmp_path), "--from", subscription, "--to", results.folder]
        command = uldp("stream", *arguments, "--watermark-delay", "1s")

        def send() -> None:
            nonlocal sent
            now = time.time_ns() // 1_000_000
            reports = [build.report(number, 0, now, GROWING.key) for number in range(sent, sent + EACH)]
            server.publish(topic, [build.message(report).data for report in reports])
            sent += EACH

        with Daemon(command, tmp_path / "stream.log", server.environment) as job:
            send()
            job.wait_until(lambda: server.tally().acknowledged == sent, "all is received")
            server.proxy.cut()
            send()
            over = time.monotonic() + 15  # longer than a window and the delay
            wait_until(lambda: time.monotonic() > over, "the window has passed")
            server.proxy.restore()
            send()
            results.wait_for(Accounting(received=sent))
    assert results.total() == Accounting(received=sent, counted=sent)

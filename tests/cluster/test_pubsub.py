"""Pub/Sub: at least once through failures, and once only where there are none."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator

import apache_beam as beam
import pytest
from apache_beam.io.unbounded_source import CheckpointMark
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from tests.cluster.pubsub import ACK_DEADLINE_SECONDS, PubSubServer
from uldp.transforms.io.pubsub.checkpoint import AckMarkCoder
from uldp.transforms.io.pubsub.source import PublishTo, PubSubReader, PubSubSource
from uldp.transforms.io.pubsub.subscription import Subscription

#: Longer than an ack deadline, shorter than an extension.
LONG_SECONDS = 1.5 * ACK_DEADLINE_SECONDS

#: A worker: takes all messages, makes a mark, says which, and hangs.
WORKER = """
import sys, threading
from uldp.transforms.io.pubsub.checkpoint import AckMarkCoder
from uldp.transforms.io.pubsub.source import PubSubSource
from uldp.transforms.io.pubsub.subscription import Subscription
reader = PubSubSource(Subscription.parse(sys.argv[1])).create_reader(None, None)
taken = 0
while taken < int(sys.argv[2]):
    taken += len(reader.get_current()) if reader.advance() else 0
print(AckMarkCoder().encode(reader.get_checkpoint_mark()).hex(), flush=True)
threading.Event().wait()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PubSubServer]:
    with PubSubServer(tmp_path_factory.mktemp("pubsub")) as server, pytest.MonkeyPatch.context() as patch:
        server.set_in(patch)
        yield server


def bodies(n: int) -> list[bytes]:
    return [b"%050d" % i for i in range(n)]


def open_reader(subscription: Subscription, mark: CheckpointMark | None = None) -> PubSubReader:
    return PubSubSource(subscription).create_reader(None, mark)


def read(reader: PubSubReader, seconds: float, n: int | None = None, *, finalize: bool = False) -> Counter[bytes]:
    """Count the messages that come, for so long or until there are ``n`` different ones or more."""
    seen = Counter[bytes]()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and (n is None or len(seen) < n):
        if reader.advance():
            seen.update(message.data for message in reader.get_current().messages)
        if finalize:
            reader.get_checkpoint_mark().finalize_checkpoint()
    return seen


def test_what_is_committed_does_not_come_again(server: PubSubServer) -> None:
    topic, subscription = server.create("committed")
    server.publish(topic, bodies(5000))
    reader = open_reader(subscription)
    seen = read(reader, 60, 5000, finalize=True)
    assert seen == Counter(bodies(5000))
    reader.get_checkpoint_mark().finalize_checkpoint()  # the commit before it is believed now
    assert not read(reader, LONG_SECONDS)


def test_what_a_dead_worker_had_comes_again(server: PubSubServer) -> None:
    topic, subscription = server.create("dead")
    server.publish(topic, bodies(3000))
    command = [sys.executable, "-c", WORKER, str(subscription), "3000"]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | server.environment)
    try:
        assert worker.stdout is not None
        mark = AckMarkCoder().decode(bytes.fromhex(worker.stdout.readline()))
    finally:
        worker.kill()
        worker.communicate()
    reader = open_reader(subscription, mark)
    assert not read(reader, 1)
    assert read(reader, 60, 3000) == Counter(bodies(3000))


def test_an_outage_loses_nothing_and_fails_nothing(server: PubSubServer, caplog: pytest.LogCaptureFixture) -> None:
    topic, subscription = server.create("outage")
    server.publish(topic, bodies(1000))
    reader = open_reader(subscription)
    seen = read(reader, 60, 1000, finalize=True)
    assert seen == Counter(bodies(1000))
    uncommitted = reader.get_checkpoint_mark()
    server.proxy.cut()
    try:
        uncommitted.finalize_checkpoint()
        server.publish(topic, bodies(4000)[1000:])
        assert not read(reader, 3, finalize=True)
    finally:
        server.proxy.restore()
    assert len([record for record in caplog.records if "asking again" in record.message]) == 1
    seen += read(reader, 60, 3000, finalize=True)
    assert seen == Counter(bodies(4000))
    reader.get_checkpoint_mark().finalize_checkpoint()
    assert not read(reader, LONG_SECONDS)


def test_the_sink_delivers_with_attributes(server: PubSubServer) -> None:
    topic, subscription = server.create("sink")
    # Names that a client library may take for its own.
    sent = [(body, {"topic": "t", "timeout": str(i)}) for i, body in enumerate(bodies(2500))]
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        _ = pipeline | beam.Create(sent) | PublishTo(topic)
    came: dict[bytes, dict[str, str]] = {}
    while received := server.pull(subscription):
        came |= {message.data: dict(message.attributes) for message in received}
    assert came == dict(sent)

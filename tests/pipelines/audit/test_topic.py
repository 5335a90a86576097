"""The audit of a topic agrees with a whole job, and names what is gone from its results or has come twice."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.build import HOUR
from tests.fakes.kafka import TOPIC, Broker
from tests.pipelines.audit.conftest import SPECS, messages
from uldp.pipelines.audit.audit import Audit, audit
from uldp.pipelines.jobs import local
from uldp.transforms.io.kafka.consumers import CONSUMERS
from uldp.transforms.io.kafka.endpoint import KafkaEndpoint
from uldp.transforms.io.local.stream import LocalStream

PARTITIONS, SEGMENTS = 2, 6
ENDPOINT = KafkaEndpoint(TOPIC)
SENT = [list(messages(segment)) for segment in range(SEGMENTS)]
N = sum(map(len, SENT))


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A topic of two partitions. Its first message was sent twice, as a producer does that has lost the answer."""
    made = Broker({partition: [] for partition in range(PARTITIONS)})
    made.append(0, SENT[0][0])
    for segment, each in enumerate(SENT):
        made.append(segment % PARTITIONS, *each)
    with pytest.MonkeyPatch.context() as patch:
        for name, module in made.client_modules().items():
            patch.setitem(sys.modules, name, module)
        patch.setattr(CONSUMERS, "_consumers", {})
        yield made
        CONSUMERS.close()


@pytest.fixture(scope="module")
def results(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("topic") / "out"
    local.backfill(SPECS, ENDPOINT, out, local.pipeline_options([]))
    return out


@pytest.fixture
def out(results: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(results, tmp_path / "out"))


def test_a_message_that_came_twice_before_the_job_is_accounted(out: Path) -> None:
    assert audit(ENDPOINT, out) == Audit(N + 1, N + 1, (), ())


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("counts", "no pane is there"),
        ("estimates", "no estimate by"),
        ("rejected", "reports rejected as not_avro missing"),
    ],
)
def test_each_file_that_is_gone_is_named(out: Path, kind: str, named: str) -> None:
    paths = sorted((out / kind).rglob("*.avro"))
    assert paths
    for path in paths:
        kept = path.rename(out / "gone")
        assert any(named in fault for fault in audit(ENDPOINT, out).faults), path
        kept.rename(path)


@pytest.mark.parametrize("partition", range(PARTITIONS))
def test_a_message_that_came_twice_after_the_job_is_named(broker: Broker, out: Path, partition: int) -> None:
    """Its report is of the three sliding windows that hold its time."""
    end = len(broker.partitions[partition])
    broker.append(partition, SENT[partition][0])
    try:
        faults = audit(ENDPOINT, out).faults
    finally:
        del broker.partitions[partition][end:], broker.bodies[partition][end:]
    assert len(faults) == 3
    for fault in faults:
        there, source = map(int, re.findall(r"(\d+) reports", fault))
        assert fault.startswith("s v1 from ")
        assert source == there + 1


def test_messages_that_the_topic_has_removed_are_named(broker: Broker, out: Path) -> None:
    broker.removed = {0: 5}
    try:
        faults = audit(ENDPOINT, out).faults
    finally:
        broker.removed = {}
    assert faults
    assert all("reports of the newest pane are not in the source" in fault for fault in faults)


def test_what_cannot_be_read_yet_is_a_note(broker: Broker, out: Path) -> None:
    end = len(broker.partitions[0])
    broker.append(0, SENT[0][0])
    broker.open = {0: end}
    try:
        found = audit(ENDPOINT, out)
    finally:
        broker.open = {}
        del broker.partitions[0][end:], broker.bodies[0][end:]
    (note,) = found.notes
    assert (found.messages, found.faults) == (N + 1, ())
    assert f"partition 0 has 1 message from offset {end} on that cannot be read yet, because a transaction is" in note


def test_reports_that_were_late_by_the_watermark_are_no_double_records(broker: Broker, tmp_path: Path) -> None:
    """A job of before read some messages long after they were sent, and so gave them a later publish time."""
    stream, out = LocalStream.create(tmp_path / "stream", simulated_clock=True), tmp_path / "out"
    stream.append([SENT[0][0], *(message for each in SENT for message in each)])
    late = SENT[0][2]
    stream.append([late._replace(publish_time=late.publish_time + 24 * HOUR)])
    stream.close()
    local.follow(SPECS, stream.path, out, local.pipeline_options([]))
    broker.partitions[PARTITIONS] = []
    broker.append(PARTITIONS, late)
    try:
        found = audit(ENDPOINT, out)
    finally:
        del broker.partitions[PARTITIONS], broker.bodies[PARTITIONS]
    assert (found.messages, found.faults) == (N + 2, ())
    assert any("3 windows with reports that came when the window had closed" in note for note in found.notes)

"""A topic that gets partitions and loses messages under a job: each message is counted once, or missing."""

import time
from pathlib import Path

import pytest

from tests.cluster.daemons import wait_until
from tests.cluster.devices import GROWING, OnTime, write_spec
from tests.cluster.flink import Flink
from tests.cluster.following import Results, following
from tests.cluster.kafka import KafkaBroker, send
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message, missing_messages


@pytest.mark.nightly
def test_each_message_is_counted_or_missing(broker: KafkaBroker, flink: Flink, tmp_path: Path) -> None:
    topic, spec, results = (
        broker.create("growing", 1, retention_ms="-1"),
        write_spec(GROWING, tmp_path),
        tmp_path / "out",
    )
    devices, found = OnTime(topic), Results(results)

    def counted() -> bool:
        total = found.total()
        return total == Accounting(devices.sent, devices.sent, missing=total.missing)

    with following(flink, str(topic), spec, results) as job:
        devices.send(0)
        wait_until(counted, "all is counted", seconds=120)
        broker.grow(topic, 3)
        devices.send(0, 1, 2)
        wait_until(counted, "that of new partitions is counted too", seconds=60)
        state = flink.cluster.stop_with_savepoint(job)
    assert [*ResultsFolder(results).missing()] == []
    send(topic, 1, [Message(b"lost", time.time_ns() // 1_000_000)] * 77)
    broker.remove(topic, 1, OnTime.EACH + 77)
    broker.grow(topic, 5)  # while nobody reads it
    devices.send(*range(5))
    with following(flink, str(topic), spec, results, f"--savepoint_path={state}"):
        devices.send(*range(5))
        wait_until(counted, "all is counted", seconds=120)
        found.wait_for(Accounting(devices.sent, devices.sent))
    lost = [*ResultsFolder(results).missing()]
    assert {(each.source, each.first, each.last) for each in lost} == {("growing/1", OnTime.EACH, OnTime.EACH + 76)}
    assert missing_messages(lost) == 77
    flagged = [pane for pane in found.panes() if "missing_reports" in pane.flags]
    assert {pane.accounting.missing for pane in flagged} == {77}
    assert all(pane.window_end > lost[0].after and pane.window_start <= lost[0].before for pane in flagged)

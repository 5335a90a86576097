"""Windows of 24 minutes that begin each second, as those of a day that begin each minute: exact while workers die."""

from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.cluster.crowd import SPEC, Crowd
from tests.cluster.daemons import wait_until
from tests.cluster.devices import write_spec
from tests.cluster.flink import Flink, FlinkCluster
from tests.cluster.following import Results, following, run_uldp
from tests.cluster.kafka import KafkaBroker
from tests.cluster.streams import KafkaStream, Sender
from uldp.schemas.pane import PaneHeader, PaneKind
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.local.stream import LocalStream

SLIDING = CollectionSpec.parse(
    SPEC.model_dump(mode="json", exclude_none=True) | {"window": {"size": "24m", "period": "1s"}}
)
#: Before a worker is killed, and while it is away. Some come twice.
REPORTS = 4_000
#: No report is late or impossible.
WELL = (1.0,)


def fired(results: Results) -> list[PaneHeader]:
    """Return the panes of the windows that have ended, in order."""
    ended = (pane for pane in results.panes() if pane.pane.kind is not PaneKind.EARLY)
    return sorted(ended, key=lambda pane: pane.window_end)


def falls_back(cluster: FlinkCluster, job: str, before: int) -> bool:
    """Return whether a job has been restored from a checkpoint once more."""
    return cluster.checkpoints(job)["restored"] > before


@pytest.mark.nightly
def test_each_window_has_each_report_of_its_time(broker: KafkaBroker, flink: Flink, tmp_path: Path) -> None:
    spec, results = write_spec(SLIDING, tmp_path), Results(tmp_path / "out")
    archive = LocalStream.create(tmp_path / "archive", simulated_clock=True)
    crowd = Crowd(1, spec=SLIDING, shares=WELL)
    sender = Sender(crowd, KafkaStream(broker), archive)
    with following(flink, sender.stream.uri, spec, results.folder) as job:
        for index in range(flink.cluster.size):
            before, restored = len(fired(results)), flink.cluster.checkpoints(job)["restored"]

            def firing(before: int = before) -> bool:
                sender.send(REPORTS // 100)
                return len(fired(results)) > before + 5

            sender.send(REPORTS)
            wait_until(firing, "windows fire", 240)
            flink.cluster.wait_for_checkpoints(job, 1)
            flink.cluster.kill_task_manager(index)
            sender.send(REPORTS)
            flink.cluster.start_task_manager(index)
            wait_until(partial(falls_back, flink.cluster, job, restored), "the job has fallen back", 240)
        last = max(crowd.counts)

        def all_fired() -> bool:
            sender.send(1)  # the clock of the stream goes on with its messages
            return fired(results)[-1].window_end > last

        wait_until(all_fired, "the last window has fired", 240)
        sender.finish()
    panes = [pane for pane in fired(results) if pane.window_end <= last]
    assert {b.window_end - a.window_end for a, b in pairwise(panes)} == {1_000}
    for pane in panes:
        inside = (each for start, each in crowd.counts.items() if pane.window_start <= start < pane.window_end)
        assert isinstance(pane, Statistic)
        np.testing.assert_array_equal(pane.cells, sum(inside))
    other = Results(tmp_path / "backfill")
    run_uldp("backfill", "--spec", spec, "--from", archive.path, "--to", other.folder)
    counts, backfilled = results.counts(), other.counts()
    assert {pane.window_start: counts[pane.window_start] for pane in panes} == {
        pane.window_start: backfilled[pane.window_start] for pane in panes
    }

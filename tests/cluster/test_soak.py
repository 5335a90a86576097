"""A stream that a Flink cluster follows while everything that it consists of is killed: every report once.

``ULDP_REPORTS`` and ``ULDP_KILLS`` say how many reports and how many kills of a TaskManager; pytest's
``--log-cli-level=INFO`` shows what was found.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.crowd import SPEC, Crowd
from tests.cluster.daemons import wait_until
from tests.cluster.devices import write_spec
from tests.cluster.flink import Flink, FlinkCluster
from tests.cluster.following import Results, following, run_uldp
from tests.cluster.pubsub import PubSubServer
from tests.cluster.streams import KafkaStream, PubSubStream, Sender, Stream
from tests.reports import rejected_reports
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.pane import Accounting, PaneKind
from uldp.transforms.io.local.stream import LocalStream

LOGGER = logging.getLogger(__name__)

REPORTS = int(os.environ.get("ULDP_REPORTS", "60000"))
KILLS = int(os.environ.get("ULDP_KILLS", "2"))
#: Reports that are sent while something is waited for.
TRICKLE = 20
#: For whatever a job that was killed needs until it has taken a checkpoint again, and to count what came meanwhile.
SECONDS = 240.0


@pytest.fixture(params=["kafka", "pubsub"])
def stream(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stream]:
    if request.param == "kafka":
        yield KafkaStream(request.getfixturevalue("broker"))
    else:
        with PubSubServer(tmp_path / "pubsub") as server:
            server.set_in(monkeypatch)
            yield PubSubStream(server)


@pytest.fixture
def flink(stream: Stream, flink: Flink) -> Flink:  # its workers have the environment of the stream
    return flink


@dataclass(frozen=True)
class Part:
    """A part of the whole that can be killed."""

    name: str
    kill: Callable[[], None]
    start: Callable[[], None]
    #: Whether the job falls back to a checkpoint.
    falls_back: bool = True


def parts_to_kill(flink: Flink) -> Iterator[Part]:
    """Yield the TaskManagers in turn, the job server in the middle, and the worker pool at the end."""
    cluster = flink.cluster
    for kill in range(KILLS):
        index = kill % cluster.size
        kill_it, start_it = partial(cluster.kill_task_manager, index), partial(cluster.start_task_manager, index)
        yield Part(f"TaskManager {index}", kill_it, start_it)
        if kill == (KILLS - 1) // 2:
            yield Part("job server", flink.server.kill, flink.server.start, falls_back=False)
    yield Part("worker pool", flink.workers.kill, flink.workers.start)


def kill_amid(part: Part, sender: Sender, share: int, results: Results, cluster: FlinkCluster, job: str) -> None:
    """Kill a part while a window is open whose count has advanced, behind a checkpoint, and send on all the while."""
    before, restored = results.total().received, cluster.checkpoints(job)["restored"]
    sender.send(share)

    def counting() -> bool:
        sender.send(TRICKLE)  # or the window closes before anybody has looked
        panes = results.panes()
        received = sum(pane.accounting.received for pane in panes)
        return received > before and any(pane.pane.kind is PaneKind.EARLY for pane in panes)

    wait_until(counting, "an open window has advanced", SECONDS)
    cluster.wait_for_checkpoints(job, 1)
    part.kill()
    sender.send(share)
    part.start()
    if part.falls_back:
        wait_until(lambda: cluster.checkpoints(job)["restored"] > restored, f"{part.name} is made up for", SECONDS)
    cluster.wait_for_checkpoints(job, 1)


@pytest.mark.nightly
def test_every_report_is_counted_once(stream: Stream, flink: Flink, tmp_path: Path) -> None:
    spec, results = write_spec(SPEC, tmp_path), Results(tmp_path / "out")
    archive = LocalStream.create(tmp_path / "archive", simulated_clock=True)
    crowd = Crowd(KILLS, stream.batch)
    sender = Sender(crowd, stream, archive)
    parts = list(parts_to_kill(flink))
    share = REPORTS // (2 * len(parts) + 2)
    began = time.monotonic()
    with following(flink, stream.uri, spec, results.folder) as job:
        for part in parts:
            kill_amid(part, sender, share, results, flink.cluster, job)
            LOGGER.info("%.0f s: %s was killed; %s", time.monotonic() - began, part.name, results.total())
        sender.send(REPORTS - 2 * share * len(parts))
        sender.finish()
        results.wait_for(crowd.accounting)
        read = partial(flink.cluster.records_read, job, "Aggregate/{Deduplicate")
        wait_until(lambda: min(read()) > 0, "all workers remove copies")

    sent, found, truth = crowd.accounting, results.total(), crowd.counts_by_window()
    LOGGER.info("%.0f s: sent %s", time.monotonic() - began, sent)
    LOGGER.info("found %s in %s windows", found, len(results.panes()))
    assert "the job continues on the cluster" in results.folder.with_suffix(".log").read_text(encoding="utf-8")
    assert found.closes()
    assert found.counted == sent.counted
    assert found == sent or stream.repeats
    assert results.counts() == truth
    assert len(rejected_reports(ResultsFolder(results.folder).rejected())) == crowd.rejected

    # The same through the local runner; and a backfill, which comes later than everything, and counts what was late.
    late = Accounting(counted=crowd.late, duplicate=sent.late - crowd.late, late=-sent.late)
    for command, more in (("stream", Accounting()), ("backfill", late)):
        other = Results(tmp_path / command)
        run_uldp(command, "--spec", spec, "--from", archive.path, "--to", other.folder)
        assert other.total() == sent + more
        counts = other.counts()
        assert sum(counts.pop(crowd.late_window, [])) == more.counted
        assert counts == truth

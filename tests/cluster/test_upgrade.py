"""A job that goes on where another has ended, with other code: nothing is lost, and nothing is counted twice."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.crowd import SPEC, Crowd
from tests.cluster.daemons import wait_until
from tests.cluster.devices import write_spec
from tests.cluster.flink import Flink, WorkerPool
from tests.cluster.following import Results, following
from tests.cluster.kafka import KafkaBroker
from tests.cluster.streams import KafkaStream, Sender
from tests.downloads import ROOT
from uldp.pipelines.results.folder import ResultsFolder

SHARE = 10_000
#: What the newer code calls itself in the reports that it rejects.
NEWER = "newer"


@pytest.fixture
def stream(broker: KafkaBroker) -> KafkaStream:
    return KafkaStream(broker)


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A copy of the packages that says so."""
    folder = tmp_path / "newer"
    for package in ("schemas", "mechanisms", "collector", "transforms", "pipelines"):
        shutil.copytree(
            ROOT / package / "uldp", folder / "uldp", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    reader = folder / "uldp" / "collector" / "reader.py"
    code = reader.read_text(encoding="utf-8")
    changed = code.replace('metadata.version("uldp-stream")', repr(NEWER))
    assert changed != code
    reader.write_text(changed, encoding="utf-8")
    return folder


def end_with_savepoint(flink: Flink, job: str) -> str:
    return flink.cluster.stop_with_savepoint(job)


def end_without_job_server(flink: Flink, job: str) -> str:
    """Cancel; what is left is the last checkpoint."""
    flink.server.kill()
    flink.cluster.wait_for_checkpoints(job, 1)
    flink.cluster.cancel(job)
    flink.server.start()
    return flink.cluster.newest_checkpoint(job)


@pytest.mark.nightly
@pytest.mark.parametrize("end", [end_with_savepoint, end_without_job_server])
def test_another_job_goes_on(
    stream: KafkaStream, flink: Flink, newer: Path, tmp_path: Path, end: Callable[[Flink, str], str]
) -> None:
    spec, results = write_spec(SPEC, tmp_path), Results(tmp_path / "out")
    crowd = Crowd(seed=7)
    sender = Sender(crowd, stream)
    with following(flink, stream.uri, spec, results.folder) as job:
        sender.send(SHARE)
        wait_until(lambda: results.total() == crowd.accounting, "all is counted", 120)
        sender.send(SHARE)
        state = end(flink, job)
    sender.send(SHARE)
    environment = {"PYTHONPATH": str(newer)}
    with (
        WorkerPool(newer, environment) as workers,
        following(
            flink,
            stream.uri,
            spec,
            results.folder,
            f"--savepoint_path={state}",
            f"--environment_config={workers.endpoint}",
            environment=environment,
        ),
    ):
        sender.send(SHARE)
        sender.finish()
        results.wait_for(crowd.accounting)
    assert results.total() == crowd.accounting
    assert results.counts() == crowd.counts_by_window()
    assert NEWER in {record.software for record in ResultsFolder(results.folder).rejected()}

"""The secret by which a job's ids fall into shards: one per job, the same when it runs again, and read by its owner."""

from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest

from tests import build
from uldp.pipelines.jobs import settings
from uldp.pipelines.jobs.aggregate import JobAggregate
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.local import backfill, follow, pipeline_options
from uldp.pipelines.jobs.outputs import Claim, claimed_both
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.transforms.io.local.stream import LocalStream

SPEC = build.spec()


def identity() -> JobIdentity:
    return JobIdentity.of("stream", "kafka:broker:9092/reports", "topic", [SPEC], resumes=True)


def claim(out: Path, private: Path | None = None, *, from_savepoint: bool = False) -> Claim:
    """Begin a job and end it at once."""
    place = None if private is None else str(private)
    with claimed_both(str(out), place, [SPEC], identity(), from_savepoint=from_savepoint) as claimed:
        return claimed


def test_a_job_keeps_its_key_and_another_job_has_another(tmp_path: Path) -> None:
    first = claim(tmp_path / "out")
    assert claim(tmp_path / "out") == first
    assert claim(tmp_path / "out", from_savepoint=True) == first
    assert claim(tmp_path / "other").shard_key != first.shard_key
    assert 0 < first.shard_key < 1 << 128


def test_only_the_owner_reads_a_key(tmp_path: Path) -> None:
    claim(tmp_path / "out", tmp_path / "private")
    kept = [tmp_path / name / "job.json" for name in ("out", "private")]
    assert [S_IMODE(path.stat().st_mode) for path in kept] == [0o600, 0o600]
    kept[0].chmod(0o644)  # as versions without a key wrote it
    claim(tmp_path / "out")
    assert S_IMODE(kept[0].stat().st_mode) == 0o600


def test_no_text_about_a_job_shows_its_key() -> None:
    job = identity()
    aggregate = JobAggregate([SPEC], shard_key=job.shard_key)
    assert str(job.shard_key) not in f"{job} {job!r} {aggregate!r} {job.difference(identity())}"


def test_a_savepoint_without_the_key_of_its_job_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ResultsError,
        match=r"/new: has no job\.json with the key of the job that wrote the savepoint, .*; give the --to",
    ):
        claim(tmp_path / "new", from_savepoint=True)
    assert list((tmp_path / "new").iterdir()) == []


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The keys with which jobs on this machine aggregate."""
    found: list[int] = []

    class Noted(JobAggregate):
        def expand(self, messages: Any) -> Any:
            found.append(self.shard_key)
            return super().expand(messages)

    monkeypatch.setattr(settings, "JobAggregate", Noted)
    return found


def test_the_jobs_of_this_machine_use_their_key(keys: list[int], tmp_path: Path) -> None:
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    stream.append([*[build.message(build.report(16 * number, 1)) for number in range(40)]] * 2)
    stream.close()
    for _ in range(2):
        backfill([SPEC], stream.path, tmp_path / "whole", pipeline_options([]))
        follow([SPEC], stream.path, tmp_path / "live", pipeline_options([]))
    kept = [JobIdentity.decode((tmp_path / name / "job.json").read_bytes()).shard_key for name in ("whole", "live")]
    assert keys == kept * 2
    assert {(pane.n, pane.accounting.duplicate) for pane in ResultsFolder(tmp_path / "whole").statistics()} == {
        (40, 40)
    }

"""A results directory without a pane: a failed job does not keep it, and a job that may still write does."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import apache_beam as beam
import grpc
import pytest

from tests import build
from tests.build import START
from uldp.pipelines.jobs import outputs as locks
from uldp.pipelines.jobs.abandoned import clear
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.local import backfill, follow, pipeline_options
from uldp.pipelines.jobs.outputs import claimed, claimed_both
from uldp.pipelines.jobs.progress import summary
from uldp.pipelines.jobs.settings import JobSettings
from uldp.pipelines.results.files import ResultsError
from uldp.schemas.records import Message, Missing
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import read_messages
from uldp.transforms.io.results.write import WriteResults

SPECS = [build.spec()]


def job_of(source: str) -> JobIdentity:
    return JobIdentity.of("backfill", source, source, SPECS)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Five reports, and one that is none."""
    path = tmp_path / "archive"
    messages = [Message(build.report(number, 0, START).encode(), START) for number in range(5)]
    LocalStream.create(path).append([*messages, Message(b"no report", START)])
    (path / "stream.json").unlink()
    return path


#: A runner that is given the job and says what became of it, as a cluster does; it runs the workers in this process.
SUBMITTED = ("--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK")


def fail(folder: Path, out: str, private: str | None, *options: str) -> None:
    """Run the backfill of a folder in which a block of a file is damaged."""
    (whole,) = folder.iterdir()
    content = whole.read_bytes()
    bad = folder / "bad.avro"
    bad.write_bytes(content[:-30] + bytes(14) + content[-16:])
    with pytest.raises(Exception, match=r"bad\.avro: damaged|bad\.avro: not an Avro file"):
        backfill(SPECS, folder, out, pipeline_options(options), JobSettings(private=private))
    bad.unlink()


@pytest.mark.parametrize("private", [None, "private"])
@pytest.mark.parametrize("options", [(), SUBMITTED], ids=["here", "submitted"])
def test_a_failed_backfill_keeps_no_directory(
    options: Sequence[str], private: str | None, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fail(archive, "out", private, *options)
    assert not [path for name in ("out", "private") for path in Path(name).rglob("[!.]*")]
    backfill(SPECS, archive, Path("out"), pipeline_options([]), JobSettings(private=private))
    found = summary(Path("out"), private=Path(private or "out"))
    assert "in all: 6 received = 5 counted + 0 duplicate + 0 late + 1 rejected" in found


def test_a_job_of_which_its_runner_does_not_say_that_it_is_over_keeps_its_directory(
    archive: Path, tmp_path: Path
) -> None:
    options = ("--runner=PortableRunner", "--job_endpoint=127.0.0.1:1", "--job_server_timeout=1")
    with pytest.raises(grpc.FutureTimeoutError):
        backfill(SPECS, archive, str(tmp_path / "out"), pipeline_options(options))
    assert (tmp_path / "out" / "job.json").exists()


def test_a_failed_backfill_keeps_no_directory_elsewhere(archive: Path, far_away: dict[str, bytes]) -> None:
    fail(archive, "mem://out", None)
    assert far_away == {}
    backfill(SPECS, archive, "mem://out", pipeline_options([]))
    assert any("/estimates/" in url for url in far_away)


def test_a_killed_job_keeps_no_directory_without_a_result(tmp_path: Path) -> None:
    out, private = (str(tmp_path / name) for name in ("out", "private"))
    stray = tmp_path / "out" / "notes.txt"
    other_window = JobIdentity.of("stream", "s", "s", [build.spec(window={"size": "2h"})])
    for job in (job_of("one"), job_of("other"), other_window):
        with claimed_both(out, private, SPECS, job):
            (tmp_path / "out" / "resume.json").touch()
            stray.touch()
        kept = [JobIdentity.decode((tmp_path / name / "job.json").read_bytes()) for name in ("out", "private")]
        assert {each.shard_key for each in kept} == {job.shard_key}
        (tmp_path / "out" / "resume.json").unlink()
    assert stray.exists()


@pytest.mark.parametrize("result", ["estimates/c-v1/w/0.avro", "counts/c-v1/shared/a.avro", "rejected/a.avro"])
def test_a_directory_with_a_result_is_of_its_job(result: str, tmp_path: Path) -> None:
    with claimed(str(tmp_path), SPECS, job_of("one")):
        (tmp_path / result).parent.mkdir(parents=True)
        (tmp_path / result).touch()
    with (
        pytest.raises(ResultsError, match="holds the results of another job"),
        claimed(str(tmp_path), SPECS, job_of("other")),
    ):
        pass
    assert (tmp_path / result).exists()


@pytest.mark.parametrize(
    "job",
    [
        JobIdentity.of("backfill", "one", "one", SPECS, apart=True),
        JobIdentity.of("stream", "kafka:broker:9092/t", "one", SPECS, resumes=True),
    ],
)
def test_a_job_that_may_still_run_on_a_cluster_keeps_its_directory(job: JobIdentity, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    with pytest.raises(ValueError, match="failed"), claimed_both(out, None, SPECS, job):
        raise ValueError("failed")
    with pytest.raises(ResultsError, match="holds the results of another job"), claimed(out, SPECS, job_of("other")):
        pass


def test_a_lock_stays_when_all_files_of_its_directory_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "LOCK_SECONDS", 0.0)
    out = tmp_path / "out"
    with locks.locked(out, "--to"):
        for path in out.iterdir():
            path.unlink()
        with pytest.raises(ResultsError, match="another job is writing to it"), locks.locked(out, "--to"):
            pass


@pytest.mark.parametrize("again", [True, False])
def test_a_job_whose_directory_was_removed_does_not_end_well(again: bool, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def replace() -> None:
        shutil.rmtree(out)
        if again:
            out.mkdir()

    with pytest.raises(ResultsError, match="was removed or replaced while the job wrote"), locks.locked(out, "--to"):
        replace()


def test_all_that_a_job_writes_can_be_removed(archive: Path, tmp_path: Path) -> None:
    """A kind of result that the list of ``clear`` lacks would stay in the directory of a failed job."""
    out, stream = tmp_path / "out", LocalStream.create(tmp_path / "stream")
    for path in archive.iterdir():
        stream.append(list(read_messages(path)))
    stream.close()
    backfill(SPECS, archive, str(tmp_path / "whole"), pipeline_options([]))
    follow(SPECS, stream.path, out, pipeline_options([]))
    with beam.Pipeline("FnApiRunner") as pipeline:
        lost = pipeline | beam.Create([Chunk((), (Missing("t/0", 5, 9, START, START + 1),))])
        _ = lost | Aggregate(SPECS) | WriteResults(str(out))
    assert {"missing", "journal.jsonl", "rejected", "counts"} <= {path.name for path in out.iterdir()}
    for folder in (out, tmp_path / "whole"):
        clear(str(folder))
        assert [path.name for path in folder.iterdir() if path.name != ".lock"] == []

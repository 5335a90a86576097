"""The secret keys of a job, of digests of senders and of shards of ids: one per job, and for its owner alone."""

import json
import logging
from pathlib import Path
from stat import S_IMODE
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.transforms.display import DisplayData

from tests import build
from tests.build import SENDER_KEY, START
from tests.pipelines.command import Run
from tests.pipelines.jobs.graph import describe_graph
from uldp.collector.signals import digest_of_day, sender_digest
from uldp.pipelines.jobs import settings
from uldp.pipelines.jobs.aggregate import JobAggregate
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.local import backfill, follow, pipeline_options
from uldp.pipelines.jobs.outputs import Claim, claimed_both
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.records import SENDER
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.decode import DecodeReports
from uldp.transforms.io.local.stream import LocalStream

LIMITED = build.spec(limits={"max_reports_per_sender": 1})


def identity() -> JobIdentity:
    return JobIdentity.of("stream", "kafka:broker:9092/reports", "topic", [LIMITED], resumes=True)


def claim(
    out: Path | str, private: Path | str | None = None, key: Path | None = None, *, from_savepoint: bool = False
) -> Claim:
    """Begin a job and end it at once."""
    place = None if private is None else str(private)
    begun = claimed_both(str(out), place, [LIMITED], identity(), sender_key=key, from_savepoint=from_savepoint)
    with begun as claimed:
        return claimed


def write(path: Path, key: bytes = SENDER_KEY, mode: int = 0o600) -> Path:
    path.write_bytes(key)
    path.chmod(mode)
    return path


def test_a_job_keeps_the_key_that_it_has_drawn(tmp_path: Path) -> None:
    first = claim(tmp_path / "out")
    assert first.sender_key is not None
    assert len(first.sender_key) == 32
    assert claim(tmp_path / "out").sender_key == first.sender_key
    assert claim(tmp_path / "other").sender_key != first.sender_key
    kept = tmp_path / "out" / "sender.key"
    assert (kept.read_bytes(), S_IMODE(kept.stat().st_mode)) == (first.sender_key, 0o600)


def test_the_key_is_in_the_private_directory(tmp_path: Path) -> None:
    key = claim(tmp_path / "out", tmp_path / "private").sender_key
    assert [path.parent.name for path in tmp_path.rglob("sender.key")] == ["private"]
    assert claim(tmp_path / "moved", tmp_path / "private").sender_key == key


@pytest.mark.parametrize(
    ("key", "mode", "error"),
    [
        (None, 0, r"key: No such file or directory; check the path of the sender key"),
        (SENDER_KEY, 0o604, r"key: other users may read this sender key; run chmod 600 .*key$"),
        (SENDER_KEY[1:], 0o600, r"key: a sender key is a file of 32 bytes or more, and this holds 31; make one with:"),
        (SENDER_KEY * (1 << 15) + b"0", 0o600, r"key: the file has more than 1,048,576 bytes; check the path of the "),
    ],
)
def test_a_key_that_protects_nobody_is_refused(key: bytes | None, mode: int, error: str, tmp_path: Path) -> None:
    if key is not None:
        write(tmp_path / "key", key, mode)
    with pytest.raises(ResultsError, match=error):
        claim(tmp_path / "out", key=tmp_path / "key")
    assert not (tmp_path / "out").exists()


def test_a_key_is_kept_in_no_directory_behind_a_url(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"^mem://out: limits.max_reports_per_sender needs a key.*add --sender-key"):
        claim("mem://out")
    with pytest.raises(ResultsError, match=r"^mem://private: "):
        claim(tmp_path / "out", "mem://private")
    assert not (tmp_path / "out").exists()


def test_no_text_shows_the_key(tmp_path: Path) -> None:
    pipeline = beam.Pipeline("FnApiRunner")
    aggregate = Aggregate([LIMITED], sender_key=SENDER_KEY)
    _ = pipeline | beam.Create([build.message(build.report(1, 1))]) | aggregate
    decode = DecodeReports([LIMITED], 1, sender_key=SENDER_KEY)
    shown = [DisplayData.create_from(each).items for each in (aggregate, decode)]
    texts = f"{aggregate!r} {decode!r} {shown} {claim(tmp_path / 'out', key=write(tmp_path / 'key'))!r}"
    texts += describe_graph(pipeline.to_runner_api())
    for form in (repr(SENDER_KEY)[2:-1], SENDER_KEY.hex(), str([*SENDER_KEY])):
        assert form not in texts


def test_results_and_output_hold_the_digest_and_not_the_key(
    uldp: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    (tmp_path / "spec.yaml").write_text(json.dumps(build.MINIMAL | {"limits": LIMITED.limits.model_dump(mode="json")}))
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    sent = [build.message(build.report(n, 1))._replace(attributes={SENDER: "gateway"}) for n in range(3)]
    stream.append(sent)
    stream.close()
    job = "--spec", tmp_path / "spec.yaml", "--from", tmp_path / "stream", "--sender-key", write(tmp_path / "key")
    digest = digest_of_day(sender_digest("gateway", SENDER_KEY), START)
    for command in ("backfill", "stream"):
        code, *texts = uldp(command, *job, "--to", tmp_path / f"of-{command}")
        assert code == 0, texts
        (pane,) = ResultsFolder(tmp_path / f"of-{command}").panes()
        assert pane.signals.busiest_sender is not None
        assert (pane.signals.busiest_sender.digest, pane.flags) == (digest, ("busy_sender",))
        written = b"".join(path.read_bytes() for path in (tmp_path / f"of-{command}").rglob("*") if path.is_file())
        assert SENDER_KEY not in written
        assert SENDER_KEY.hex() not in "".join([*texts, caplog.text])


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
    aggregate = JobAggregate([LIMITED], shard_key=job.shard_key)
    assert str(job.shard_key) not in f"{job} {job!r} {aggregate!r} {job.difference(identity())}"


def test_a_savepoint_without_the_key_of_its_job_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ResultsError,
        match=r"/new: has no job\.json with the key of the job that wrote the savepoint, .*; give the --to",
    ):
        claim(tmp_path / "new", from_savepoint=True)
    assert [path.name for path in (tmp_path / "new").iterdir()] in ([], ["sender.key"])


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
    spec = build.spec()
    for _ in range(2):
        backfill([spec], stream.path, tmp_path / "whole", pipeline_options([]))
        follow([LIMITED], stream.path, tmp_path / "live", pipeline_options([]))
    kept = [JobIdentity.decode((tmp_path / name / "job.json").read_bytes()).shard_key for name in ("whole", "live")]
    assert keys == kept * 2
    assert {(pane.n, pane.accounting.duplicate) for pane in ResultsFolder(tmp_path / "whole").statistics()} == {
        (40, 40)
    }

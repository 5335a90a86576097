"""The key of digests of senders: given in a file, or drawn once by a job and kept for its owner alone."""

import logging
from pathlib import Path
from stat import S_IMODE

import apache_beam as beam
import pytest
from apache_beam.transforms.display import DisplayData

from tests import build
from tests.build import SENDER_KEY, START
from tests.pipelines.command import Run
from tests.pipelines.jobs.graph import describe_graph
from uldp.collector.signals import digest_of_day, sender_digest
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.outputs import Claim, claimed_both
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.records import SENDER
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.decode import DecodeReports
from uldp.transforms.io.local.stream import LocalStream

LIMITED = build.spec(limits={"max_reports_per_sender": 1})
IDENTITY = JobIdentity.of("stream", "kafka:broker:9092/reports", "topic", [], resumes=True)


def claim(out: Path | str, private: Path | str | None = None, key: Path | None = None, spec: object = LIMITED) -> Claim:
    """Begin a job and end it at once."""
    place = None if private is None else str(private)
    with claimed_both(str(out), place, [spec], IDENTITY, sender_key=key) as claimed:  # type: ignore[list-item]
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


def test_jobs_with_one_file_have_one_key(tmp_path: Path) -> None:
    file = write(tmp_path / "key")
    assert {claim(tmp_path / name, key=file).sender_key for name in ("one", "other")} == {SENDER_KEY}
    assert not [*tmp_path.rglob("sender.key")]


def test_a_spec_without_the_limit_makes_no_key(tmp_path: Path) -> None:
    assert claim(tmp_path / "out", spec=build.spec()).sender_key is None
    assert not [*tmp_path.rglob("sender.key")]


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
    (tmp_path / "spec.yaml").write_text(
        "{collection: c, version: 1, domain: {size: 5}, mechanism: {name: urr, epsilon: 1.0}, window: {size: 1h},"
        " limits: {min_reports: 1, max_reports_per_sender: 1}}"
    )
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

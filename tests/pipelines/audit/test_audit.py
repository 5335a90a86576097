"""An audit finds that exact accounts are exact, and names what is lost, double or damaged."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.pipelines.audit.conftest import SEGMENTS, SPECS, Job, messages, stream_of
from tests.pipelines.command import Run
from uldp.pipelines.audit.audit import MOST_LINES, Audit, audit
from uldp.pipelines.jobs import local
from uldp.pipelines.jobs.settings import JobSettings
from uldp.pipelines.results.signed import Signed
from uldp.schemas.records import Message
from uldp.transforms.io.files import FilesEndpoint
from uldp.transforms.io.local.journal import JOURNAL
from uldp.transforms.io.local.resume_point import RESUME
from uldp.transforms.io.local.stream import LocalStream

SENT = sum(len(list(messages(segment))) for segment in range(SEGMENTS))

OF_RUN = "000000000003.avro to 000000000005.avro, 3 in all: their "


def audited(job: Job) -> Audit:
    return audit(FilesEndpoint(str(job.stream)), job.out)


def backfill(source: Path, out: Path) -> None:
    local.backfill(SPECS, source, out, local.pipeline_options([]))


def segment(job: Job, number: int) -> Path:
    return job.stream / f"{number:012d}.avro"


def test_exact_accounts_are_exact(job: Job) -> None:
    assert audited(job) == Audit(SENT, SENT, (), ())


@pytest.mark.parametrize(
    ("unread", "named"), [([0], "000000000000.avro: its "), ([5], "000000000005.avro: its "), ([3, 4, 5], OF_RUN)]
)
def test_segments_that_no_job_read_are_named(
    jobs: dict[str, Job], tmp_path: Path, unread: list[int], named: str
) -> None:
    shutil.copytree(jobs["backfill"].stream, tmp_path / "part")
    (tmp_path / "part" / "stream.json").unlink()
    for number in unread:
        segment(Job(tmp_path / "part", tmp_path, ""), number).unlink()
    backfill(tmp_path / "part", tmp_path / "out")
    (fault,) = audited(Job(jobs["backfill"].stream, tmp_path / "out", "backfill")).faults
    assert fault.startswith(named)
    assert fault.endswith("; run the job again")


def test_a_segment_that_is_gone_is_named(job: Job) -> None:
    segment(job, 4).unlink()
    assert f"{segment(job, 4)}: missing; restore it, or, if it is lost, run uldp give-up" in audited(job).faults


def estimate_by_two(out: Path) -> None:
    for path in out.glob("specs/*/spec.yaml"):
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"estimator": ["mle", "norm-sub"]}))


def test_windows_from_before_the_estimator_has_changed_lack_no_estimate(job: Job) -> None:
    estimate_by_two(job.out)
    has_journal = (job.out / JOURNAL).exists()  # it alone says by what earlier windows were estimated
    assert bool(audited(job).faults) is not has_journal


@pytest.mark.parametrize("job", ["stream"], indirect=True)
def test_without_a_journal_estimates_of_a_stream_may_be_of_an_estimator_that_came_later(job: Job) -> None:
    for name in (JOURNAL, RESUME):
        (job.out / name).unlink()
    estimate_by_two(job.out)
    found = audited(job)
    assert not found.faults
    (note,) = (note for note in found.notes if "norm-sub" in note)
    assert note.endswith("restore their files, unless the spec named it later")


@pytest.mark.parametrize(("kind", "wanted"), [("late", "late"), ("rejected", "rejected as not_avro")])
def test_records_that_are_gone_are_named(job: Job, kind: str, wanted: str) -> None:
    paths = list((job.out / kind).glob("*.avro"))
    for path in paths:
        path.unlink()
    assert not paths or any(f"reports {wanted} missing" in fault for fault in audited(job).faults)


def test_reports_that_no_source_has_are_named(job: Job, tmp_path: Path) -> None:
    shutil.rmtree(job.out)
    more = stream_of(tmp_path / "more")
    more.append([Message(message.data, message.publish_time) for message in messages(5)])
    backfill(more.path, job.out)
    faults = audited(job).faults
    assert any("reports of the newest pane are not in the source" in fault for fault in faults)


def test_windows_that_have_not_fired_are_open(tmp_path: Path) -> None:
    stream, out = stream_of(tmp_path / "stream"), tmp_path / "out"
    stops_here = stream.path / f"{SEGMENTS:012d}.avro"
    stops_here.touch()
    with pytest.raises(Exception, match="not an Avro file of messages"):
        local.follow(SPECS, stream.path, out, local.pipeline_options([]))
    stops_here.unlink()
    found = audited(Job(stream.path, out, "stream"))
    assert found.faults == ()
    assert found.notes[0] == f"1 segment not read yet, the first {SEGMENTS - 1:012d}.avro"  # not signed yet
    assert any("windows open, the first c v1 from " in note for note in found.notes)
    stream.close()
    said: list[str] = []
    local.follow(SPECS, stream.path, out, local.pipeline_options([]), JobSettings(say=said.append))
    assert any(line.startswith("resuming at ") for line in said)
    assert not any("is read from its beginning" in line for line in said)
    assert audited(Job(stream.path, out, "stream")) == Audit(SENT, SENT, (), ())


def test_a_job_that_reads_its_stream_again_signs_all_of_it_again(jobs: dict[str, Job], tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(jobs["stream"].out, out)
    (out / "resume.json").unlink()
    next((out / "estimates").glob("*.avro")).unlink()
    options = local.pipeline_options([])
    local.follow(SPECS, jobs["stream"].stream, out, options)
    assert len(Signed.read(out).segments) == SEGMENTS
    assert audited(Job(jobs["stream"].stream, out, "stream")) == Audit(SENT, SENT, (), ())


def test_of_many_faults_the_first_are_named(jobs: dict[str, Job], tmp_path: Path) -> None:
    shutil.copytree(jobs["backfill"].out, tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "counts")
    faults = audited(Job(jobs["backfill"].stream, tmp_path / "out", "backfill")).faults
    assert len(faults) <= 3 * MOST_LINES


def test_another_stream_is_refused(jobs: dict[str, Job], tmp_path: Path) -> None:
    LocalStream.create(tmp_path / "other")
    with pytest.raises(ValueError, match=r"other: not the stream that uldp stream .* has read; give that one"):
        audit(FilesEndpoint(str(tmp_path / "other")), jobs["stream"].out)


def test_the_command_says_it_in_a_line(uldp: Run, jobs: dict[str, Job], tmp_path: Path) -> None:
    job = jobs["backfill"]
    line = f"{job.stream}: {SENT} messages, {SENT} reports"
    assert uldp("audit", job.stream, job.out) == (0, f"{line}: all accounted\n", "")
    shutil.copytree(job.out, tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "rejected")
    code, said, wrong = uldp("audit", job.stream, tmp_path / "out", "--json")
    assert (code, json.loads(said)["messages"], json.loads(said)["notes"]) == (1, SENT, [])
    assert wrong.splitlines() == [
        *(f"error: {fault}" for fault in json.loads(said)["faults"]),
        f"error: {line}: not all accounted in {tmp_path / 'out'}",
    ]

"""uldp status: what runs, how far it is, where reports went, and what is on disk."""

import json
import os
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.build import START
from tests.pipelines.command import Run
from tests.pipelines.live.test_position import HERE
from tests.pipelines.results.samples import ESTIMATE, folder_of, save
from uldp.pipelines.jobs.outputs import locked
from uldp.pipelines.live.position import POSITION, Position, now_ms
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.status.status import Status
from uldp.schemas.pane import Accounting
from uldp.schemas.records import iso
from uldp.schemas.rejected import count_reasons


def put(out: Path, position: Position) -> None:
    (out / POSITION).write_text(json.dumps(asdict(position)))


def test_the_numbers_are_those_of_the_results(uldp: Run, backfilled: Path) -> None:
    code, out, _ = uldp("status", backfilled, "--json")
    found = json.loads(out)
    folder = ResultsFolder(backfilled)
    panes = sum((pane.accounting for pane in folder.panes()), Accounting())
    (collection,) = found["collections"]
    assert code == 0
    assert {name: collection[name] for name in ("received", "counted", "duplicate", "late", "rejected")} == {
        name: number for name, number in panes.to_avro().items() if name != "missing"
    }
    assert found["rejected_by_reason"] == count_reasons(folder.rejected())
    assert found["rejected"] == sum(found["rejected_by_reason"].values())
    assert found["received"] == sum(found[name] for name in ("counted", "duplicate", "late", "rejected"))
    assert (found["running"], found["watermark"], found["missing"]) == (False, None, 0)
    for name, disk in found["disk"].items():
        assert disk["bytes"] == sum(path.stat().st_size for path in (backfilled / name).rglob("*") if path.is_file())


def test_the_text_says_the_same(uldp: Run, backfilled: Path) -> None:
    _, out, _ = uldp("status", backfilled)
    first, *lines = out.splitlines()
    assert first.startswith("job: uldp backfill --from ")
    assert first.endswith("; not running")
    last = max(ResultsFolder(backfilled).panes(), key=lambda pane: pane.window_end)
    assert f"  last window until 2026-01-05T12:00:00Z (on time): n {last.n:,}" in lines
    assert [line.partition(":")[0] for line in lines if line[0] != " "] == [
        "manhattan-checkins v1",
        "in all",
        "rejected",
        "disk",
    ]


def test_a_running_job_has_its_position(tmp_path: Path) -> None:
    save(folder_of(tmp_path).path, ESTIMATE)
    watermark = now_ms() - 240_000
    put(tmp_path, replace(HERE, watermark=watermark, spec_refused=2))
    with locked(tmp_path, "--to"):
        status = Status.of(tmp_path)
    assert (status.running, status.position) == (True, replace(HERE, watermark=watermark, spec_refused=2))
    lines = list(status.lines())
    assert lines[0] == "job: none has begun; running"
    assert lines[1] == f"  40 messages of 3 segments read since {iso(1_000)} by process 7, 2 segments to go"
    assert lines[2] == f"  watermark {iso(watermark)}, 4 min behind the clock"
    assert "  2 files of specs refused; the job's log says why" in lines
    assert (status.to_json()["spec_refused"], status.to_json()["lag_seconds"] >= 240) == (2, True)


def test_a_job_that_was_killed_is_told_from_one_that_runs(tmp_path: Path) -> None:
    save(folder_of(tmp_path).path, ESTIMATE)
    put(tmp_path, replace(HERE, watermark=None))
    lines = list(Status.of(tmp_path).lines())
    assert lines[2:4] == ["  no watermark yet", f"  it was killed after {iso(2_000)}; start it again, and it goes on"]


def test_a_job_that_ended_says_where_it_goes_on(tmp_path: Path) -> None:
    save(folder_of(tmp_path).path, ESTIMATE)
    point = {"job": "x", "first": "000000000000.avro", "first_watermark": None, "segment": "000000000001.avro"}
    journal = {"size": 0, "digest": "0" * 64}
    text = json.dumps({**point, "watermark": START, "last": "000000000001.avro", "journal": journal})
    (tmp_path / "resume.json").write_text(text)
    assert f"  it goes on at the watermark {iso(START)} when it is started again" in list(Status.of(tmp_path).lines())


def test_old_private_files_have_an_age(tmp_path: Path) -> None:
    save(folder_of(tmp_path / "out").path, ESTIMATE)
    old = tmp_path / "private" / "ids" / "a.avro"
    old.parent.mkdir(parents=True)
    old.write_bytes(bytes(1_500))
    three_days_ago = now_ms() / 1000 - 3 * 86_400 - 60
    os.utime(old, (three_days_ago, three_days_ago))
    (disk,) = [line for line in Status.of(tmp_path / "out", tmp_path / "private").lines() if line.startswith("disk")]
    assert "ids 1.5 kB (the oldest 3 d)" in disk


def test_flags_missing_and_damage_are_said(tmp_path: Path) -> None:
    accounting = Accounting(received=110, counted=100, rejected=10, missing=90)
    save(folder_of(tmp_path).path, replace(ESTIMATE, accounting=accounting, flags=("incomplete",)))
    shared = tmp_path / "counts" / "x.avro"
    shared.write_bytes(b"damaged")
    lines = list(Status.of(tmp_path).lines())
    assert "  of this window, 9.09% rejected, at most 45.00% missing" in lines
    assert "  flagged: 1 incomplete" in lines
    assert any(fault.startswith(f"{shared}: damaged") for fault in Status.of(tmp_path).faults)


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_a_damaged_identity_is_named(uldp: Run, tmp_path: Path, text: str) -> None:
    save(folder_of(tmp_path).path, ESTIMATE)
    path = tmp_path / "job.json"
    path.write_text(text)
    code, out, err = uldp("status", tmp_path)
    assert (code, out.splitlines()[0]) == (1, "job: unknown, for job.json is damaged or missing; not running")
    assert err.splitlines()[0] == (
        f"error: {path}: not the identity of a job; restore the original file, or choose another --to"
    )


def test_a_job_without_its_identity_is_no_job_that_has_not_begun(uldp: Run, backfilled: Path, tmp_path: Path) -> None:
    out = shutil.copytree(backfilled, tmp_path / "results")
    (out / "job.json").unlink()
    code, _, err = uldp("status", out)
    assert code == 1
    assert (
        err.splitlines()[0]
        == f"error: {out / 'job.json'}: missing, as is merged.json, beside journal.jsonl; restore it"
    )


@pytest.mark.parametrize("name", ["resume.json", "left_out.json", "pruned.json", "journal.jsonl"])
def test_a_damaged_file_of_the_job_is_named(uldp: Run, backfilled: Path, tmp_path: Path, name: str) -> None:
    out = shutil.copytree(backfilled, tmp_path / "results")
    (out / name).write_text("no\n")
    code, _, err = uldp("status", out)
    assert (code, str(out / name) in err) == (1, True)


def test_a_job_that_has_not_begun_is_healthy(uldp: Run, tmp_path: Path) -> None:
    code, out, _ = uldp("status", tmp_path)
    assert (code, out.splitlines()[0]) == (0, "job: none has begun; not running")

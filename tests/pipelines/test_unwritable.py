"""Files that cannot be written: one line with the file and the remedy, nothing half, and the next run works."""

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import build
from tests.build import START
from tests.pipelines.command import SPEC, TRUTH, Run, with_room
from uldp.pipelines.aside import written_aside
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message
from uldp.transforms.io.local.stream import LocalStream

REPORTS = 2_000
ONE_EACH = f"""
collection: one-each
version: 1
domain: {{size: {REPORTS}}}
mechanism: {{name: identity}}
window: {{size: 1h}}
limits: {{min_reports: 1}}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "message"), [("backfill", "File exists"), ("stream", "File too large")], ids=["in the way", "no room"]
)
def test_the_job_fails_loudly_and_resumes_without_loss(
    command: str, message: str, uldp: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.yaml").write_text(ONE_EACH, encoding="utf-8")
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    reports = [build.report(symbol, symbol, START + symbol, ("one-each", 1)) for symbol in range(REPORTS)]
    stream.append([Message(report.encode(), report.event_time) for report in reports])
    stream.close()
    out = tmp_path / "out"
    arguments = [command, "--spec", "spec.yaml", "--from", "stream", "--to", "out"]

    # What is in the way is so in a directory of the same job: any other is refused before.
    assert uldp(*arguments)[0] == 0
    for folder in ("counts", "estimates"):
        shutil.rmtree(out / folder)

    if command == "backfill":
        (out / "estimates").write_text("in the way")
        code, _, errors = uldp(*arguments)
        (out / "estimates").unlink()
    else:  # the file of an estimate takes more bytes than the limit
        failed = subprocess.run(with_room(2_000, *arguments), capture_output=True, text=True)
        code, errors = failed.returncode, failed.stderr
    assert code == 1
    assert message in errors.splitlines()[-1]
    assert not list(out.rglob("*.tmp"))  # nor half a file

    assert uldp(*arguments)[0] == 0
    (pane,) = newest(ResultsFolder(out).statistics())
    assert pane.cells.tolist() == [1] * REPORTS
    assert pane.accounting == Accounting(received=REPORTS, counted=REPORTS)


SIMULATE = ["simulate", SPEC, "--truth", TRUTH, "--users", "50000", "--to", "stream"]


def test_a_failed_simulation_runs_again(uldp: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failed = subprocess.run(with_room(2_000, *SIMULATE), capture_output=True, text=True)
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: stream/000000000000.avro: File too large; raise the limit ")
    assert len(failed.stderr.splitlines()) == 1
    assert uldp(*SIMULATE)[0] == 0
    assert sorted(path.name for path in Path("stream").iterdir() if path.suffix != ".avro") == ["closed", "stream.json"]
    assert "not an empty directory" in uldp(*SIMULATE)[2]


@pytest.mark.slow
def test_a_demo_ends_when_its_devices_cannot_write(tmp_path: Path) -> None:
    """Its job would wait for their segments for ever."""
    # More than the files with which a job begins.
    command = with_room(100_000, "demo", "--out", tmp_path / "demo", "--speed", "1e6")
    failed = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert failed.returncode == 1
    segment = tmp_path / "demo" / "stream" / "000000000000.avro"
    assert failed.stderr.startswith(f"error: {segment}: File too large; ")
    assert len(failed.stderr.splitlines()) == 1


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "page").write_text("older")
    (tmp_path / "link").symlink_to("page")

    def fail() -> None:
        with written_aside(tmp_path / "link") as path:
            path.write_text("half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match=r"page: No space left on device; free some space"):
        fail()
    assert (tmp_path / "page").read_text() == "older"
    with written_aside(tmp_path / "link") as path:
        path.write_text("newer")
    assert (tmp_path / "page").read_text() == "newer"
    assert (tmp_path / "link").is_symlink()
    assert len(list(tmp_path.iterdir())) == 2

"""Files that cannot be written: one line with the file and the remedy, nothing half, and the next run works."""

import errno
import os
import subprocess
from pathlib import Path

import pytest

from tests.pipelines.command import SPEC, TRUTH, Run, with_room
from uldp.pipelines.aside import written_aside

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


def test_zones_that_cannot_be_written_leave_the_older_ones(tmp_path: Path) -> None:
    zones = tmp_path / "zones.csv"
    zones.write_text("older")
    command = with_room(100, "zones", SPEC, "--tag", "home", "--to", zones)
    failed = subprocess.run(command, capture_output=True, text=True)
    assert (failed.returncode, failed.stderr.startswith(f"error: {zones}: File too large; ")) == (1, True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["older"]


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

"""Raw reports are for their owner alone, and what a killed writer leaves goes away."""

import os
from pathlib import Path
from stat import S_IMODE

import pytest

from tests import build
from uldp.transforms.io.local.begun import begun, remove_abandoned
from uldp.transforms.io.local.stream import LocalStream

HOUR = 3600


@pytest.fixture(autouse=True)
def _usual_umask() -> None:
    os.umask(0o022)


@pytest.mark.parametrize("made", ["create", "begun"])
def test_nobody_else_reads_a_stream(made: str, tmp_path: Path) -> None:
    path = tmp_path / "above" / "stream"
    if made == "create":
        LocalStream.create(path).append([build.message(build.report(1, 3))])
    else:
        with begun(path, simulated_clock=True) as stream:
            stream.append([build.message(build.report(1, 3))])
    (segment,) = path.glob("*.avro")
    assert (S_IMODE(path.stat().st_mode), S_IMODE(segment.stat().st_mode)) == (0o700, 0o600)
    assert S_IMODE(path.parent.stat().st_mode) == 0o755


def test_old_segments_without_a_number_are_removed_and_all_else_stays(tmp_path: Path) -> None:
    stream = LocalStream.create(tmp_path / "stream")
    segment = stream.append([build.message(build.report(1, 3))])
    old, new, other, folder = (stream.path / f".{name * 16}" for name in ("a", "b", "x", "c"))
    for path in (old, new, other):
        path.write_bytes(b"half")
    folder.mkdir()
    for path in (old, other, segment):
        os.utime(path, (path.stat().st_atime - 2 * HOUR, path.stat().st_mtime - 2 * HOUR))
    remove_abandoned(stream.path)
    assert {*stream.path.iterdir()} == {stream.path / "stream.json", segment, new, other, folder}

"""A stream that one command writes: its mark, who may begin anew, whom it is for, and what a killed writer leaves."""

import os
from pathlib import Path
from stat import S_IMODE

import pytest

from uldp.schemas.records import Message
from uldp.transforms.io.local.begun import begun, is_unfinished, remove_abandoned
from uldp.transforms.io.local.stream import UNFINISHED, LocalStream
from uldp.transforms.io.message_files import StreamError


def write(path: Path, *times: int) -> None:
    with begun(path, simulated_clock=True) as stream:
        for time in times:
            stream.append([Message(b"", time)])


def test_the_mark_is_there_until_the_end(tmp_path: Path) -> None:
    with begun(tmp_path, simulated_clock=True) as stream:
        stream.append([Message(b"", 1)])
        assert is_unfinished(tmp_path)
    assert not is_unfinished(tmp_path)
    assert (stream.closed, len(stream.segments())) == (True, 1)
    assert not (tmp_path / UNFINISHED).exists()


def test_a_command_that_fails_is_begun_anew(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write(tmp_path, 1, 2, "no time")  # type: ignore[arg-type]
    assert len(LocalStream.open(tmp_path).segments()) == 2
    assert is_unfinished(tmp_path)
    (left := tmp_path / f".closed.{'0' * 16}.tmp").touch()
    write(tmp_path, 3)
    assert len(LocalStream.open(tmp_path).segments()) == 1
    assert not left.exists()


def test_two_commands_do_not_write_at_a_time(tmp_path: Path) -> None:
    with begun(tmp_path, simulated_clock=True) as stream:
        with pytest.raises(StreamError, match="another command is writing to it; wait for its end"):
            write(tmp_path, 1)
        stream.append([Message(b"", 1)])
    assert len(stream.segments()) == 1


def test_nobody_begins_anew_between_the_end_and_the_removal_of_the_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock has ended by then, because Windows removes no open file."""
    unlink = Path.unlink

    def another_first(path: Path, missing_ok: bool = False) -> None:
        if path.name == UNFINISHED:
            with pytest.raises(StreamError, match="not an empty directory; choose another directory"):
                write(tmp_path, 9)
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", another_first)
    write(tmp_path, 1, 2)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "000000000000.avro",
        "000000000001.avro",
        "closed",
        "stream.json",
    ]


def test_a_mark_that_was_left_at_the_end_keeps_no_command_from_an_emptied_directory(tmp_path: Path) -> None:
    (tmp_path / UNFINISHED).write_bytes(b"ended\n")
    with pytest.raises(RuntimeError), begun(tmp_path, simulated_clock=True):
        raise RuntimeError
    write(tmp_path, 1)
    assert not is_unfinished(tmp_path)


@pytest.mark.parametrize("made", ["create", "begun"])
def test_nobody_else_reads_a_stream(made: str, tmp_path: Path) -> None:
    os.umask(0o022)
    path = tmp_path / "above" / "stream"
    if made == "create":
        LocalStream.create(path).append([Message(b"", 1)])
    else:
        with begun(path, simulated_clock=True) as stream:
            stream.append([Message(b"", 1)])
    (segment,) = path.glob("*.avro")
    assert (S_IMODE(path.stat().st_mode), S_IMODE(segment.stat().st_mode)) == (0o700, 0o600)
    assert S_IMODE(path.parent.stat().st_mode) == 0o755


def test_old_segments_without_a_number_are_removed_and_all_else_stays(tmp_path: Path) -> None:
    stream = LocalStream.create(tmp_path / "stream")
    segment = stream.append([Message(b"", 1)])
    old, new, other, folder = (stream.path / f".{name * 16}" for name in ("a", "b", "x", "c"))
    for path in (old, new, other):
        path.write_bytes(b"half")
    folder.mkdir()
    for path in (old, other, segment):
        os.utime(path, (path.stat().st_atime - 2 * 3600, path.stat().st_mtime - 2 * 3600))
    remove_abandoned(stream.path)
    assert {*stream.path.iterdir()} == {stream.path / "stream.json", segment, new, other, folder}

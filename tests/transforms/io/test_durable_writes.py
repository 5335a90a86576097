"""A file is on the disk before it has its name, and its name before the writer returns."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from stat import S_ISDIR

import pytest
from apache_beam.io.filesystems import FileSystems

from tests import build
from tests.build import HOUR, START
from tests.fakes import memory
from uldp.schemas.records import Message
from uldp.transforms.io import durable_files
from uldp.transforms.io.durable_files import remove_aside, remove_file, write_file, write_files
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.results.write import write_statistics


def path_of(descriptor: int) -> Path:
    """The path of an open file or folder."""
    return Path(f"/proc/self/fd/{descriptor}").readlink()


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done to the disk, in order; an fsync of a file says how many bytes the file holds by then."""
    done: list[str] = []

    def fsync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        folder = f"folder {path_of(descriptor).name}"
        done.append(folder if S_ISDIR(status.st_mode) else f"file of {status.st_size}")

    def rename(path: str, target: str) -> None:
        done.append("rename")
        put(path, target)

    put: Callable[[str, str], None] = os.replace
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", rename)
    return done


def test_a_file_is_synchronized_before_it_is_named_and_its_folder_after(tmp_path: Path, steps: list[str]) -> None:
    write_file(str(tmp_path / "b"), b"four")
    assert steps == ["file of 4", "rename", f"folder {tmp_path.name}"]


def test_no_name_of_a_bundles_files_and_folders_is_lost_in_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synchronized: set[Path] = set()
    monkeypatch.setattr(os, "fsync", lambda descriptor: synchronized.add(path_of(descriptor)))
    out, private = tmp_path / "out", tmp_path / "private"
    write = write_statistics(str(out), str(private))
    write.start_bundle()
    for hour, flags in enumerate([(), ("few_reports",)]):
        write.process(replace(build.pane([3, 0], start=START + hour * HOUR), flags=flags))
    write.finish_bundle()
    names = [path for root in (out, private) for path in (root, *root.rglob("*"))]
    assert sum(path.is_file() for path in names) == 2
    assert {path.parent for path in names} <= synchronized


def test_a_segment_of_a_stream_has_its_name_on_the_disk_before_the_writer_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synchronized: list[tuple[Path, list[Path]]] = []

    def fsync(descriptor: int) -> None:
        path = path_of(descriptor)
        synchronized.append((path, [*path.parent.glob("*.avro"), *path.glob("*.avro")]))

    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    monkeypatch.setattr(os, "fsync", fsync)
    segment = stream.append([Message(b"m", START)])
    (aside, before), last = synchronized
    assert (aside.parent, before, last) == (stream.path, [], (stream.path, [segment]))


def test_a_file_that_cannot_be_synchronized_gets_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error"):
        write_file(str(tmp_path / "a"), b"four")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [0, 1, 2, 100])
def test_files_are_written_together(tmp_path: Path, number: int) -> None:
    write_files([(str(tmp_path / f"{n % 7}" / f"{n}"), b"%d" % n) for n in range(number)])
    assert sorted(int(path.read_bytes()) for path in tmp_path.glob("*/*")) == list(range(number))


def test_a_file_that_cannot_be_written_fails_all(tmp_path: Path) -> None:
    (tmp_path / "1").write_text("in the way")
    with pytest.raises(FileExistsError):
        write_files([(str(tmp_path / f"{n}" / "x" / "y"), b"") for n in range(3)])


def test_files_elsewhere_are_written_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(durable_files, "ThreadPoolExecutor")
    monkeypatch.setattr(memory, "FILES", {})  # other tests may have left some
    write_files([(f"mem://out/{n}", b"%d" % n) for n in range(3)])
    assert {f"mem://out/{n}": b"%d" % n for n in range(3)} == memory.FILES


def test_a_killed_writer_leaves_nothing_that_a_reader_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(path: str, target: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed)
        patched.setattr(os, "unlink", lambda path: None)
        with pytest.raises(KeyboardInterrupt):
            write_file(str(tmp_path / "few" / "a.avro"), b"half")
    write_file(str(tmp_path / "few" / "b.avro"), b"whole")
    assert len(list((tmp_path / "few").iterdir())) == 2
    for pattern in ("*.avro", ".*.avro", "*.csv", "[0-9]*"):
        assert {path.name for path in tmp_path.rglob(pattern)} <= {"b.avro"}
    assert (remove_aside(tmp_path), remove_aside(tmp_path)) == (1, 0)
    assert [path.name for path in (tmp_path / "few").iterdir()] == ["b.avro"]


def test_a_folder_that_goes_before_its_first_file_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``uldp compact`` removes folders that are empty."""
    made, gone = durable_files.make_folder, list[Path]()

    def make(folder: Path, mode: int = 0o777) -> None:
        made(folder, mode)
        if folder.name == "window" and len(gone) < 3:
            folder.rmdir()
            gone.append(folder)

    monkeypatch.setattr(durable_files, "make_folder", make)
    write_file(str(tmp_path / "window" / "1.avro"), b"1")
    assert (tmp_path / "window" / "1.avro").read_bytes() == b"1"
    assert len(gone) == 3


@pytest.mark.parametrize("scheme", ["", "mem://"])
def test_a_file_that_is_gone_is_removed_again(tmp_path: Path, scheme: str) -> None:
    path = f"{scheme}{tmp_path}/pane.avro"
    write_file(path, b"pane")
    assert FileSystems.exists(path)
    for _ in range(2):
        remove_file(path)
        assert not FileSystems.exists(path)

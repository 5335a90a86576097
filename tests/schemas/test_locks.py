"""Locks: by flock, and by the module of Windows, for which the stand-in of ``tests.elsewhere`` is used."""

import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.elsewhere import msvcrt
from uldp.schemas import locks
from uldp.schemas.locks import NoLocksError, locked_file, locked_folder, open_folder, release, try_lock


@pytest.fixture(params=["Linux", "Windows"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "Windows":
        monkeypatch.setattr(locks, "_FCNTL", None)
        monkeypatch.setattr(locks, "_MSVCRT", msvcrt(fcntl.flock))
    return str(request.param)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    yield descriptor
    release(descriptor)


@pytest.mark.usefixtures("system")
def test_one_holds_the_lock_of_a_file_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with opened(path) as other:
        with opened(path) as one:
            assert try_lock(one, path)
            assert not try_lock(other, path)
        assert try_lock(other, path)  # the first has released it
    assert path.read_bytes() == b""


@pytest.mark.usefixtures("system")
def test_who_waits_enters_when_the_other_leaves(tmp_path: Path) -> None:
    path, entered = tmp_path / "file", threading.Event()

    def enter() -> None:
        with locked_file(path):
            entered.set()

    with locked_file(path):
        waiting = threading.Thread(target=enter)
        waiting.start()
        assert not entered.wait(0.1)
    waiting.join(60)
    assert entered.is_set()
    assert path.stat().st_mode & 0o777 == 0o600


def test_those_who_share_a_lock_of_a_folder_exclude_who_does_not(tmp_path: Path) -> None:
    one, two, three = (open_folder(tmp_path) for _ in range(3))
    assert try_lock(one, tmp_path, shared=True)
    assert try_lock(two, tmp_path, shared=True)
    assert not try_lock(three, tmp_path)
    os.close(one)
    os.close(two)
    assert try_lock(three, tmp_path)
    os.close(three)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_nobody_may_write_can_be_locked(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with locked_folder(tmp_path):
        other = open_folder(tmp_path)
        assert not try_lock(other, tmp_path, shared=True)
        os.close(other)


def test_windows_has_no_locks_of_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(locks, "_FCNTL", None)
    with pytest.raises(NoLocksError, match=r"^\S+: only Linux and macOS have locks of folders, .* container$"):
        open_folder(tmp_path)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_without_locks_is_named(number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    for lock, path in ((locked_file, tmp_path / "file"), (locked_folder, tmp_path)):
        with (
            pytest.raises(NoLocksError, match=rf"^{path}: the file system has no locks; choose a folder on"),
            lock(path),
        ):
            pass


def test_another_error_is_that_of_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(OSError, match="Input/output error"), locked_file(tmp_path / "file"):
        pass

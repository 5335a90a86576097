"""Locks between processes, each on an open file or folder. The system ends a lock with its process.

Linux and macOS have ``flock``, on files and on folders, which excludes nobody who does not ask for the lock. Windows
locks bytes of a file, and nobody else reads or writes these bytes then: so the lock is on one byte far behind the end
of the file.
"""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from uldp.schemas.errors import EndpointError
from uldp.schemas.regular_files import FOLDER, NO_LINK, NO_WAIT, is_at
from uldp.schemas.specs.mistakes import plain


def system_module(name: str) -> Any:
    """Return a module of the standard library; None on a system that lacks it."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return None


#: Linux and macOS have the first, Windows the second.
_FCNTL, _MSVCRT = system_module("fcntl"), system_module("msvcrt")
#: The byte that Windows locks; it counts bytes in 31 bits.
_FAR = 1 << 30
#: Seconds until Windows is asked again: it has no call that waits for as long as another process holds a lock.
_AGAIN = 0.02
#: The errors of a lock that another process holds: of flock, and of Windows.
_HELD = (errno.EWOULDBLOCK, errno.EACCES)
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


class NoLocksError(EndpointError):
    """The system, or a file system, has no such locks."""


def open_folder(folder: Path) -> int:
    """Return a descriptor of a folder, to lock; NoLocksError where there are no such locks, else OSError."""
    if _FCNTL is None or not FOLDER:
        raise NoLocksError(
            f"{plain(str(folder))}: only Linux and macOS have locks of folders, which a job needs; run it there, in"
            " WSL, or in a container"
        )
    return os.open(folder, os.O_RDONLY | FOLDER)


def try_lock(descriptor: int, path: Path, *, shared: bool = False, wait: bool = False) -> bool:
    """Lock an open file or folder, or wait for it, if another process holds its lock; return whether it is locked.

    A ``shared`` lock others may hold too who share it; Windows shares none. NoLocksError if the system or the file
    system has no locks. OSError if it refuses the lock for another reason.
    """
    while True:
        try:
            if _FCNTL is None:
                _lock_byte(descriptor, "LK_NBLCK")
            else:
                mode = _FCNTL.LOCK_SH if shared else _FCNTL.LOCK_EX
                _FCNTL.flock(descriptor, mode | (0 if wait else _FCNTL.LOCK_NB))
            return True
        except OSError as error:
            if error.errno in _NO_LOCKS:
                raise NoLocksError(
                    f"{plain(str(path))}: the file system has no locks; choose a folder on a disk of this machine"
                ) from error
            if error.errno not in _HELD:
                raise
        if not wait:
            return False
        time.sleep(_AGAIN)


def release(descriptor: int) -> None:
    """End the lock of a file, if this process holds it, and close the file."""
    if _FCNTL is None:  # Windows would end it some time after the closing
        with suppress(OSError):  # if this process does not hold it
            _lock_byte(descriptor, "LK_UNLCK")
    os.close(descriptor)


@contextmanager
def locked_file(path: Path) -> Iterator[int]:
    """Wait for the lock of a file, which is created, and hold it until the context ends; give its descriptor.

    Whether the file was removed or replaced meanwhile, and with it the lock, ``is_at`` says. NoLocksError if the system
    or the file system has no locks. OSError if the file cannot be opened; a link is none.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | NO_LINK | NO_WAIT, 0o600)
        try:
            try_lock(descriptor, path, wait=True)
        except BaseException:
            os.close(descriptor)
            raise
        if is_at(descriptor, path):
            break
        release(descriptor)  # removed or replaced since it was opened: another process may hold the lock of the new one
    try:
        yield descriptor
    finally:
        release(descriptor)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder until the context ends; NoLocksError where there are none, else OSError."""
    descriptor = open_folder(folder)
    try:
        try_lock(descriptor, folder, wait=True)
        yield
    finally:
        os.close(descriptor)


def _lock_byte(descriptor: int, mode: str) -> None:
    if _MSVCRT is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    os.lseek(descriptor, _FAR, os.SEEK_SET)
    _MSVCRT.locking(descriptor, getattr(_MSVCRT, mode), 1)

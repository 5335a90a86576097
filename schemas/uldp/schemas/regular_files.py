"""Regular files: opened without waiting, read up to a bound, and JSON in them read strictly.

Other modules ask this one for what some systems or file systems lack: flags, the rights of other users, and folders
that can be synchronized.
"""

import errno
import json
import os
import stat
from pathlib import Path
from typing import IO, Any, NoReturn

from uldp.schemas.errors import DataError

#: Flags of ``os.open``, 0 where the system has none: not to wait for the writer of a pipe, to refuse a link, and to
#: open a folder. Windows opens no folder.
NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)
NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)
FOLDER: int = getattr(os, "O_DIRECTORY", 0)


def open_regular(path: str | Path) -> IO[bytes]:
    """Open a regular file; OSError if that is not possible, ValueError if it is a pipe or a device."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | NO_WAIT))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise DataError("is a pipe or a device, not a file")
    return file


def read_bounded(file: IO[bytes], limit: int) -> bytes:
    """Read an open file; ValueError, before it is read, if it has more than ``limit`` bytes."""
    too_long = os.fstat(file.fileno()).st_size > limit
    data = b"" if too_long else file.read(limit + 1)  # one more, because it may have grown
    if too_long or len(data) > limit:
        raise DataError(f"the file has more than {limit:,} bytes")
    return data


def read_regular(path: str | Path, limit: int = 1 << 20) -> bytes:
    """Read a file that may be hostile; OSError, or ValueError if it is not regular or has more than ``limit`` bytes."""
    with open_regular(path) as file:
        return read_bounded(file, limit)


def is_at(descriptor: int, path: Path) -> bool:
    """Return whether a path still leads to an open file or directory, and not to none or to another one.

    Who waits for a lock asks this when it is held: another process may have removed the file meanwhile, and a third one
    may hold the lock of the new file at its path.
    """
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def others_may(status: os.stat_result, rights: int) -> bool:
    """Return whether a file's mode gives others some of these rights; on Windows, which has no modes, never."""
    return os.name == "posix" and bool(status.st_mode & rights)


def sync_folder(folder: str | Path) -> None:
    """Write the names in a folder to the disk, if the system and the file system can."""
    if not FOLDER:
        return
    descriptor = os.open(folder, os.O_RDONLY | FOLDER)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # so says a file system that synchronizes files alone
            raise
    finally:
        os.close(descriptor)


def read_json(path: Path, limit: int = 1 << 20) -> Any:
    """Read a small file of JSON, which may be hostile; errors as ``read_regular`` and ``parse_json``."""
    return parse_json(read_regular(path, limit))


def parse_json(written: bytes) -> Any:
    """Read a JSON text in UTF-8, and nothing else that Python takes for JSON.

    ValueError if it is none; also if it is nested too deeply, has a key twice, or a number that is not finite or has
    thousands of digits. The message holds none of it.

    >>> parse_json(b'{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    """
    try:
        return json.loads(written.decode(), object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        pass
    raise DataError("not JSON")  # not from the error above, which holds what was written


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DataError("a key occurs twice")
    return found


def _finite(number: str) -> float:
    value = float(number)
    if value in (float("inf"), float("-inf")):
        raise DataError("a number is too large")
    return value


def _no_constant(_: str) -> NoReturn:
    raise DataError("NaN and Infinity are not JSON")

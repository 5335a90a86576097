"""Errors of the operating system about files, as one line that names the file and the remedy."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from uldp.schemas.specs.mistakes import plain

_REMEDIES = {
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path: a part of it is a file",
    errno.EISDIR: "name a file, not a directory",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "remove the link that leads to itself",
    errno.EEXIST: "move away the file that is in the way, and run the same command again",
    errno.ENOTEMPTY: "move away what the directory holds, and run the same command again",
    errno.EACCES: "check the permissions",
    errno.EPERM: "check the permissions",
    errno.EROFS: "choose a place that can be written",
    errno.ENOSPC: "free some space there, and run the same command again",
    errno.EDQUOT: "free some space there, and run the same command again",
    errno.EFBIG: "raise the limit of the size of files (ulimit -f), and run the same command again",
    errno.EMFILE: "raise the limit of open files (ulimit -n), and run the same command again",
    errno.ENFILE: "close other programs, and run the same command again",
    errno.ENOMEM: "close other programs, and run the same command again",
    errno.EIO: "check the disk",
}


@contextmanager
def named(path: str | Path) -> Iterator[None]:
    """Let the operating system's errors in the context name a file and the remedy, in one line.

    An error of a write or of a flush names none, and the error of a temporary file names one that no user knows.
    OSError in place of another one of the same class.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:  # it has its line
            raise
        raise type(error)(_line(str(path), error)) from error


def file_error_text(error: OSError) -> str:
    """Return an error of the operating system as one line.

    >>> file_error_text(FileNotFoundError(errno.ENOENT, "No such file or directory", "spec.yaml"))
    'spec.yaml: No such file or directory; check the path'
    """
    if error.errno is None:
        return str(error)
    name = error.filename.decode(errors="replace") if isinstance(error.filename, bytes) else error.filename
    return _line(None if name is None else str(name), error)


def _line(path: str | None, error: OSError) -> str:
    remedy = _REMEDIES.get(error.errno or 0, "check the path and its permissions")
    reason = error.strerror or str(error) or type(error).__name__
    return f"{reason}; {remedy}" if path is None else f"{plain(path)}: {reason}; {remedy}"

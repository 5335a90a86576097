"""A new local stream that one command writes from its beginning to its end, such as a simulation.

If the command fails or is killed before its end, a mark stays in the directory, and the same command begins anew.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from uldp.schemas.file_errors import named
from uldp.schemas.regular_files import is_at
from uldp.transforms.io.durable_files import make_folder
from uldp.transforms.io.folders import CLOSED, STREAM_SETTINGS
from uldp.transforms.io.local.stream import UNFINISHED, LocalStream
from uldp.transforms.io.message_files import StreamError


@contextmanager
def begun(path: Path, *, simulated_clock: bool) -> Iterator[LocalStream]:
    """Begin a stream, and close it if all goes well. An unfinished stream of an earlier command is removed before.

    Raises:
        StreamError: if the directory holds anything else, or another command is writing to it.
        OSError: if the operating system refuses to write to it.
    """
    mark = path / UNFINISHED
    if not mark.exists():
        LocalStream.refuse_used(path)
    with named(path):
        make_folder(path.absolute())
        file = mark.open("a")
    with file:  # and its lock
        if not _lock(file, mark):
            raise StreamError(
                f"{path}: another command is writing to it; wait for its end, or choose another directory"
            )
        _clear(path)
        stream = LocalStream.create(path, simulated_clock=simulated_clock)
        yield stream
        stream.close()
        mark.unlink()


def is_unfinished(path: Path) -> bool:
    """Return whether a directory holds nothing yet, or a stream whose command did not come to its end."""
    return path.is_dir() and ((path / UNFINISHED).exists() or not any(path.iterdir()))


def _lock(file: IO[str], mark: Path) -> bool:
    """Lock the open mark; return whether it is locked and still there: the end of another command removes it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return is_at(file.fileno(), mark)


def _clear(path: Path) -> None:
    """Remove the segments and the settings of an unfinished stream, and segments that were not named yet."""
    segments, unnamed = path.glob(f"{'[0-9]' * 12}.avro"), path.glob(f".{'[0-9a-f]' * 16}")
    for left in (*segments, *unnamed, path / STREAM_SETTINGS, path / CLOSED):
        left.unlink(missing_ok=True)

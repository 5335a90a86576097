"""A new local stream that one command writes to its end; a mark stays until then, by which it begins anew."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from uldp.schemas.file_errors import named
from uldp.schemas.locks import release, try_lock
from uldp.schemas.regular_files import is_at
from uldp.transforms.io.durable_files import remove_aside
from uldp.transforms.io.folders import CLOSED, STREAM_SETTINGS
from uldp.transforms.io.local.stream import UNFINISHED, LocalStream, make_stream_folder
from uldp.transforms.io.message_files import StreamError

#: What the mark holds once the stream is whole, so that nobody who locks it before it is removed begins anew.
_ENDED = b"ended\n"
#: A segment before it has a number, and the seconds after which its writer is no more.
_UNNAMED, _ABANDONED = f".{'[0-9a-f]' * 16}", 3600.0


@contextmanager
def begun(path: Path, *, simulated_clock: bool) -> Iterator[LocalStream]:
    """Begin a stream, in place of an unfinished one of an earlier command, and close it if all goes well.

    StreamError if the directory holds anything else, or another command is writing to it; NoLocksError if the file
    system has no locks; OSError if the operating system refuses to write to it.
    """
    mark = path / UNFINISHED
    if not mark.exists():
        LocalStream.refuse_used(path)
    make_stream_folder(path)
    with named(path):
        descriptor = os.open(mark, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        if not (try_lock(descriptor, mark) and is_at(descriptor, mark)):  # the end of another command removes it
            raise StreamError(
                f"{path}: another command is writing to it; wait for its end, or choose another directory"
            )
        if os.fstat(descriptor).st_size:  # another command has come to its end since the look above
            LocalStream.refuse_used(path)
            os.ftruncate(descriptor, 0)
        _clear(path)
        stream = LocalStream.create(path, simulated_clock=simulated_clock)
        yield stream
        stream.close()
        os.write(descriptor, _ENDED)
    finally:
        release(descriptor)
    mark.unlink()  # last, because Windows removes no open file


def is_unfinished(path: Path) -> bool:
    """Return whether a directory holds nothing yet, or a stream whose command did not come to its end."""
    return path.is_dir() and ((path / UNFINISHED).exists() or not any(path.iterdir()))


def remove_abandoned(path: Path) -> None:
    """Remove segments that a killed writer left without a number an hour ago or more; others may be writing there."""
    for left in path.glob(_UNNAMED):
        with suppress(FileNotFoundError):  # it has a number now
            if time.time() - left.lstat().st_mtime > _ABANDONED:
                left.unlink()


def _clear(path: Path) -> None:
    """Remove the segments and the settings of an unfinished stream, and files that were not named yet."""
    for left in (*path.glob(f"{'[0-9]' * 12}.avro"), *path.glob(_UNNAMED), path / STREAM_SETTINGS, path / CLOSED):
        left.unlink(missing_ok=True)
    remove_aside(path)

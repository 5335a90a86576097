"""Files on those of Beam's file systems that are not this machine's, such as ``gs://``: told of in one line each."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems


class RemoteError(ValueError):
    """A file or folder that cannot be read; the message says why."""


def is_remote(path: str) -> bool:
    """Whether a path is a URL."""
    return "://" in path


def matching(pattern: str) -> list[str]:
    """Return the files of a pattern in order of name, without hidden ones; ``**`` stands for any folders too.

    Raises:
        RemoteError: if there is no such file system, or it does not answer well.
    """
    with _told(pattern):
        (found,) = FileSystems.match([pattern])
    paths = sorted(file.path for file in found.metadata_list)
    return [path for path in paths if not path.rpartition("/")[2].startswith(".")]


@contextmanager
def fetched(url: str) -> Iterator[IO[bytes]]:
    """Give a file as a local one, so that what fails on the way is not taken for what is in the file.

    Raises:
        RemoteError: if it cannot be fetched.
    """
    with tempfile.TemporaryFile() as local:
        with _told(url), FileSystems.open(url) as file:
            shutil.copyfileobj(file, local, length=1 << 20)
        local.seek(0)
        yield local


@contextmanager
def _told(url: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # each file system raises what its client library does
        reason = error
        while isinstance(reason, BeamIOError) and reason.exception_details:  # by what was asked for, which we know
            reason = next(iter(reason.exception_details.values()))
        lines = str(reason).strip().splitlines() or [repr(reason)]
        raise RemoteError(f"{url}: {lines[0]}") from error

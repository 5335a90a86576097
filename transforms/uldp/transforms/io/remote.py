"""Files on those of Beam's file systems that are not this machine's, such as ``gs://``: told of in one line each."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import IO

from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem
from apache_beam.io.filesystems import FileSystems


class RemoteError(ValueError):
    """A file or folder that cannot be read; the message says why."""


def is_remote(path: str) -> bool:
    """Whether a path is a URL."""
    return "://" in path


def matching(pattern: str) -> list[FileMetadata]:
    """Return the files of a pattern in order of name, without hidden ones; ``**`` stands for any folders too.

    Raises:
        RemoteError: if there is no such file system, or it does not answer well.
    """
    with _told(pattern):
        (found,) = FileSystems.match([pattern])
    files = sorted(found.metadata_list, key=attrgetter("path"))
    return [file for file in files if not file.path.rpartition("/")[2].startswith(".")]


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


#: What to install for the file systems that Beam knows and does not bring.
_EXTRAS = {
    "gs": "uldp-stream[gcp]",
    "s3": "apache-beam[aws]",
    "hdfs": "apache-beam[hadoop]",
    "azfs": "apache-beam[azure]",
}


def check_scheme(url: str) -> None:
    """Look whether there is a file system for a URL.

    Raises:
        RemoteError: if there is none; says what to install.
    """
    scheme = url.partition("://")[0]
    if scheme not in {system.scheme() for system in FileSystem.get_all_subclasses()}:
        known = ", ".join(f"{name}://" for name in sorted(_EXTRAS))
        install = f"install it: pip install '{_EXTRAS[scheme]}'" if scheme in _EXTRAS else f"known are {known}"
        raise RemoteError(f"{url}: no file system for {scheme}:// here; {install}")


@contextmanager
def _told(url: str) -> Iterator[None]:
    check_scheme(url)
    try:
        yield
    except Exception as error:  # each file system raises what its client library does
        reason = error
        while isinstance(reason, BeamIOError) and reason.exception_details:  # by what was asked for, which we know
            reason = next(iter(reason.exception_details.values()))
        lines = str(reason).strip().splitlines() or [repr(reason)]
        raise RemoteError(f"{url}: {lines[0]}") from error

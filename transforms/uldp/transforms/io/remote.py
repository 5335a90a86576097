"""Files on Beam's remote file systems, such as ``gs://``; Beam is loaded when a function needs it, and not before."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from uldp.schemas.errors import EndpointError
from uldp.schemas.extras import install

if TYPE_CHECKING:
    from apache_beam.io.filesystem import FileMetadata
    from apache_beam.io.filesystems import FileSystems


def matching(pattern: str, *, hidden: bool = False, most: int | None = None) -> "list[FileMetadata]":
    """Return what matches a URL in order of name, hidden files if asked; EndpointError from the file system."""
    with _told(pattern):
        (found,) = _file_systems().match([pattern], [most])
    files = sorted(found.metadata_list, key=attrgetter("path"))
    return [file for file in files if hidden or not file.path.rpartition("/")[2].startswith(".")]


def write_in_one_step(aside: str, path: str, content: bytes) -> None:
    """Write a file under the temporary name ``aside``, and rename it."""
    systems = _file_systems()
    try:
        with _told(path):
            with systems.create(aside) as file:
                file.write(content)
            systems.rename([aside], [path])
    except BaseException:
        with suppress(EndpointError):  # the first error says more
            remove(aside)
        raise


def remove(path: str) -> None:
    """Remove a file, unless it is gone already."""
    systems = _file_systems()
    with _told(path):
        if systems.exists(path):
            systems.delete([path])


@contextmanager
def fetched(url: str) -> Iterator[IO[bytes]]:
    """Yield a local copy of a file, so that a failed transfer, an EndpointError, is not mistaken for damage."""
    with tempfile.TemporaryFile() as local:
        with _told(url), _file_systems().open(url) as file:
            shutil.copyfileobj(file, local, length=1 << 20)
        local.seek(0)
        yield local


def copy_below(root: str, pattern: str, folder: Path) -> bool:
    """Copy the files below a URL that match a pattern to the same places below a folder; return whether there are any.

    EndpointError if the file system says so, or a name leads out of the folder.
    """
    root = root.rstrip("/")
    found = matching(f"{root}/{pattern}")
    for path in (file.path for file in found):
        name = PurePosixPath(path[len(root) + 1 :])
        if name.is_absolute() or ".." in name.parts:
            raise EndpointError(f"{path}: a name with .. is none that a job writes; remove the file")
        target = Path(folder, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        with fetched(path) as file, target.open("wb") as copy:
            shutil.copyfileobj(file, copy, length=1 << 20)
    return bool(found)


#: The packages to install for the file systems that Beam supports but does not include.
_EXTRAS = {
    "gs": ("gcp", "uldp-stream"),
    "s3": ("aws", "apache-beam"),
    "hdfs": ("hadoop", "apache-beam"),
    "azfs": ("azure", "apache-beam"),
}


def check_scheme(url: str) -> None:
    """Check that Beam has a file system for a URL; EndpointError, which says what to install, if not."""
    from apache_beam.io.filesystem import FileSystem

    _file_systems()  # its module imports each file system that is installed
    scheme = url.partition("://")[0]
    if scheme not in {system.scheme() for system in FileSystem.get_all_subclasses()}:
        known = ", ".join(f"{name}://" for name in sorted(_EXTRAS))
        extra, of = _EXTRAS.get(scheme, ("", ""))
        remedy = f"install it: {install(extra, of=of)}" if extra else f"use one of {known}"
        raise EndpointError(f"{url}: Beam has no file system for {scheme}:// in this environment; {remedy}")


def _file_systems() -> "type[FileSystems]":
    from apache_beam.io.filesystems import FileSystems

    return FileSystems


@contextmanager
def _told(url: str) -> Iterator[None]:
    from apache_beam.io.filesystem import BeamIOError

    check_scheme(url)
    try:
        yield
    except Exception as error:  # each file system raises its client library's errors
        reason = error
        while isinstance(reason, BeamIOError) and reason.exception_details:  # keyed by the path, which we know
            reason = next(iter(reason.exception_details.values()))
        lines = str(reason).strip().splitlines() or [repr(reason)]
        raise EndpointError(f"{url}: {lines[0]}") from error

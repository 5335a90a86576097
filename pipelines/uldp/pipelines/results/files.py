"""The files of a results directory: which are complete, and their records, read with bounds."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any, NoReturn, TypeVar

from uldp.schemas.codec.blocks import Container, ContainerError, open_file
from uldp.schemas.errors import DataError
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.folders import KINDS, Kind, kind_of, mismatch
from uldp.transforms.io.listing import paths_below

Read = TypeVar("Read")


class ResultsError(DataError):
    """A results directory that cannot be read. The message names the path and the remedy."""


def refuse(damage: ResultsError) -> NoReturn:
    """Raise the error about a damaged file; this is the default of the readers below."""
    raise damage


def pass_over(damage: ResultsError) -> None:
    """Ignore a damaged file: its windows are taken as gone, and the commands that read results name it."""


#: A callback for a file that cannot be read; it takes the error, which names the file and the remedy.
Damaged = Callable[[ResultsError], object]


def check_directory(out: Path) -> None:
    """Raise ResultsError if ``out`` is no directory."""
    if not out.is_dir():
        raise ResultsError(mismatch(out, Kind.RESULTS))


def check_results(out: Path) -> None:
    """Raise ResultsError if ``out`` is no directory of results, or of private ones."""
    if kind_of(out) is not Kind.RESULTS:
        raise ResultsError(mismatch(out, Kind.RESULTS))


def finished(folder: Path, pattern: str = "*.avro") -> list[Path]:
    """Return the complete files of a folder, without files that a writer has not renamed yet."""
    return sorted(path for path in paths_below(folder, pattern) if not path.name.startswith("."))


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A regular file as it was when it was listed, for a command that removes files beside a job that writes them."""

    path: Path
    status: os.stat_result

    def remove(self) -> None:
        """Remove the file, unless a writer has replaced or another process has removed it."""
        now = _status(self.path)
        if now is not None and (now.st_ino, now.st_mtime_ns) == (self.status.st_ino, self.status.st_mtime_ns):
            self.path.unlink(missing_ok=True)


def _status(path: Path) -> os.stat_result | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status if S_ISREG(status.st_mode) else None


def listed(paths: Iterable[Path]) -> Iterator[ListedFile]:
    """List the regular files among some paths, in their order, as they are now."""
    return (ListedFile(path, status) for path in sorted(paths) if (status := _status(path)) is not None)


def read_container(path: Path, schema: str, read: Callable[[Mapping[str, Any]], Read]) -> Iterator[Read]:
    """Yield the records of a file, none if it was just pruned; iteration raises ResultsError if it is damaged."""
    with suppress(FileNotFoundError), opened(path, schema) as container:
        yield from map(read, container.records())


@contextmanager
def opened(path: Path, schema: str) -> Iterator[Container]:
    """Open a file of records of a schema; ResultsError if it, or what is read of it, is damaged; FileNotFoundError."""
    try:
        with open_file(path) as file:
            container = Container.open(file)
            if container.name != schema:
                raise ContainerError(f"holds {KINDS[container.name]}")
            yield container
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ResultsError(
            f"{plain(str(path))}: {error.strerror or error}; check the path and its permissions"
        ) from error
    except ContainerError as error:
        raise _not_whole(path, schema, str(error)) from error
    except Exception as error:  # a record may hold any values of its schema's types
        raise _not_whole(path, schema, type(error).__name__) from error


def _not_whole(path: Path, schema: str, reason: str) -> ResultsError:
    return ResultsError(
        f"{plain(str(path))}: damaged, or not an Avro file of schema {schema} ({reason}); "
        "remove it and run its job again"
    )

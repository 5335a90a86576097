"""The files of a results directory: which are complete, and their records, read with bounds."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from stat import S_ISREG
from typing import Any, NoReturn, TypeVar

from uldp.pipelines.results.wanted import ALL_PANES, Wanted
from uldp.schemas.codec.blocks import BlockClaim, Container, ContainerError, open_file
from uldp.schemas.errors import DataError
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.folders import KINDS, Kind, mismatch
from uldp.transforms.io.listing import paths_below
from uldp.transforms.io.window_index import Place, Run, index_of

Read = TypeVar("Read")
#: The schemas of panes.
_OF_PANES = ("statistic", "estimate")


class ResultsError(DataError):
    """A results directory that cannot be read. The message names the path and the remedy."""


def refuse(damage: ResultsError) -> NoReturn:
    """Raise the error about a damaged file; this is the default of the readers below."""
    raise damage


#: A callback for a file that cannot be read; it takes the error, which names the file and the remedy.
Damaged = Callable[[ResultsError], object]


def check_directory(out: Path) -> None:
    """Refuse what is no directory.

    Raises:
        ResultsError: if ``out`` is no directory.
    """
    if not out.is_dir():
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


def read_container(
    path: Path, schema: str, read: Callable[[Mapping[str, Any]], Read], wanted: Wanted = ALL_PANES
) -> Iterator[Read]:
    """Read the records of a file, one at a time; a file that ``uldp prune`` has just removed holds none.

    Args:
        path: The file.
        schema: The name of the schema of its records.
        read: Called for the value of each record.
        wanted: Other panes are left out; with an index, their blocks are not read.

    Raises:
        ResultsError: during iteration, if the file cannot be read, or is not a whole file of this schema.
    """
    try:
        with open_file(path) as file:
            container = Container.open(file)
            if container.name != schema:
                raise ContainerError(f"holds {KINDS[container.name]}")
            for value in _values(container, wanted):
                yield read(value)
    except FileNotFoundError:
        return  # uldp prune has removed the file since it was listed
    except OSError as error:
        raise ResultsError(
            f"{plain(str(path))}: {error.strerror or error}; check the path and its permissions"
        ) from error
    except ContainerError as error:
        raise _not_whole(path, schema, str(error)) from error
    except Exception as error:  # a record may hold any values of its schema's types
        raise _not_whole(path, schema, type(error).__name__) from error


def _values(container: Container, wanted: Wanted) -> Iterator[Mapping[str, Any]]:
    """Yield the values of records; if the file has an index, all that is read must be as it says."""
    if container.name not in _OF_PANES:
        yield from container.records()
        return
    blocks = index_of(container)
    if blocks is None:
        for value in container.records():
            if wanted.has(value["collection"], _place_in(value)):
                yield value
        return
    claims = [
        BlockClaim(
            sum(run.held.panes for run in runs),
            wanted=any(wanted.has(None if run.of is None else run.of[0], run.held.last) for run in runs),
        )
        for runs in blocks
    ]
    of_records = chain.from_iterable(
        repeat(run, run.held.panes) for runs, claim in zip(blocks, claims, strict=True) if claim.wanted for run in runs
    )
    for value, run in zip(container.records(claims), of_records, strict=True):
        place = _place_in(value)
        of = value["collection"], value["version"]
        if not run.held.first <= place <= run.held.last or run.of not in (None, of):
            raise ContainerError("a window is not where its index says")
        if wanted.has(value["collection"], place):
            yield value


def _place_in(value: Mapping[str, Any]) -> Place:
    return value["window_end"], value["window_start"]


def read_index(path: Path) -> Sequence[Sequence[Run]]:
    """Return the index of a file of panes, empty if it has none or is damaged: whoever reads the panes says why."""
    with suppress(OSError, ContainerError), open_file(path) as file:
        return index_of(Container.open(file)) or ()
    return ()


def _not_whole(path: Path, schema: str, reason: str) -> ResultsError:
    return ResultsError(
        f"{plain(str(path))}: damaged, or not an Avro file of schema {schema} ({reason}); "
        "remove it and run its job again"
    )

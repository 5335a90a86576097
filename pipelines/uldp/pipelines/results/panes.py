"""Files of panes: the kinds of panes, and the headers and the panes of one file.

    OUT/counts/<scope>.<start>--<end>.<number>.avro
    OUT/estimates/<scope>.<start>--<end>.<number>.<estimator>.avro
    PRIVATE/few/<scope>.<start>--<end>.<number>.avro

PRIVATE is OUT, or the place of ``--private-to``. The scope is ``<collection>-v<version>``, or ``all`` of a file with
panes of several collections. Start and end are those of all windows in the file. The number is the revision of a pane
that is alone in its file, and a digest of several. If a pane, or a variable of its record, has fewer reports than
``limits.min_reports``, its statistic is in ``few``, and ``counts`` has its header alone.
"""

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple

from uldp.pipelines.results.files import ResultsError, opened
from uldp.pipelines.results.newest import identity
from uldp.pipelines.results.selection import Key
from uldp.pipelines.results.signed import Signed
from uldp.pipelines.results.soundness import (
    PaneRecord,
    check_claim,
    sound_counts,
    sound_description,
    sound_estimate,
    sound_header,
)
from uldp.schemas.codec.blocks import Container, ContainerError
from uldp.schemas.pane import PaneHeader
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.listing import entries
from uldp.transforms.io.results import pane_files
from uldp.transforms.io.results.names import PaneFileName
from uldp.transforms.io.results.pane_files import PaneFolder, check_whole, headers_in


@dataclass(frozen=True)
class Panes(Generic[PaneRecord]):
    """A kind of pane."""

    files: PaneFolder[Any]  # the folder and the schema of its files
    #: Returns the header of the pane that a value of the schema describes; of an estimate, all but its tables.
    header: Callable[[Mapping[str, Any]], PaneRecord]
    read: Callable[[Mapping[str, Any]], PaneRecord]  # returns the whole pane

    @property
    def folder(self) -> str:
        """The name of the folder."""
        return self.files.name


PANES = Panes(pane_files.STATISTICS, sound_header, sound_counts)
FEW_PANES = Panes(pane_files.FEW_STATISTICS, sound_header, sound_counts)
ESTIMATES = Panes(pane_files.ESTIMATES, sound_description, sound_estimate)
#: All kinds of panes.
KINDS: tuple[Panes[Any], ...] = (PANES, FEW_PANES, ESTIMATES)


class Entry(NamedTuple, Generic[PaneRecord]):
    """A pane in a file."""

    header: PaneRecord  # its header, and of an estimate all but its tables
    file: Path
    number: int  # its number among the records of the file


@dataclass(frozen=True)
class PaneFile:
    """A file of panes, as it was when its header was read."""

    path: Path  # the file
    kind: Panes[Any]  # the kind of its panes
    name: PaneFileName | None  # what its name says; None if no job writes a file under it
    state: tuple[int, int, int]  # its number on the disk, its size, and when it was written, in nanoseconds
    #: The headers of its panes, as far as they can be read, by their numbers among the records of the file.
    headers: Mapping[int, PaneHeader] = field(default_factory=dict)
    damage: ResultsError | None = None  # the error of a file that cannot be read; none of its panes counts

    @cached_property
    def _windows(self) -> frozenset[Key]:
        return frozenset(header.key for header in self.headers.values())

    def may_have(self, key: Key) -> bool:
        """Return whether the file may have a pane of a window, by its headers, or else by its name."""
        if self._windows:
            return key in self._windows
        name = self.name
        return name is not None and name.of in (None, key[:2]) and name.start <= key[2] and key[3] <= name.end


def pane_paths(out: Path, *kinds: Panes[Any]) -> list[Path]:
    """Return the files of panes below a folder, in order of name."""
    return [out / kind.folder / name for kind in kinds for name in names_in(out, kind)]


def names_in(out: Path, kind: Panes[Any]) -> list[str]:
    """Return the names of files of panes as strings: a year has some ten thousand."""
    found = list[os.DirEntry[str]]()
    with suppress(FileNotFoundError, NotADirectoryError):
        found = [entry for entry in entries(out / kind.folder) if not entry.name.startswith(".")]
    if any(entry.is_dir() for entry in found):
        folder = plain(str(out / kind.folder))
        raise ResultsError(f"{folder}: has folders, as results of an earlier version; give the job another directory")
    return [entry.name for entry in found if entry.name.endswith(".avro")]


def read_header(path: Path, kind: Panes[Any], name: PaneFileName | None, collection: str | None) -> PaneFile:
    """Read the header of a file, and headers of panes of a collection, or all; FileNotFoundError if there is none."""
    state, headers = state_of(path), dict[int, PaneHeader]()
    try:
        with opened(path, kind.files.schema) as container:
            if name is None or (name.estimator is None) is (kind is ESTIMATES):
                raise ContainerError("under a name that no job gives")
            found = headers_in(container, name)
            mine = ((n, value) for n, value in enumerate(found) if collection in (None, value["collection"]))
            headers |= {number: kind.header(value) for number, value in mine}
            check_whole(container, len(found))
            return PaneFile(path, kind, name, state, headers)
    except ResultsError as error:
        return PaneFile(path, kind, name, state, headers, error)


def state_of(path: Path) -> tuple[int, int, int]:
    """Return the number of a file on the disk, its size, and when it was written, in nanoseconds."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def read_panes(
    out: Path, kind: Panes[PaneRecord], path: Path, entries: Sequence[Entry[PaneRecord]], signed: Signed
) -> Iterator[tuple[Entry[PaneRecord], PaneRecord]]:
    """Yield the panes of entries; iteration raises FileNotFoundError, or ResultsError if the file is damaged."""
    of_number = {entry.number: entry for entry in entries}
    numbers = sorted(of_number)
    with opened(path, kind.files.schema) as container:
        for number, value in _numbered(container, numbers):
            check_claim(value, out / "specs")
            entry, pane = of_number.pop(number), signed.marked(kind.read(value))
            if _facts(pane) != _facts(entry.header):
                raise ContainerError("a pane is another one than the header of its file says")
            yield entry, pane
        if of_number:
            raise ContainerError("it has fewer panes than its header says")


def _facts(pane: PaneHeader) -> tuple[Any, ...]:
    return *identity(pane), pane.pane.kind, pane.flags, pane.supersedes, pane.signals


def _numbered(container: Container, numbers: Sequence[int]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    def wanted(first: int, records: int) -> bool:
        at = bisect_left(numbers, first)
        return at < len(numbers) and numbers[at] < first + records

    mine = set(numbers)
    return ((number, value) for number, value in container.numbered(wanted) if number in mine)

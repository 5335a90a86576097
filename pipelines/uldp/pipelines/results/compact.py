"""Join the panes of closed windows into one file a day: a folder and two files for each window add up over a year.

A pane keeps all of its fields, so that readers find the same panes as before, in ``shared`` of their collection. The
joined files of a day have its name and the digest of their panes: ``20260105-<digest>.mle.avro``. The panes of files of
several collections move there too.

This is safe beside a running job and beside readers, and a killed run loses nothing. The joined files are on the disk
before their sources are removed. If both are there, readers find equal panes twice, and the next run joins them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uldp.pipelines.results.files import Damaged, ListedFile, ResultsError, finished, listed, refuse
from uldp.pipelines.results.moved import (
    JOINED,
    Encoded,
    Moved,
    day_of,
    encode_pane,
    ending_of,
    is_old,
    moved,
    newest_starts,
)
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.panes import ESTIMATES, FEW_PANES, PANES, Panes, read_file
from uldp.pipelines.results.selection import window_of
from uldp.pipelines.results.text import number_of
from uldp.schemas.pane import PaneHeader, PaneKind
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.folders import Kind, kind_of, mismatch
from uldp.transforms.io.listing import paths_below
from uldp.transforms.io.results.names import SHARED
from uldp.transforms.io.window_index import Place, indexed, place_of

#: The bytes of the panes of a joined file before it is compressed; a day with more has several files. A reader holds
#: the panes of a file in memory.
MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Compacted:
    """Numbers of files whose panes were joined, and of those that hold them now; and how many bytes that saves."""

    sources: int = 0
    joined: int = 0
    nbytes: int = 0

    def __add__(self, other: "Compacted") -> "Compacted":
        return Compacted(self.sources + other.sources, self.joined + other.joined, self.nbytes + other.nbytes)

    def __str__(self) -> str:
        return f"{number_of(self.sources, 'file')} of panes into {self.joined:,}; {self.nbytes:,} bytes less"


def compact(out: Path, *, dry_run: bool = False, damaged: Damaged = refuse) -> Compacted:
    """Join the files of panes whose windows ended a day before the newest window of their collection began.

    The newest pane of a window that is not an early one says that the window has ended. A pane that fires later has a
    file of its own until the next run.

    Args:
        out: A results directory, or the private directory of one.
        dry_run: Whether to change nothing, and only count.
        damaged: Called for each damaged file. The function leaves that file where it is, and the window of its folder.

    Raises:
        ResultsError: if ``out`` is not a results directory. Errors that ``damaged`` raises pass through.
    """
    if kind_of(out) is not Kind.RESULTS:
        raise ResultsError(mismatch(out, Kind.RESULTS))
    total = Compacted()
    for kind in (PANES, FEW_PANES, ESTIMATES):
        root, starts = out / kind.folder, newest_starts(out, kind)
        joined: dict[str, set[str]] = defaultdict(set)
        for part in moved(out, kind, starts, damaged, max_bytes=MAX_BYTES):
            total += _move(kind, root, part, starts, damaged, dry_run=dry_run)
            for name, day in part.panes:
                joined[name].add(day)
        for name, start in sorted(starts.items()):
            for joining in _Joining.of(kind, root / name, start, damaged, joined[name]):
                total += joining.measured() if dry_run else joining.done()
    return total


def _move(
    kind: Panes[Any], root: Path, part: Moved, starts: Mapping[str, int], damaged: Damaged, *, dry_run: bool
) -> Compacted:
    """Move panes to their collections, and remove their files once all of them are there."""
    sizes = sum(file.status.st_size for file in part.files)
    total = Compacted(len(part.files), 0, sizes)
    private = any(_is_private(file) for file in part.files)
    for (name, day), encoded in sorted(part.panes.items()):
        paths = _days(root / name, starts[name]).get(day, [])
        joining = _Joining.of_day(kind, root / name, day, paths, damaged, encoded, private=private)
        total += joining.measured() if dry_run else joining.done()
    for file in () if dry_run else part.files:
        file.remove()
    if not dry_run:
        _remove_empty({file.path.parent for file in part.files})
    return total


def _days(folder: Path, newest_start: int) -> dict[str, list[Path]]:
    """Return the files of a collection and version that may be joined, by day: those of windows, and joined ones."""
    days: dict[str, list[Path]] = defaultdict(list)
    for path in paths_below(folder, "*"):
        key = window_of(f"{folder.name}/{path.name}")
        if key is not None and is_old(key[3], newest_start):
            days[day_of(key)] += finished(path)
    for path in finished(folder / SHARED):
        if named := JOINED.fullmatch(path.name):
            days[named[1]].append(path)
    return days


def _is_private(file: ListedFile) -> bool:
    return not file.status.st_mode & 0o077


def _remove_empty(folders: Collection[Path]) -> None:
    for folder in folders:
        with suppress(OSError):  # a job has just written another pane
            folder.rmdir()


@dataclass(frozen=True)
class _Joining:
    """The files of a day and collection that become few.

    Attributes:
        schema: The name of the schema of their records.
        targets: The content of each joined file, by its path.
        sources: The files that these replace.
        private: Whether only the owner may read the joined files.
    """

    schema: str
    targets: dict[Path, bytes]
    sources: list[ListedFile]
    private: bool

    @classmethod
    def of(
        cls, kind: Panes[Any], folder: Path, newest_start: int, damaged: Damaged, joined: Collection[str]
    ) -> Iterator["_Joining"]:
        """Find the days of a collection and version that have files to join, without those that are joined."""
        for day, paths in sorted(_days(folder, newest_start).items()):
            if day not in joined and any(path.parent.name != SHARED for path in paths):
                yield cls.of_day(kind, folder, day, paths, damaged, {})

    @classmethod
    def of_day(
        cls,
        kind: Panes[Any],
        folder: Path,
        day: str,
        paths: list[Path],
        damaged: Damaged,
        more: Encoded,
        *,
        private: bool = False,
    ) -> "_Joining":
        """Join the panes of files of a day, and ``more``, those that come from files of several collections."""
        files = list(listed(paths))  # before they are read: one that is replaced in between is not removed
        panes: dict[Path, list[PaneHeader]] = {}
        left: set[Path] = set()
        for file in files:
            inside = f"{folder.name}/{file.path.parent.name}"
            try:
                panes[file.path] = read_file(file.path, kind, inside)
            except ResultsError as error:
                damaged(error)
                left.add(file.path.parent)
        ended = {
            pane.key
            for pane in newest(pane for found in panes.values() for pane in found)
            if pane.pane.kind is not PaneKind.EARLY
        }
        taken = [
            file
            for file in files
            if file.path.parent not in left
            and (file.path.parent.name == SHARED or all(pane.key in ended for pane in panes[file.path]))
        ]
        encoded: Encoded = defaultdict(dict, more)
        for file in sorted(taken, key=lambda file: file.path):
            records = ((place_of(pane), encode_pane(kind.schema, pane)) for pane in panes[file.path])
            encoded[ending_of(file.path)] |= dict.fromkeys(records)
        targets = {}
        for ending, of_ending in encoded.items():
            for part in _parts(sorted(of_ending)):
                digest, content = indexed(kind.schema, part)
                targets[folder / SHARED / f"{day}-{digest}{ending}"] = content
        private = private or any(_is_private(file) for file in taken)
        return cls(kind.schema, targets, [file for file in taken if file.path not in targets], private)

    def measured(self) -> Compacted:
        """Return what joining changes."""
        before = sum(file.status.st_size for file in self.sources)
        return Compacted(len(self.sources), len(self.targets), before - sum(map(len, self.targets.values())))

    def done(self) -> Compacted:
        """Write the joined files, and then remove their sources and the folders that are empty without them."""
        for path, content in self.targets.items():
            write_file(str(path), content, private=self.private)
        for file in self.sources:
            file.remove()
        _remove_empty({file.path.parent for file in self.sources})
        return self.measured()


def _parts(records: list[tuple[Place, bytes]]) -> Iterator[list[tuple[Place, bytes]]]:
    """Cut records into parts of about ``MAX_BYTES``."""
    first = size = 0
    for end, (_, record) in enumerate(records, 1):
        size += len(record)
        if size >= MAX_BYTES or end == len(records):
            yield records[first:end]
            first, size = end, 0

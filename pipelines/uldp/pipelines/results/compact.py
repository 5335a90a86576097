"""Join the panes of closed windows into one file a day: a folder and two files for each window add up over a year.

A pane keeps all of its fields, so that readers find the same panes as before, in ``shared`` of their collection. The
joined files of a day have its name and the digest of their panes: ``20260105-<digest>.mle.avro``.

This is safe beside a running job and beside readers, and a killed run loses nothing. The joined files are on the disk
before their sources are removed. If both are there, readers find equal panes twice, and the next run joins them.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from uldp.pipelines.results.files import Damaged, ListedFile, ResultsError, finished, listed, refuse
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.panes import ESTIMATES, FEW_PANES, PANES, Panes, estimator_of, read_file
from uldp.pipelines.results.selection import Key, window_of
from uldp.pipelines.results.text import number_of
from uldp.schemas.pane import PaneHeader, PaneKind
from uldp.schemas.statistic import counts_to_avro
from uldp.transforms.io.durable_files import encode_record, write_file
from uldp.transforms.io.folders import Kind, kind_of, mismatch
from uldp.transforms.io.window_index import Place, indexed, place_of

_DAY = 86_400_000
#: The bytes of the panes of a joined file before it is compressed; a day with more has several files. A reader holds
#: the panes of a file in memory.
MAX_BYTES = 16 << 20
_SHARED = "shared"
#: The name of a joined file. Its day is that of the ends of its windows.
_JOINED = re.compile(r"(\d{8})-[0-9a-f]{32}(\.[a-z-]+)?\.avro")


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
        for folder in sorted(path for path in (out / kind.folder).glob("*") if path.is_dir()):
            for joining in _Joining.of(kind, folder, damaged):
                total += joining.measured() if dry_run else joining.done()
    return total


@dataclass(frozen=True)
class _Joining:
    """The files of a day and collection that become few.

    Attributes:
        schema: The name of the schema of their records.
        targets: The content of each joined file, by its path.
        sources: The files that these replace.
    """

    schema: str
    targets: dict[Path, bytes]
    sources: list[ListedFile]

    @classmethod
    def of(cls, kind: Panes[Any], folder: Path, damaged: Damaged) -> Iterator["_Joining"]:
        """Find the days of a collection and version that have files to join."""
        windows = {path: key for path in folder.glob("*") if (key := window_of(f"{folder.name}/{path.name}"))}
        before = max((start for _, _, start, _ in windows.values()), default=0) - _DAY
        days: dict[str, list[Path]] = defaultdict(list)
        for path, key in windows.items():
            if key[3] <= before:
                days[_day_of(key)] += finished(path)
        for path in finished(folder / _SHARED):
            if (named := _JOINED.fullmatch(path.name)) and named[1] in days:
                days[named[1]].append(path)
        for day, paths in sorted(days.items()):
            if any(path.parent.name != _SHARED for path in paths):
                yield cls._of_day(kind, folder, day, paths, damaged)

    @classmethod
    def _of_day(cls, kind: Panes[Any], folder: Path, day: str, paths: list[Path], damaged: Damaged) -> "_Joining":
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
            if file.path.parent not in left and all(pane.key in ended for pane in panes[file.path])
        ]
        encoded: dict[str, dict[tuple[Place, bytes], None]] = defaultdict(dict)
        for file in sorted(taken, key=lambda file: file.path):
            estimator = estimator_of(file.path)
            ending = ".avro" if estimator is None else f".{estimator}.avro"
            encoded[ending] |= dict.fromkeys((place_of(pane), _encode(kind.schema, pane)) for pane in panes[file.path])
        targets = {}
        for ending, records in encoded.items():
            for part in _parts(sorted(records)):
                digest, content = indexed(kind.schema, part)
                targets[folder / _SHARED / f"{day}-{digest}{ending}"] = content
        return cls(kind.schema, targets, [file for file in taken if file.path not in targets])

    def measured(self) -> Compacted:
        """Return what joining changes."""
        before = sum(file.status.st_size for file in self.sources)
        return Compacted(len(self.sources), len(self.targets), before - sum(map(len, self.targets.values())))

    def done(self) -> Compacted:
        """Write the joined files, and then remove their sources and the folders that are empty without them."""
        private = any(not file.status.st_mode & 0o077 for file in self.sources)
        for path, content in self.targets.items():
            write_file(str(path), content, private=private)
        for file in self.sources:
            file.remove()
        for folder in {file.path.parent for file in self.sources}:
            with suppress(OSError):  # a job has just written another pane
                folder.rmdir()
        return self.measured()


def _day_of(key: Key) -> str:
    return f"{datetime.fromtimestamp(key[3] / 1000, UTC):%Y%m%d}"


def _encode(schema: str, pane: PaneHeader) -> bytes:
    return encode_record(schema, counts_to_avro(pane) if schema == "statistic" else pane.to_avro())


def _parts(records: list[tuple[Place, bytes]]) -> Iterator[list[tuple[Place, bytes]]]:
    """Cut records into parts of about ``MAX_BYTES``."""
    first = size = 0
    for end, (_, record) in enumerate(records, 1):
        size += len(record)
        if size >= MAX_BYTES or end == len(records):
            yield records[first:end]
            first, size = end, 0

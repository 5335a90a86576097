"""Join the panes of closed windows into one file a day: a file for each window and kind adds up over a year.

A pane keeps all of its fields, so that readers find the same panes as before. A joined file has panes of one collection
and version whose windows end on one day, and of one estimator.

This is safe beside a running job and beside readers, and a killed run loses nothing. The joined files are on the disk
before their sources are removed. If both are there, readers find equal panes twice, and the next run joins them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from uldp.pipelines.results.catalog import Catalog, removing
from uldp.pipelines.results.files import Damaged, ListedFile, listed, refuse
from uldp.pipelines.results.newest import estimator_of, newest
from uldp.pipelines.results.panes import KINDS, PANES, Entry, Panes
from uldp.pipelines.results.text import number_of
from uldp.schemas.pane import PaneHeader, PaneKind
from uldp.schemas.specs.collection import CollectionKey
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.folders import FEW
from uldp.transforms.io.results.pane_files import EncodedPane, pane_files

#: The bytes of the panes of a joined file before it is compressed; a day with more has several files. A reader holds
#: the panes of a file in memory.
MAX_BYTES = 16 << 20
_DAY = 86_400_000


class _Day(NamedTuple):
    """What the panes of a joined file share: a collection and version, the day in which windows end, an estimator."""

    of: CollectionKey
    day: str
    estimator: str

    @classmethod
    def of_pane(cls, pane: PaneHeader) -> "_Day":
        day = f"{datetime.fromtimestamp(pane.window_end / 1000, UTC):%Y%m%d}"
        return cls(pane.key[:2], day, estimator_of(pane))


class _File(NamedTuple):
    """A file with its panes, and the joined files to which they belong."""

    file: ListedFile
    entries: list[Entry[Any]]
    days: frozenset[_Day]


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

    The newest pane that is not early says that the window has ended. A later one has its own file until the next run. A
    damaged file stays. ResultsError if ``out`` is no directory of results or private ones.
    """
    total = Compacted()
    with removing(out, dry_run=dry_run):
        catalog = Catalog.read(out, KINDS, damaged)
        for kind in KINDS:
            for files in _parts_of(_closed(catalog, kind)):
                total += _join(catalog, kind, files, dry_run=dry_run)
    return total


def _closed(catalog: Catalog, kind: Panes[Any]) -> Iterator[_File]:
    """Yield the files of a kind whose windows have all ended long ago."""
    entries: dict[Path, list[Entry[Any]]] = defaultdict(list)
    starts: dict[CollectionKey, int] = defaultdict(int)
    for entry in catalog.entries(kind):
        entries[entry.file].append(entry)
        starts[entry.header.key[:2]] = max(starts[entry.header.key[:2]], entry.header.window_start)
    counts = [entry.header for entry in catalog.entries(PANES)]
    headers = [entry.header for of_file in entries.values() for entry in of_file]
    ended = {pane.key for of in (counts, headers) for pane in newest(of) if pane.pane.kind is not PaneKind.EARLY}
    closed = {key for key in ended if key[3] <= starts[key[:2]] - _DAY}
    whole = {file.path: len(file.headers) for file in catalog.files}  # some of its panes may be hidden
    for file in listed(entries):
        mine = entries[file.path]
        if len(mine) == whole[file.path] and all(entry.header.key in closed for entry in mine):
            yield _File(file, mine, frozenset(_Day.of_pane(entry.header) for entry in mine))


def _parts_of(files: Iterable[_File]) -> Iterator[list[_File]]:
    """Yield files whose panes are joined: those of several days in parts of bounded size, with those of their days."""
    of_days: dict[_Day, list[_File]] = defaultdict(list)
    several: list[_File] = []
    for file in files:
        if len(file.days) > 1:
            several.append(file)
        else:
            of_days[next(iter(file.days))].append(file)
    part, nbytes = dict[Path, _File](), 0
    for file in several:
        part |= {each.file.path: each for day in file.days for each in (file, *of_days.pop(day, ()))}
        nbytes += file.file.status.st_size
        if nbytes >= MAX_BYTES:
            yield list(part.values())
            part, nbytes = {}, 0
    yield from filter(None, [list(part.values())])
    yield from (of_day for of_day in of_days.values() if len(of_day) > 1)


def _join(catalog: Catalog, kind: Panes[Any], files: Iterable[_File], *, dry_run: bool) -> Compacted:
    """Write the panes of some files into files of a day, and then remove these."""
    days = defaultdict[_Day, dict[EncodedPane, None]](dict)
    sources: dict[Path, ListedFile] = {}
    for file, entries, _ in files:
        panes = list(catalog.panes(kind, entries))
        if len(panes) == len(entries):  # else it is damaged, or has just gone
            sources[file.path] = file
            for pane in panes:
                days[_Day.of_pane(pane)][EncodedPane.encode(kind.files, pane)] = None
    private = kind.folder == FEW or any(not file.status.st_mode & 0o077 for file in sources.values())
    targets = dict[Path, int]()
    for day, encoded in sorted(days.items()):
        for part in _parts(sorted(encoded)):
            for name, content in pane_files(kind.files, part, day.estimator or None, joined=True):
                targets[catalog.out / name] = len(content)
                if not dry_run:
                    write_file(str(catalog.out / name), content, private=private)
    replaced = [file for path, file in sources.items() if path not in targets]
    for file in () if dry_run else replaced:
        file.remove()
    saved = sum(file.status.st_size for file in sources.values()) - sum(targets.values())
    return Compacted(len(replaced), len(targets), saved)


def _parts(panes: Iterable[EncodedPane]) -> Iterator[list[EncodedPane]]:
    """Cut panes into parts of about ``MAX_BYTES``."""
    part, nbytes = list[EncodedPane](), 0
    for pane in panes:
        part.append(pane)
        nbytes += len(pane.record)
        if nbytes >= MAX_BYTES:
            yield part
            part, nbytes = [], 0
    if part:
        yield part

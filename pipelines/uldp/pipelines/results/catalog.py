"""The catalog of a folder of results: the headers of its panes, from the headers of their files; all readers use it.

Writers rename a dot-prefixed file into place, so every other file is complete and can be read while a job runs. If the
header of a file is damaged nevertheless, the catalog leaves out the windows that its name says, because readers would
otherwise take an older pane of such a window for the newest.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Self, cast

from uldp.pipelines.results.files import Damaged, ResultsError, check_results, finished, pass_over
from uldp.pipelines.results.newest import estimator_of, identity
from uldp.pipelines.results.panes import ESTIMATES, Entry, PaneFile, Panes, names_in, read_header, read_panes, state_of
from uldp.pipelines.results.selection import ALL, Key, Selection
from uldp.pipelines.results.signed import Signed
from uldp.pipelines.results.soundness import PaneRecord
from uldp.schemas.locks import locked_file
from uldp.schemas.pane import PaneHeader
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.results.names import PaneFileName

#: How often the files of a folder are listed at most, while other commands remove some.
_LISTINGS = 100
#: How often a pane is looked for whose file is gone.
_LOOKS = 3
#: The files whose panes are in memory for ``Catalog.pane``.
_FILES = 8
_MEANWHILE = "uldp prune removed it meanwhile; run the command again"


@dataclass(frozen=True)
class Catalog:
    """The panes of a folder of results."""

    out: Path  # the folder
    files: Sequence[PaneFile]  # the files whose headers were read
    signed: Signed  # what its job has signed
    selection: Selection  # other panes may be missing
    damaged: Damaged  # called for each file that cannot be read
    _entries: dict[str, list[Any]] = field(default_factory=dict, repr=False, compare=False)
    _held: dict[Path, dict[int, Any]] = field(default_factory=dict, repr=False, compare=False)
    _moved: dict[str, dict[tuple[Any, ...], Entry[Any]]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def read(
        cls,
        out: Path,
        kinds: Sequence[Panes[Any]],
        damaged: Damaged,
        selection: Selection = ALL,
        known: Iterable[PaneFile] = (),
    ) -> Self:
        """Read the headers of files with selected panes, unless ``known``; DataError if the journal is damaged."""
        signed = Signed.read(out)  # before the panes: a job that runs may sign more while they are read
        cache = {file.path: file for file in known}
        for names in _listings(out, kinds):
            try:
                files = list(_selected(out, names, selection, cache))
            except FileNotFoundError:  # its panes are in another file, or have newer ones
                continue
            for file in files:
                if file.damage is not None:
                    damaged(file.damage)
            return cls(out, files, signed, selection, damaged)
        raise ResultsError(f"{plain(str(out))}: others remove files all the time; run the command again later")

    @cached_property
    def _broken(self) -> Sequence[PaneFile]:
        return [file for file in self.files if file.damage is not None]

    def hides(self, key: Key) -> bool:
        """Return whether a file that cannot be read may have a pane of a window."""
        return any(file.may_have(key) for file in self._broken)

    def entries(self, kind: Panes[PaneRecord]) -> list[Entry[PaneRecord]]:
        """Return the panes of a kind in the order of their windows, but those of windows that are hidden."""
        if kind.folder not in self._entries:
            mine = (file for file in self.files if file.kind.folder == kind.folder and file.damage is None)
            found = [entry for file in mine for entry in self._entries_of(file, kind)]
            found = [each for each in found if not self._broken or not self.hides(each.header.key)]
            self._entries[kind.folder] = sorted(found, key=_order)
        return self._entries[kind.folder]

    def _entries_of(self, file: PaneFile, kind: Panes[PaneRecord]) -> Iterator[Entry[PaneRecord]]:
        for number, header in file.headers.items():
            yield Entry(self.signed.marked(cast(PaneRecord, header)), file.path, number)

    @cached_property
    def _files(self) -> Mapping[Path, PaneFile]:
        return {file.path: file for file in self.files}

    def name_lost(self, *kinds: Panes[Any]) -> None:
        """Call ``damaged`` for each selected window of which the newest pane that its job has signed is not there."""
        signed = self.signed if ESTIMATES in kinds else self.signed.of_counts()
        panes = [entry.header for kind in kinds for entry in self.entries(kind)]
        for lost in signed.lost_panes(self.out, panes, self.selection, self.hides):
            self.damaged(lost)

    def panes(self, kind: Panes[PaneRecord], entries: Iterable[Entry[PaneRecord]]) -> Iterator[PaneRecord]:
        """Read panes in the order of the entries, a few files in memory; ``damaged`` is called for what is lost."""
        entries = list(entries)
        wanted: dict[Path, list[Entry[PaneRecord]]] = defaultdict(list)
        for entry in entries:
            wanted[entry.file].append(entry)
        read: dict[Path, dict[int, PaneRecord]] = {}
        for entry in entries:
            if (of_file := wanted.pop(entry.file, None)) is not None:
                read[entry.file] = self._read(kind, entry.file, of_file)
            pane = read[entry.file].pop(entry.number, None)
            if pane is not None:
                yield pane

    def pane(self, kind: Panes[PaneRecord], entry: Entry[PaneRecord]) -> PaneRecord | None:
        """Read a pane as ``panes`` does; a few files stay in memory, because the next pane is mostly in one of them."""
        if entry.file not in self._held:
            if len(self._held) >= _FILES:
                del self._held[next(iter(self._held))]
            self._held[entry.file] = self._read(kind, entry.file, [*self._entries_of(self._files[entry.file], kind)])
        found: PaneRecord | None = self._held[entry.file].get(entry.number)
        return found

    def _read(
        self, kind: Panes[PaneRecord], path: Path, entries: Sequence[Entry[PaneRecord]], looks: int = _LOOKS
    ) -> dict[int, PaneRecord]:
        """Read panes of a file by their numbers; if it is gone, from the files that have them now."""
        try:
            return {entry.number: pane for entry, pane in read_panes(self.out, kind, path, entries, self.signed)}
        except FileNotFoundError:
            numbers = {identity(entry.header): entry.number for entry in entries}
        except ResultsError as error:
            self.damaged(error)
            return {}
        now = self._now(kind, path, numbers) if looks else {}
        there: dict[Path, list[Entry[PaneRecord]]] = defaultdict(list)
        for key in numbers.keys() & now.keys():
            there[now[key].file].append(now[key])
        if numbers.keys() - now.keys():
            self.damaged(ResultsError(f"{plain(str(path))}: {_MEANWHILE}"))
        found = (pane for file, mine in there.items() for pane in self._read(kind, file, mine, looks - 1).values())
        return {numbers[identity(pane)]: pane for pane in found}

    def _now(
        self, kind: Panes[PaneRecord], gone: Path, keys: Iterable[tuple[Any, ...]]
    ) -> Mapping[tuple[Any, ...], Entry[PaneRecord]]:
        """Return where panes are now, by identity; one look serves all files that are gone by then."""
        known = self._moved.get(kind.folder, {})
        if any(key not in known or known[key].file == gone for key in keys):
            entries = type(self).read(self.out, (kind,), pass_over).entries(kind)
            self._moved[kind.folder] = known = {identity(entry.header): entry for entry in entries}
        return known


def _order(entry: Entry[Any]) -> tuple[Any, ...]:
    pane = entry.header
    return *pane.key, pane.pane.revision, estimator_of(pane), entry.file.name, entry.number


@contextmanager
def removing(out: Path, *, dry_run: bool) -> Iterator[None]:
    """Hold the lock of commands that remove files, unless this one only counts; ResultsError if there are no results.

    Without the lock, two could each remove its own of two equal panes.
    """
    check_results(out)
    with nullcontext() if dry_run else locked_file(out / ".panes.lock"):
        yield


def _listings(out: Path, kinds: Sequence[Panes[Any]]) -> Iterator[list[tuple[Panes[Any], str]]]:
    """Yield the files of panes as they are now, from each listing that has all files of the listing before.

    ``uldp compact`` writes panes into a new file before it removes old ones, and one listing may miss both.
    """
    before: set[tuple[str, str]] | None = None
    for _ in range(_LISTINGS):
        names = [(kind, name) for kind in kinds for name in names_in(out, kind)]
        now = {(kind.folder, name) for kind, name in names}
        if before is not None and before <= now:
            yield names
        before = now


def _selected(
    out: Path, names: Sequence[tuple[Panes[Any], str]], selection: Selection, known: dict[Path, PaneFile]
) -> Iterator[PaneFile]:
    """Read the headers of files that may have selected panes, those of the last windows first."""
    files = [(PaneFileName.read(file), kind, file) for kind, file in names]
    if selection.last is not None:
        files.sort(key=lambda file: -file[0].end if file[0] is not None else 0)
    collections = {path.name.rpartition("-v")[0] for path in finished(out / "specs", "*")}
    last = _Last(selection)
    for name, kind, file in files:
        if name is not None:
            if not selection.may_have(name):
                continue
            of = collections if selection.collection is None else {selection.collection}
            of = of if name.of is None else {name.of[0]}
            if of and all(last.is_before(collection, name.end) for collection in of):
                continue
        path = out / kind.folder / file
        found = known.get(path)
        if found is None or found.state != state_of(path):
            known[path] = found = read_header(path, kind, name, selection.collection)
        last.add(found.headers.values())
        yield found


class _Last:
    """The last selected windows of each collection, as far as files were read."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._places: dict[str, set[tuple[int, int]]] = defaultdict(set)
        self._last: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def add(self, headers: Iterable[PaneHeader]) -> None:
        """Add the windows of a file."""
        if (most := self._selection.last) is None:
            return
        for header in headers:
            place = header.window_end, header.window_start
            known, last = self._places[header.collection], self._last[header.collection]
            if place not in known and self._selection.in_time(header.window_start, header.window_end):
                known.add(place)
                heappush(last, place)
                if len(last) > most:
                    heappop(last)

    def is_before(self, collection: str, end: int) -> bool:
        """Return whether windows that end by then are before the last ones of a collection."""
        last = self._last[collection]
        return len(last) == self._selection.last and end < last[0][0]

"""Remove files of a results directory that nobody reads again.

These are panes that a newer pane replaces; old late and rejected reports, which hold what clients sent; old ids; and
old panes of few reports, whose cells are stored apart.

This is safe beside a running job and beside readers. A job reads no pane back except the newest. A writer renames each
new file into place, and a file that was replaced since it was read is not removed.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from uldp.pipelines.results.catalog import Catalog, removing
from uldp.pipelines.results.files import Damaged, ListedFile, ResultsError, listed, refuse
from uldp.pipelines.results.newest import estimate_key
from uldp.pipelines.results.panes import KINDS, Entry, Panes, pane_paths
from uldp.pipelines.results.selection import Key
from uldp.pipelines.results.signed import Signed
from uldp.pipelines.results.text import number_of
from uldp.schemas.flags import held_back
from uldp.schemas.pane import PaneHeader
from uldp.schemas.regular_files import read_json
from uldp.transforms.io.durable_files import ASIDE, write_file
from uldp.transforms.io.folders import FEW, IDS
from uldp.transforms.io.listing import paths_below
from uldp.transforms.io.results.names import PaneFileName

#: Files that a job writes into ``late`` and ``rejected``; a job that was killed leaves some under temporary names.
_STORED = re.compile(r"\.?[0-9a-f]{32}\.avro(\.[0-9a-f]{16}\.tmp)?")


#: The file that says up to which time private files were removed.
_PRUNED = "pruned.json"


def pruned_before(private: Path) -> float:
    """Return the time, in s since 1970, up to which private files were pruned, or 0; ResultsError if damaged."""
    path = private / _PRUNED
    try:
        return float(read_json(path)["before"])
    except FileNotFoundError:
        return 0.0
    except (ValueError, TypeError, LookupError):
        raise ResultsError(f"{path}: does not say up to which time files were removed; remove it") from None


def lost_files(out: Path, folder: Path) -> Iterator[ResultsError]:
    """Yield an error for each file of late or rejected reports that ``out`` has signed, and lost without a prune."""
    return Signed.read(out).lost_files(folder, pruned_before(folder.parent))


def refuse_lost(folder: Path) -> None:
    """Raise the first error of ``lost_files`` of a folder beside its results."""
    for lost in lost_files(folder.parent, folder):
        raise lost


@dataclass(frozen=True, slots=True)
class Pruned:
    """Numbers of files that were removed, or would be, and their bytes."""

    panes: int = 0
    late: int = 0
    rejected: int = 0
    few: int = 0
    ids: int = 0
    nbytes: int = 0

    def __str__(self) -> str:
        ids = f", {self.ids:,} of ids" if self.ids else ""
        return (
            f"{number_of(self.panes, 'file')} of older panes, {self.late:,} of late reports, "
            f"{self.rejected:,} of rejected reports, {self.few:,} of windows of few reports{ids}; {self.nbytes:,} bytes"
        )


def prune(out: Path, *, before: float, dry_run: bool = False, damaged: Damaged = refuse) -> Pruned:
    """Remove all panes but the newest of each window and estimator, and private files from ``before``, in s.

    If ``dry_run``, count only. All panes of windows of a damaged file stay. ResultsError if ``out`` is no directory of
    results or private ones.
    """
    with removing(out, dry_run=dry_run):
        panes = list(_superseded(out, damaged))
        late, rejected, ids = (_old(out / kind, before, _STORED.fullmatch) for kind in ("late", "rejected", IDS))
        replaced = {file.path for file in panes}
        few = [file for file in _old(out / FEW, before, _is_few) if file.path not in replaced]
        files = [*panes, *late, *rejected, *few, *ids]
        if not dry_run:
            if late or rejected or few:  # a job must not take them for lost, so it is told before they go
                said = json.dumps({"before": max(before, pruned_before(out))})
                write_file(str(out / _PRUNED), said.encode() + b"\n")
            for file in files:
                file.remove()
    return Pruned(len(panes), len(late), len(rejected), len(few), len(ids), sum(file.status.st_size for file in files))


def _old(folder: Path, before: float, is_stored: Callable[[str], object]) -> list[ListedFile]:
    found = listed(paths_below(folder, "*"))
    return [file for file in found if is_stored(file.path.name) and file.status.st_mtime < before]


def _is_few(name: str) -> bool:
    """Return whether a name is that of a file of few reports, or a temporary one that a killed job has left."""
    aside = ASIDE.fullmatch(name)
    return PaneFileName.read(aside["name"] if aside else name) is not None


class _Alike(NamedTuple):
    """What panes share of which the newest stays."""

    pane: tuple[object, ...]  # the window, and the estimator
    #: The kind: the header in ``counts`` and the cells in ``few`` are of one pane, and none replaces the other.
    kind: str
    held: bool  # whether they are held back, and so replace no published pane

    @classmethod
    def of(cls, kind: Panes[Any], pane: PaneHeader) -> Self:
        return cls(estimate_key(pane), kind.folder, held_back(pane.flags))


def _superseded(out: Path, damaged: Damaged) -> Iterator[ListedFile]:
    """Yield each file if all of its panes have a newer pane in another file, which can be read."""
    # List the files before reading them: if a file is replaced in between, it is not the listed file any more.
    there = {file.path: file for file in listed(pane_paths(out, *KINDS))}
    catalog = Catalog.read(out, KINDS, damaged)
    last = _last(catalog)
    staying = {entry.file for entry in last.values()}
    replaced = {pane.key for kind in KINDS for pane, path, _ in catalog.entries(kind) if path not in staying}
    unread = {key for kind in KINDS for key in _unread(catalog, kind, last, replaced)}
    panes = ((file.path, pane.key) for file in catalog.files for pane in file.headers.values())
    kept = {path for path, key in panes if key in unread or catalog.hides(key)}
    whole = (file.path for file in catalog.files if file.damage is None)
    yield from (there[path] for path in whole if path in there and path not in staying | kept)


def _last(catalog: Catalog) -> dict[_Alike, Entry[Any]]:
    """Return the panes that stay: the newest, and those that are held back unless a published pane replaces them."""
    sizes = {file.path: len(file.headers) for file in catalog.files}
    newest: dict[_Alike, tuple[tuple[object, ...], Entry[Any]]] = {}
    for kind in KINDS:
        for entry in catalog.entries(kind):
            # Of files with equal panes, the one with the most panes stays.
            order = entry.header.age, sizes[entry.file], entry.file, entry.number
            before = newest.setdefault(_Alike.of(kind, entry.header), (order, entry))
            if order > before[0]:
                newest[_Alike.of(kind, entry.header)] = order, entry
    published = {key.pane: each.header.age for key, (_, each) in newest.items() if not (key.kind == FEW or key.held)}
    return {
        key: entry
        for key, (_, entry) in newest.items()
        if not key.held or key.pane not in published or entry.header.age > published[key.pane]
    }


def _unread(catalog: Catalog, kind: Panes[Any], last: Mapping[_Alike, Entry[Any]], replaced: Set[Key]) -> Set[Key]:
    """Return the windows among ``replaced`` of which a pane that stays cannot be read."""
    wanted = [entry for key, entry in last.items() if key.kind == kind.folder and entry.header.key in replaced]
    read = {_Alike.of(kind, pane) for pane in catalog.panes(kind, wanted)}
    return {entry.header.key for entry in wanted if _Alike.of(kind, entry.header) not in read}

"""Remove files of a results directory that nobody reads again.

These are panes that a newer pane replaces; old late and rejected reports, which hold what clients sent; old ids; and
old panes of few reports, whose cells are stored apart.

This is safe beside a running job and beside readers. A job reads no pane back except the newest. A writer renames each
new file into place, and a file that was replaced since it was read is not removed.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from uldp.pipelines.results.files import Damaged, ListedFile, ResultsError, listed, refuse
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.moved import JOINED
from uldp.pipelines.results.newest import estimate_key
from uldp.pipelines.results.signed import Signed
from uldp.pipelines.results.text import number_of
from uldp.schemas.flags import held_back
from uldp.schemas.regular_files import read_json
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.folders import COUNTS, FEW, IDS, Kind, kind_of, mismatch
from uldp.transforms.io.listing import paths_below
from uldp.transforms.io.results.names import ALL_COLLECTIONS, SHARED

#: Files that a job writes into ``late`` and ``rejected``; a job that was killed leaves some under temporary names.
_STORED = re.compile(r"\.?[0-9a-f]{32}\.avro(\.[0-9a-f]{16}\.tmp)?")
#: Files that a job, or ``uldp compact``, writes into ``few``, likewise.
_FEW = re.compile(r"\.?([0-9]{6,}|([0-9]{8}-)?[0-9a-f]{32})\.avro(\.[0-9a-f]{16}\.tmp)?")


#: The file that says up to which time private files were removed.
_PRUNED = "pruned.json"


def pruned_before(private: Path) -> float:
    """Return the time, in seconds since 1970, before which private files may have been removed; 0 if none were.

    Raises:
        ResultsError: if the file that says so is damaged.
    """
    path = private / _PRUNED
    try:
        return float(read_json(path)["before"])
    except FileNotFoundError:
        return 0.0
    except (ValueError, TypeError, LookupError):
        raise ResultsError(f"{path}: does not say up to which time files were removed; remove it") from None


def refuse_lost(folder: Path) -> None:
    """Refuse to read a folder of late or rejected reports of which files are gone that ``prune`` has not removed.

    Raises:
        ResultsError: if the journal beside the folder has signed such a file.
    """
    for lost in Signed.read(folder.parent).lost_files(folder, pruned_before(folder.parent)):
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
    """Remove all panes but the newest of each window and estimator, and all private files that are old.

    Args:
        out: A results directory, or the private directory of one.
        before: A time in seconds since 1970. Late and rejected reports, kept ids and cells of few reports that
            were written before it are removed.
        dry_run: Whether to remove nothing, and only count.
        damaged: Called for each damaged file. The function leaves all panes of its folder alone.

    Raises:
        ResultsError: if ``out`` is not a results directory. Errors that ``damaged`` raises pass through.
    """
    if kind_of(out) is not Kind.RESULTS:
        raise ResultsError(mismatch(out, Kind.RESULTS))
    panes = list(_superseded(out, damaged))
    late, rejected, ids = (
        [
            file
            for file in listed(paths_below(out / kind, "*"))
            if _STORED.fullmatch(file.path.name) and file.status.st_mtime < before
        ]
        for kind in ("late", "rejected", IDS)
    )
    replaced = {file.path for file in panes}
    few = [
        file
        for file in listed(paths_below(out / FEW, "*/*/*"))
        if _FEW.fullmatch(file.path.name) and file.path not in replaced and file.status.st_mtime < before
    ]
    files = [*panes, *late, *rejected, *few, *ids]
    if not dry_run:
        if late or rejected or few:  # a job must not take them for lost, so it is told before they go
            write_file(str(out / _PRUNED), json.dumps({"before": max(before, pruned_before(out))}).encode() + b"\n")
        for file in files:
            file.remove()
    return Pruned(len(panes), len(late), len(rejected), len(few), len(ids), sum(file.status.st_size for file in files))


class _Alike(NamedTuple):
    """What panes share of which the newest stays.

    Attributes:
        pane: The window, and the estimator.
        few: Whether they are the cells that are apart.
        held: Whether they are held back, and so replace no published pane.
    """

    pane: tuple[object, ...]
    few: bool
    held: bool


class _Safe(NamedTuple):
    """Which of the files with equal panes stays: the largest.

    ``uldp compact`` may be about to remove the files that it has joined. So a file that it may have written goes before
    each that it may have read, or both commands together would remove the last copy of a pane.

    Attributes:
        folder: 2 for ``shared``, into which compact writes; 1 for the folder of a window; 0 for ``all``.
        joined: Whether the file is named as compact names those that it writes.
        written: When it was written, in nanoseconds: compact joins files that it wrote before again.
    """

    folder: int
    joined: bool
    written: float

    @classmethod
    def of(cls, path: Path, file: ListedFile | None) -> "_Safe":
        """Describe a file; None says that it was written after the files were listed."""
        shared, of_all = path.parent.name == SHARED, path.parents[1].name == ALL_COLLECTIONS
        joined = shared and JOINED.fullmatch(path.name) is not None
        return cls(2 if shared else 0 if of_all else 1, joined, math.inf if file is None else file.status.st_mtime_ns)


def _superseded(out: Path, damaged: Damaged) -> Iterator[ListedFile]:
    """Yield each file if all of its panes have a newer pane in another file."""
    # List the files before reading them: if a file is replaced in between, it is not the listed file any more.
    paths = [path for kind in (COUNTS, FEW, "estimates") for path in paths_below(out, f"{kind}/*/*/*.avro")]
    there = {file.path: file for file in listed(paths)}
    newest: dict[_Alike, tuple[tuple[object, ...], _Safe, Path]] = {}
    read: list[Path] = []
    for files in ResultsFolder(out, damaged).pane_files():
        read += files
        for path, panes in files.items():
            safe = _Safe.of(path, there.get(path))
            for pane in panes:
                # The header in ``counts`` and the cells in ``few`` are of one pane, and none replaces the other.
                few = path.relative_to(out).parts[0] == FEW
                key, found = _Alike(estimate_key(pane), few, held_back(pane.flags)), (pane.age, safe, path)
                newest[key] = max(newest.get(key, found), found)
    published = {key.pane: age for key, (age, *_) in newest.items() if not (key.few or key.held)}
    # What is held back goes too when a published pane replaces it.
    staying = {path for key, (age, _, path) in newest.items() if not key.held or age > published.get(key.pane, ())}
    yield from (there[path] for path in read if path in there and path not in staying)

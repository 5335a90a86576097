"""The kept statistics of windows: of each the newest that counts, read from its file one at a time, for a long history.

Of a window of few reports, the cells are apart: they are read if the reader may. Windows whose counts are left out are
named, because a sum without them is not the sum of all.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uldp.mechanisms.questions.span import Version
from uldp.pipelines.results.files import ResultsError, read_container
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.hidden import Hidden
from uldp.pipelines.results.newest import firing, newest_published
from uldp.pipelines.results.panes import FEW_PANES, HEADERS, PANES, Panes, read_files
from uldp.pipelines.results.prune import pruned_before
from uldp.pipelines.results.selected import selected_folders
from uldp.pipelines.results.selection import Selection
from uldp.pipelines.results.signed import Signed
from uldp.pipelines.results.specs import missing_spec
from uldp.pipelines.results.wanted import Wanted
from uldp.schemas.flags import withheld
from uldp.schemas.pane import PaneHeader
from uldp.schemas.records import iso
from uldp.schemas.specs.collection import CollectionKey
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.folders import FEW

_FEW_HEADERS = replace(HEADERS, folder=FEW_PANES.folder)


@dataclass(frozen=True)
class Kept:
    """The kept statistics of the selected windows of a results directory.

    Attributes:
        folder: The directory.
        versions: The versions that have windows, by collection and version.
        left_out: The number of reports of each window that has none of its cells here, by collection and version and
            by the reason.
    """

    folder: ResultsFolder
    versions: dict[CollectionKey, Version]
    left_out: dict[tuple[CollectionKey, str], list[int]]
    _panes: dict[CollectionKey, list[tuple[PaneHeader, Path]]]

    @classmethod
    def of(cls, folder: ResultsFolder, selection: Selection) -> "Kept":
        """Read the headers of all panes, and choose the newest of each window; ``damaged`` is told of damage."""
        headers = headers_of(folder, folder.path, HEADERS, selection)
        apart = {} if folder.private is None else headers_of(folder, folder.private, _FEW_HEADERS, selection)
        versions: dict[CollectionKey, Version] = {}
        left_out: dict[tuple[CollectionKey, str], list[int]] = {}
        panes: dict[CollectionKey, list[tuple[PaneHeader, Path]]] = {}
        pruned = math.inf if folder.private is None else pruned_before(folder.private) * 1000
        cells = {firing(pane): path for pane, path in apart.items()}
        newest = newest_published(headers)
        chosen = selection.windows({pane.key for pane in newest})
        for pane in sorted((pane for pane in newest if pane.key in chosen), key=lambda pane: pane.key):
            key = pane.key[:2]
            if key not in folder.specs:
                folder.damaged(missing_spec(f"{key[0]}-v{key[1]}"))
                continue
            version = versions.setdefault(key, Version(folder.specs[key]))
            path = cells.get(firing(pane)) if pane.apart else headers[pane]
            stopped = withheld(version.spec.limits, pane.flags) and not pane.apart
            if path is None or stopped:
                if path is None and pane.window_start > pruned:
                    folder.damaged(_lost_cells(folder, pane))
                reason = "stopped at its limit" if stopped else "few reports"
                left_out.setdefault((key, reason), []).append(pane.n)
            else:
                panes.setdefault(key, []).append((pane, path))
        return cls(folder, {key: version for key, version in versions.items() if key in panes}, left_out, panes)

    def statistics(self, key: CollectionKey) -> Iterator[Statistic]:
        """Yield the newest statistics of a version in the order of their windows, without those with impossible cells.

        Raises:
            ResultsError: if a file was removed meanwhile.
        """
        decoder = self.versions[key].decoder
        of_file: dict[Path, dict[tuple[Any, ...], Statistic]] = {}
        left = Counter(path for _, path in self._panes[key])
        for pane, path in self._panes[key]:
            if path not in of_file:
                wanted = {firing(each) for each, its in self._panes[key] if its == path} if left[path] > 1 else None
                of_file[path] = _statistics(path, key[0], wanted or {firing(pane)})
            statistic = of_file[path].pop(firing(pane), None)
            if not of_file[path]:
                del of_file[path]
            if statistic is None:
                raise ResultsError(f"{plain(str(path))}: uldp prune removed it meanwhile; run the command again")
            try:
                if statistic.n:
                    decoder.check(statistic.cells, statistic.n)
            except ValueError as error:
                window = f"the window from {iso(pane.window_start)}"
                self.folder.damaged(ResultsError(f"{plain(str(path))}: the counts of {window} are impossible: {error}"))
                continue
            yield Statistic(**pane.header(), cells=statistic.cells)


def _lost_cells(folder: ResultsFolder, pane: PaneHeader) -> ResultsError:
    place = plain(f"{folder.private}/{FEW}/{pane.collection}-v{pane.version}")
    return ResultsError(f"{place}: lacks the counts of the window from {iso(pane.window_start)}; restore them")


def _statistics(path: Path, of: str, wanted: set[tuple[Any, ...]]) -> dict[tuple[Any, ...], Statistic]:
    """Read those of the statistics of a collection in a file that are wanted, by firing."""
    found = read_container(path, PANES.schema, PANES.read, Wanted(of))
    return {firing(pane): pane for pane in found if isinstance(pane, Statistic) and firing(pane) in wanted}


def headers_of(
    folder: ResultsFolder, root: Path, kind: Panes[PaneHeader], selection: Selection
) -> dict[PaneHeader, Path]:
    """Read the headers of panes with their files, but those of windows with a damaged file; name lost panes."""
    headers: dict[PaneHeader, Path] = {}
    hidden = Hidden()
    signed = Signed.read(root).of_counts() if kind is HEADERS else Signed()
    for name, wanted in selected_folders(root, (kind,), selection):
        files = read_files(root, kind, name, selection, folder.damaged, wanted, hidden)
        if files is None:
            hidden.add_folder(name)
        else:
            headers |= {pane: path for path, panes in files.items() for pane in panes}
    headers = {pane: path for pane, path in headers.items() if pane.key not in hidden}
    for lost in signed.lost_panes(root, headers, selection, hidden):
        folder.damaged(lost)
    return headers

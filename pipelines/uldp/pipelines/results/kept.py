"""The kept statistics of windows: of each the newest that counts, read from its file, for a long history.

Of a window of few reports, the cells are apart: they are read if the reader may. Windows whose counts are left out are
named, because a sum without them is not the sum of all.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge

from uldp.mechanisms.questions.span import Version
from uldp.pipelines.results.catalog import Catalog
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import firing, newest_published
from uldp.pipelines.results.panes import FEW_PANES, PANES, Entry
from uldp.pipelines.results.prune import pruned_before
from uldp.pipelines.results.selection import Key, Selection, window_name
from uldp.pipelines.results.specs import missing_spec
from uldp.schemas.flags import withheld
from uldp.schemas.pane import PaneHeader
from uldp.schemas.records import iso
from uldp.schemas.specs.collection import CollectionKey
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.folders import FEW


@dataclass(frozen=True)
class Kept:
    """The kept statistics of the selected windows of a results directory."""

    folder: ResultsFolder  # the directory
    versions: dict[CollectionKey, Version]  # the versions that have windows, by collection and version
    left_out: dict[tuple[CollectionKey, str], list[int]]  # n of each window without cells here, by version and reason
    _panes: dict[CollectionKey, dict[Key, tuple[PaneHeader, Entry[PaneHeader]]]]
    _catalog: Catalog
    _few: Catalog | None

    @classmethod
    def of(cls, folder: ResultsFolder, selection: Selection) -> "Kept":
        """Read the headers of all panes, and choose the newest of each window; ``damaged`` is told of damage."""
        catalog = Catalog.read(folder.path, (PANES,), folder.damaged, selection)
        catalog.name_lost(PANES)
        few = None
        if folder.private is not None:
            few = Catalog.read(folder.private, (FEW_PANES,), folder.damaged, selection)
        versions: dict[CollectionKey, Version] = {}
        left_out: dict[tuple[CollectionKey, str], list[int]] = {}
        panes: dict[CollectionKey, dict[Key, tuple[PaneHeader, Entry[PaneHeader]]]] = {}
        pruned = math.inf if folder.private is None else pruned_before(folder.private) * 1000
        cells = {firing(entry.header): entry for entry in (few.entries(FEW_PANES) if few else ())}
        entries = {firing(entry.header): entry for entry in catalog.entries(PANES)}
        newest = newest_published(entry.header for entry in entries.values())
        chosen = selection.windows({pane.key for pane in newest})
        for pane in sorted((pane for pane in newest if pane.key in chosen), key=lambda pane: pane.key):
            key = pane.key[:2]
            if key not in folder.specs:
                folder.damaged(missing_spec(f"{key[0]}-v{key[1]}"))
                continue
            version = versions.setdefault(key, Version(folder.specs[key]))
            entry = (cells if pane.apart else entries).get(firing(pane))
            stopped = withheld(version.spec.limits, pane.flags) and not pane.apart
            if entry is None or stopped:
                if entry is None and pane.window_start > pruned:
                    place = plain(f"{folder.private}/{FEW}")
                    folder.damaged(ResultsError(f"{place}: lacks the counts of {window_name(pane.key)}; restore them"))
                reason = "stopped at its limit" if stopped else "few reports"
                left_out.setdefault((key, reason), []).append(pane.n)
            else:
                panes.setdefault(key, {})[pane.key] = pane, entry
        counted = {key: version for key, version in versions.items() if key in panes}
        return cls(folder, counted, left_out, panes, catalog, few)

    def statistics(self, key: CollectionKey) -> Iterator[Statistic]:
        """Yield newest statistics of a version in order, but of impossible cells; ``damaged`` gets what is lost."""
        decoder, entries = self.versions[key].decoder, self._panes[key].values()
        read = [self._catalog.panes(PANES, (entry for pane, entry in entries if not pane.apart))]
        if self._few is not None:
            read.append(self._few.panes(FEW_PANES, (entry for pane, entry in entries if pane.apart)))
        for statistic in merge(*read, key=lambda pane: pane.key):
            pane, entry = self._panes[key][statistic.key]
            assert isinstance(statistic, Statistic)
            try:
                if statistic.n:
                    decoder.check(statistic.cells, statistic.n)
            except ValueError as error:
                window = f"the window from {iso(pane.window_start)}"
                name = plain(str(entry.file))
                self.folder.damaged(ResultsError(f"{name}: the counts of {window} are impossible: {error}"))
                continue
            yield Statistic(**pane.header(), cells=statistic.cells)

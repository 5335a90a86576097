"""The newest header of each window of a results folder, kept in memory: only what has changed is read again."""

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from uldp.pipelines.live.watch import Watch
from uldp.pipelines.results.catalog import Catalog
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.newest import newest_published
from uldp.pipelines.results.panes import PANES
from uldp.pipelines.results.selection import Key, Selection
from uldp.pipelines.results.signed import Signed
from uldp.schemas.pane import PaneHeader
from uldp.transforms.io.results.names import version_name


class Fired(NamedTuple):
    """The panes of a results folder."""

    state: str = ""  # the name of the state of the folder
    panes: Sequence[PaneHeader] = ()  # the headers of all panes, in no order
    #: When a file of counts was last written, in seconds since 1970, by ``<collection>-v<version>``.
    written: Mapping[str, float] = {}
    damaged: int = 0  # the number of damaged files of counts


class Headers:
    """Keeps the headers of ``counts``, 1 kB each, 10 MB for a year of hours; may be used by several threads."""

    def __init__(self, folder: Path, watch: Watch) -> None:
        self._folder, self._watch = folder, watch
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._fired = Fired()
        self._newest: Mapping[Key, PaneHeader] = {}

    def newest(self) -> Mapping[Key, PaneHeader]:
        """Return the newest pane of each window that is not held back, in the order of collections and windows."""
        with self._lock:
            self._refresh()
            return self._newest

    def fired(self) -> Fired:
        """Return all panes and what is known of their files."""
        with self._lock:
            self._refresh()
            return self._fired

    def damaged(self, selection: Selection) -> list[ResultsError]:
        """Return an error for each damaged file, and for each selected window whose newest pane is lost."""
        with self._lock:
            self._refresh()
            known = self._catalog.files if self._catalog is not None else ()
        found: list[ResultsError] = []
        signed = Signed.read(self._folder).of_counts()
        lost = signed.lost_panes(self._folder, self._newest.values(), selection, lambda _: False)
        if self._fired.damaged or any(lost):
            # A job that runs may have signed more than the last look has seen, so look again.
            Catalog.read(self._folder, (PANES,), found.append, selection, known).name_lost(PANES)
        return found

    def _refresh(self) -> None:
        state = self._watch.state()
        if state == self._fired.state:
            return
        known = self._catalog.files if self._catalog is not None else ()
        damage: list[ResultsError] = []
        self._catalog = Catalog.read(self._folder, (PANES,), damage.append, known=known)
        written: dict[str, float] = defaultdict(float)
        for file in self._catalog.files:
            for version in {version_name(*header.key[:2]) for header in file.headers.values()}:
                written[version] = max(written[version], file.state[2] / 1e9)
        panes = [entry.header for entry in self._catalog.entries(PANES)]
        self._newest = {pane.key: pane for pane in newest_published(panes)}
        self._fired = Fired(state, panes, written, len(damage))

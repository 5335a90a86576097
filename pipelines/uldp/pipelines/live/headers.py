"""The newest header of each window of a results folder, kept in memory: only what has changed is read again."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from uldp.pipelines.live.watch import Watch
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.hidden import Hidden
from uldp.pipelines.results.kept import headers_of
from uldp.pipelines.results.newest import newest_published
from uldp.pipelines.results.panes import HEADERS, read_window
from uldp.pipelines.results.selection import ALL, Key, Selection, span_of
from uldp.pipelines.results.signed import Signed
from uldp.schemas.pane import PaneHeader


class Fired(NamedTuple):
    """The panes of a results folder.

    Attributes:
        state: The name of the state of the folder.
        panes: The headers of all panes, in no order.
        written: When a file of counts was last written, in seconds since 1970, by ``<collection>-v<version>``.
        damaged: The number of damaged files of counts.
    """

    state: str
    panes: Sequence[PaneHeader]
    written: Mapping[str, float]
    damaged: int


class Headers:
    """Keeps the headers of the panes in ``counts``; may be used by several threads.

    A header takes about 1 kB, so a year of hours takes 10 MB.
    """

    def __init__(self, folder: Path, watch: Watch) -> None:
        self._folder, self._watch = folder, watch
        self._lock = threading.Lock()
        self._state = ""
        self._times: dict[str, int] = {}
        self._panes: dict[str, list[PaneHeader]] = {}
        self._newest: Mapping[Key, PaneHeader] = {}
        self._damaged: dict[str, int] = {}
        self._hidden: dict[str, Hidden] = {}
        self._written: Mapping[str, float] = {}

    def newest(self) -> Mapping[Key, PaneHeader]:
        """Return the newest pane of each window that is not held back, in the order of collections and windows."""
        with self._lock:
            self._refresh()
            return self._newest

    def fired(self) -> "Fired":
        """Return all panes and what is known of their files."""
        with self._lock:
            self._refresh()
            panes = tuple(self._readable())
            return Fired(self._state, panes, self._written, sum(self._damaged.values()))

    def damaged(self, selection: Selection) -> list[ResultsError]:
        """Return an error for each damaged file, and for each selected window whose newest pane is lost."""
        signed = Signed.read(self._folder).of_counts()
        found: list[ResultsError] = []
        if self.fired().damaged or any(signed.lost_panes(self._folder, self.newest().values(), selection, ())):
            # A job that runs may have signed more than the last look has seen, so look at all files now.
            headers_of(ResultsFolder(self._folder, found.append), self._folder, HEADERS, selection)
        return found

    def _refresh(self) -> None:
        state, times = self._watch.look()
        if state == self._state:
            return
        prefix = f"{HEADERS.folder}/"
        mine = {name.removeprefix(prefix): at for name, at in times.items() if name.startswith(prefix)}
        for gone in self._times.keys() - mine.keys():
            del self._times[gone], self._panes[gone]
            del self._damaged[gone], self._hidden[gone]
        for name, at in mine.items():
            if at < 0 or self._times.get(name) != at:
                damage, hidden = list[ResultsError](), Hidden()
                panes = read_window(self._folder, HEADERS, name, ALL, damage.append, hidden=hidden)
                if panes is None:
                    hidden.add_folder(name)
                self._times[name], self._panes[name] = at, panes or []
                self._damaged[name], self._hidden[name] = len(damage), hidden
        written: dict[str, float] = {}
        for name, at in mine.items():
            versions = {name.partition("/")[0]}
            if span_of(name) is not None:
                versions = {f"{pane.collection}-v{pane.version}" for pane in self._panes[name]}
            for version in versions:
                written[version] = max(written.get(version, 0.0), abs(at) / 1e9)
        self._written = written
        newest = newest_published(self._readable())
        self._newest, self._state = {pane.key: pane for pane in newest}, state

    def _readable(self) -> Iterator[PaneHeader]:
        """Yield the panes that no damaged file hides."""
        hiding = [hidden for name, hidden in self._hidden.items() if self._damaged[name]]
        for panes in self._panes.values():
            yield from (pane for pane in panes if not any(pane.key in hidden for hidden in hiding))

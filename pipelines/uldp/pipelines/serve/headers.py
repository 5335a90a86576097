"""The newest header of each window of a results folder, kept in memory: only what has changed is read again."""

import threading
from collections.abc import Mapping
from pathlib import Path

from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.newest import newest_published
from uldp.pipelines.results.panes import HEADERS, read_window
from uldp.pipelines.results.selection import ALL, Key
from uldp.pipelines.serve.watch import Watch
from uldp.schemas.pane import PaneHeader


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

    def newest(self) -> Mapping[Key, PaneHeader]:
        """Return the newest pane of each window that is not held back, in the order of collections and windows."""
        with self._lock:
            self._refresh()
            return self._newest

    def damaged(self) -> int:
        """Return the number of damaged files among those of counts."""
        with self._lock:
            self._refresh()
            return sum(self._damaged.values())

    def panes(self) -> Mapping[tuple[str, int], int]:
        """Return the number of panes of each version of a collection whose files are there."""
        with self._lock:
            self._refresh()
            counted: dict[tuple[str, int], int] = {}
            for panes in self._panes.values():
                for pane in panes:
                    counted[pane.key[:2]] = counted.get(pane.key[:2], 0) + 1
            return counted

    def _refresh(self) -> None:
        state, times = self._watch.look()
        if state == self._state:
            return
        prefix = f"{HEADERS.folder}/"
        mine = {name.removeprefix(prefix): at for name, at in times.items() if name.startswith(prefix)}
        for gone in self._times.keys() - mine.keys():
            del self._times[gone], self._panes[gone]
            self._damaged.pop(gone, None)
        for name, at in mine.items():
            if at < 0 or self._times.get(name) != at:
                damage: list[ResultsError] = []
                panes = read_window(self._folder, HEADERS, name, ALL, damage.append)
                self._times[name], self._panes[name], self._damaged[name] = at, panes or [], len(damage)
        newest = newest_published(pane for panes in self._panes.values() for pane in panes)
        self._newest, self._state = {pane.key: pane for pane in newest}, state

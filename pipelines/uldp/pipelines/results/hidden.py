"""The windows that damaged files may hold: readers leave out all their panes, or an older one would pass for newer."""

from collections import defaultdict
from pathlib import Path

from uldp.pipelines.results.files import read_index
from uldp.pipelines.results.selection import Key, Span, window_of
from uldp.schemas.specs.collection import CollectionKey
from uldp.transforms.io.window_index import Place


class Hidden:
    """A set of windows."""

    def __init__(self) -> None:
        self._windows: set[Key | None] = set()
        self._runs: dict[CollectionKey, list[tuple[Place, Place]]] = defaultdict(list)
        self._spans: list[Span] = []

    def add_folder(self, folder: str) -> None:
        """Add the window of a folder; of another folder, none."""
        self._windows.add(window_of(folder))

    def add_file(self, path: Path, span: Span) -> None:
        """Add the windows of a file of several collections: those in its index, or all in the time of its folder."""
        index = read_index(path)
        if not index:
            self._spans.append(span)
        for run in (run for block in index for run in block):
            if run.of is None:
                self._spans.append(span)
            else:
                self._runs[run.of].append((run.held.first, run.held.last))

    def __contains__(self, key: object) -> bool:
        """Return whether a window is hidden; it is a key, as ``PaneHeader.key`` or ``window_of`` returns it."""
        if key in self._windows:
            return True
        match key:
            case (str() as collection, int() as version, int() as start, int() as end):
                runs = self._runs.get((collection, version), ())
                return any(first <= (end, start) <= last for first, last in runs) or any(
                    span[0] <= start and end <= span[1] for span in self._spans
                )
        return False

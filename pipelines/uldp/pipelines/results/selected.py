"""Which folders hold selected windows, and from which window on, so that a reader passes by the rest of a long history.

The names of folders tell their windows, and shared files have an index. What they tell of the last windows is a bound:
counts and estimates, windows with a folder and those in shared files, are only together all windows there are. If one
of them alone has N windows from a window on, then the last N of all are not before it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from uldp.pipelines.results.files import finished, read_index
from uldp.pipelines.results.panes import Panes, estimator_of, folders_of
from uldp.pipelines.results.selection import Selection, collection_of, window_of
from uldp.transforms.io.window_index import Place, first_of_last

#: Before all starts of windows.
_LEAST = -(1 << 63)


class _Folder(NamedTuple):
    """A folder of panes.

    Attributes:
        name: Its name, as ``folders_of`` gives it.
        collection: The collection of its panes, if the name tells it.
        place: The place of its window; None if it may hold panes of several.
    """

    name: str
    collection: str | None
    place: Place | None

    @classmethod
    def of(cls, name: str) -> Self:
        if (window := window_of(name)) is not None:
            return cls(name, window[0], (window[3], window[2]))
        shared = collection_of(name)
        return cls(name, None if shared is None else shared[0], None)


def selected_folders(
    out: Path, kinds: Sequence[Panes[Any]], selection: Selection
) -> Iterator[tuple[str, Place | None]]:
    """Yield the folders that may hold selected windows, and the window from which on they are to be read; None for all.

    Folders with unknown names are among them, because only their files can tell.
    """
    names: set[str] = set().union(*(folders_of(out, kind) for kind in kinds))
    folders = [
        folder
        for folder in map(_Folder.of, sorted(names))
        if folder.collection is None or selection.collection in (None, folder.collection)
    ]
    firsts = _first_windows(out, kinds, folders, selection)
    for folder in folders:
        first = firsts.get(folder.collection)
        if folder.place is None or ((first is None or folder.place >= first) and _begins_in(folder.place, selection)):
            yield folder.name, first


def _begins_in(place: Place, selection: Selection) -> bool:
    _, start = place
    return selection.until is None or start < selection.until


def _first_windows(
    out: Path, kinds: Sequence[Panes[Any]], folders: Sequence[_Folder], selection: Selection
) -> Mapping[str | None, Place]:
    """Return a window of each collection before which none is selected; not of one of which any may be."""
    # Indices say which windows are last of all, not which are last before a time.
    last = None if selection.until is not None else selection.last
    found: dict[str | None, list[Place]] = defaultdict(list)
    named: dict[str, set[Place]] = defaultdict(set)
    for folder in folders:
        if folder.collection is None:
            continue
        if selection.since is not None:
            found[folder.collection].append((selection.since + 1, _LEAST))
        if last is not None and folder.place is not None:
            named[folder.collection].add(folder.place)
        elif last is not None:
            paths = (path for kind in kinds for path in finished(out / kind.folder / folder.name))
            indices = (read_index(path) for path in paths if selection.has_estimator(estimator_of(path)))
            firsts = (first_of_last(blocks, last) for blocks in indices)
            found[folder.collection] += [first for first in firsts if first is not None]
    for collection, places in named.items():
        if last is not None and len(places) >= last:
            found[collection].append(sorted(places)[-last])
    return {collection: max(firsts) for collection, firsts in found.items() if firsts}

"""Which folders hold selected windows, and from which window on, so that a reader passes by the rest of a long history.

The names of folders tell their windows, and files of several windows have an index. What they tell of the last windows
is a bound: counts and estimates, windows with a folder and those in other files, are only together all windows there
are. If one of them alone has N windows from a window on, then the last N of all are not before it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from uldp.pipelines.results.files import finished, read_index
from uldp.pipelines.results.panes import Panes, estimator_of, folders_of
from uldp.pipelines.results.selection import Selection, Span, collection_of, span_of, window_of
from uldp.pipelines.results.wanted import Wanted
from uldp.transforms.io.window_index import Place, Run, first_of_last

#: Before all starts of windows.
_LEAST = -(1 << 63)


class _Folder(NamedTuple):
    """A folder of panes.

    Attributes:
        name: Its name, as ``folders_of`` gives it.
        collection: The collection of its panes, if the name tells it.
        place: The place of its window; None if it may hold panes of several.
        span: The time of its windows, if it is of several collections.
    """

    name: str
    collection: str | None
    place: Place | None
    span: Span | None = None

    @classmethod
    def of(cls, name: str) -> Self:
        if (window := window_of(name)) is not None:
            return cls(name, window[0], (window[3], window[2]))
        if (span := span_of(name)) is not None:
            return cls(name, None, None, span)
        shared = collection_of(name)
        return cls(name, None if shared is None else shared[0], None)


def selected_folders(out: Path, kinds: Sequence[Panes[Any]], selection: Selection) -> Iterator[tuple[str, Wanted]]:
    """Yield the folders that may hold selected windows, and which panes in them are to be read.

    Folders with unknown names are among them, because only their files can tell.
    """

    def found() -> Iterator[_Folder]:
        for folder in map(_Folder.of, folders_of(out, *kinds)):
            of_collection = folder.collection is None or selection.collection in (None, folder.collection)
            if of_collection and (folder.span is None or _overlaps(folder.span, selection)):
                yield folder

    bounded = selection.last is not None or selection.since is not None
    firsts = _first_windows(out, kinds, list(found()), selection) if bounded else {}
    for folder in found():
        if folder.span is not None:
            wanted = Wanted(selection.collection, _since(selection), firsts)
            if selection.collection is None or wanted.has(selection.collection, (folder.span[1], folder.span[1])):
                yield folder.name, wanted
            continue
        first = None if folder.collection is None else firsts.get(folder.collection)
        if folder.place is None or ((first is None or folder.place >= first) and _begins_in(folder.place, selection)):
            yield folder.name, Wanted(first=first)


def _overlaps(span: Span, selection: Selection) -> bool:
    start, end = span
    return (selection.since is None or selection.since < end) and _begins_in((end, start), selection)


def _begins_in(place: Place, selection: Selection) -> bool:
    _, start = place
    return selection.until is None or start < selection.until


def _since(selection: Selection) -> Place | None:
    return None if selection.since is None else (selection.since + 1, _LEAST)


def _first_windows(
    out: Path, kinds: Sequence[Panes[Any]], folders: Sequence[_Folder], selection: Selection
) -> Mapping[str, Place]:
    """Return a window of each collection before which none is selected; not of one of which any may be."""
    # Indices say which windows are last of all, not which are last before a time.
    last = None if selection.until is not None else selection.last
    found: dict[str, list[Place]] = defaultdict(list)
    named: dict[str, set[Place]] = defaultdict(set)
    for folder in folders:
        if folder.span is None and folder.collection is None:
            continue
        if folder.collection is not None and (since := _since(selection)) is not None:
            found[folder.collection].append(since)
        if last is not None and folder.collection is not None and folder.place is not None:
            named[folder.collection].add(folder.place)
        elif last is not None:
            for index in _indices(out, kinds, folder, selection):
                for run in (run for block in index for run in block):
                    if run.of is not None:  # a window at each end of a run is there
                        named[run.of[0]] |= {run.held.first, run.held.last}
                first = first_of_last([run.held for block in index for run in block if run.of is None], last)
                if folder.collection is not None and first is not None:
                    found[folder.collection].append(first)
    for collection, places in named.items():
        if last is not None and len(places) >= last:
            found[collection].append(sorted(places)[-last])
    return {collection: max(firsts) for collection, firsts in found.items() if firsts}


def _indices(
    out: Path, kinds: Sequence[Panes[Any]], folder: _Folder, selection: Selection
) -> Iterator[Sequence[Sequence[Run]]]:
    for kind in kinds:
        for path in finished(out / kind.folder / folder.name):
            if selection.has_estimator(estimator_of(path)):
                yield read_index(path)

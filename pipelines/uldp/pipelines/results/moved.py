"""The panes of files of several collections, in the parts in which ``uldp compact`` moves them to their collections.

A file moves as a whole, once all of its windows are closed. A part is bounded, since such files have panes of thousands
of collections, and a part of them becomes a file of each collection and day.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from uldp.pipelines.results.files import Damaged, ListedFile, ResultsError, finished, listed, read_index
from uldp.pipelines.results.newest import estimate_key, newest
from uldp.pipelines.results.panes import HEADERS, Panes, estimator_of, folders_of, read_file
from uldp.pipelines.results.selection import Key, span_of, window_of
from uldp.schemas.pane import PaneHeader, PaneKind
from uldp.schemas.statistic import counts_to_avro
from uldp.transforms.io.durable_files import encode_record
from uldp.transforms.io.listing import paths_below
from uldp.transforms.io.results.names import ALL_COLLECTIONS, SHARED
from uldp.transforms.io.window_index import Place, place_of

_DAY = 86_400_000
#: The name of a joined file. Its day is that of the ends of its windows.
JOINED = re.compile(r"(\d{8})-[0-9a-f]{32}(\.[a-z-]+)?\.avro")
#: Encoded panes by the ending of the file that is to hold them.
Encoded = dict[str, dict[tuple[Place, bytes], None]]


@dataclass(frozen=True)
class Moved:
    """Files of several collections, and their panes.

    Attributes:
        files: The files.
        panes: Their panes, by the name of the folder of their collection and version, and by day.
    """

    files: list[ListedFile] = field(default_factory=list)
    panes: dict[tuple[str, str], Encoded] = field(default_factory=lambda: defaultdict(lambda: defaultdict(dict)))


def is_old(end: int, newest_start: int) -> bool:
    """Return whether a window ended a day before the newest one of its collection began."""
    return end <= newest_start - _DAY


def day_of(key: Key) -> str:
    """Return the day in which a window ends, as the names of joined files have it."""
    return f"{datetime.fromtimestamp(key[3] / 1000, UTC):%Y%m%d}"


def ending_of(path: Path) -> str:
    """Return the ending of the name of a file of panes: with the estimator, if there is one."""
    estimator = estimator_of(path)
    return ".avro" if estimator is None else f".{estimator}.avro"


def encode_pane(schema: str, pane: PaneHeader) -> bytes:
    """Return the record of a pane as a file of this schema has it."""
    return encode_record(schema, counts_to_avro(pane) if schema == "statistic" else pane.to_avro())


def newest_starts(out: Path, kind: Panes[Any]) -> Mapping[str, int]:
    """Return the newest start of a window of each collection and version, by the name of their folder."""
    starts: dict[str, int] = defaultdict(int)
    for folder in folders_of(out, kind):
        if (window := window_of(folder)) is not None:
            name = folder.partition("/")[0]
            starts[name] = max(starts[name], window[2])
    for path in finished(out / kind.folder / ALL_COLLECTIONS, "*/*.avro"):
        for run in (run for block in read_index(path) for run in block):
            if run.of is not None:
                name = f"{run.of[0]}-v{run.of[1]}"
                starts[name] = max(starts[name], run.held.last[1])
    return starts


def moved(
    out: Path, kind: Panes[Any], starts: Mapping[str, int], damaged: Damaged, *, max_bytes: int
) -> Iterator[Moved]:
    """Yield the files whose windows ended a day before the newest window of their collection began, in bounded parts.

    A window has ended if the newest of its panes, in a part or among the counts, is not an early one. Files without an
    index stay.

    Args:
        out: The results directory.
        kind: The kind of panes.
        starts: The newest start of a window, by the folder of its collection and version.
        damaged: Called for each damaged file, which stays.
        max_bytes: The bytes of the encoded panes of a part; its last file may exceed them.
    """
    part = _Part(out, kind)
    for folder in sorted(paths_below(out / kind.folder / ALL_COLLECTIONS, "*")):
        if span_of(f"{ALL_COLLECTIONS}/{folder.name}") is None:
            continue
        for file in listed(finished(folder)):
            index = read_index(file.path)
            if not index or not all(_closed(run.of, run.held.last, starts) for block in index for run in block):
                continue
            try:
                part.add(file)
            except ResultsError as error:
                damaged(error)
            if part.nbytes >= max_bytes:
                yield part.moved()
                part = _Part(out, kind)
    yield part.moved()


def _closed(of: tuple[str, int] | None, last: Place, starts: Mapping[str, int]) -> bool:
    return of is not None and is_old(last[0], starts.get(f"{of[0]}-v{of[1]}", 0))


class _Part:
    """Some files of several collections, with their encoded panes."""

    def __init__(self, out: Path, kind: Panes[Any]) -> None:
        self._out, self._kind = out, kind
        self._files: list[tuple[ListedFile, list[tuple[Key, Place, bytes]]]] = []
        self._newest: dict[tuple[str | int, ...], PaneHeader] = {}
        self.nbytes = 0

    def add(self, file: ListedFile) -> None:
        """Read a file."""
        panes = []
        for pane in read_file(file.path, self._kind, f"{ALL_COLLECTIONS}/{file.path.parent.name}"):
            encoded = encode_pane(self._kind.schema, pane)
            self.nbytes += len(encoded)
            panes.append((pane.key, place_of(pane), encoded))
            key = estimate_key(pane)
            if key not in self._newest or pane.age > self._newest[key].age:
                self._newest[key] = PaneHeader(**pane.header())
        self._files.append((file, panes))

    def moved(self) -> Moved:
        """Return the files of which all windows have ended."""
        ended = {pane.key for pane in self._newest.values() if pane.pane.kind is not PaneKind.EARLY}
        ended |= _ended(self._out, {pane.key for pane in self._newest.values()} - ended)
        found = Moved()
        for file, panes in self._files:
            if all(key in ended for key, _, _ in panes):
                found.files.append(file)
                for key, place, encoded in panes:
                    of_day = found.panes[f"{key[0]}-v{key[1]}", day_of(key)]
                    of_day[ending_of(file.path)][place, encoded] = None
        return found


def _ended(out: Path, keys: Iterable[Key]) -> set[Key]:
    """Return those of some windows that have ended by their counts in files of their collection."""
    days: dict[tuple[str, str], set[Key]] = defaultdict(set)
    for key in keys:
        days[f"{key[0]}-v{key[1]}", day_of(key)].add(key)
    panes: list[PaneHeader] = []
    for (name, day), of_day in days.items():
        folder = out / HEADERS.folder / name
        for path in finished(folder, f"{SHARED}/{day}-*.avro") + finished(folder, "*/*.avro"):
            inside = f"{name}/{path.parent.name}"
            if path.parent.name == SHARED or window_of(inside) in of_day:
                with suppress(ResultsError):  # whoever joins the files of the day names it
                    panes += read_file(path, HEADERS, inside)
    return {pane.key for pane in newest(panes) if pane.pane.kind is not PaneKind.EARLY}

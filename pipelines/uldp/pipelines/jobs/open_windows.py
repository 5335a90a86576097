"""Mark the windows that a job did not finish, when it ends."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.hidden import Hidden
from uldp.pipelines.results.moved import encode_pane
from uldp.pipelines.results.newest import estimate_key, newest
from uldp.pipelines.results.panes import (
    ESTIMATES,
    HEADERS,
    HEADERS_OF_ESTIMATES,
    PANES,
    PaneRecord,
    Panes,
    folders_of,
    read_file,
    read_files,
)
from uldp.pipelines.results.selection import ALL, collection_of, span_of
from uldp.schemas.flags import Flag
from uldp.schemas.pane import PaneHeader, PaneKind
from uldp.transforms.io.durable_files import container_bytes, write_file
from uldp.transforms.io.window_index import indexed, indexed_of_several, place_of


def mark_open_windows(out: Path) -> int:
    """Flag the newest pane of each window without an on-time pane as incomplete, because its job has ended.

    The function writes the file of such a pane again, under the same name: if the job runs again and the pane comes
    again, it takes the flag away. It leaves out panes that count no report, because they have no estimate. Of a pane
    whose cells are apart, it replaces the header, from which readers take the flags.

    Returns:
        The number of these windows.
    """
    counts, estimates = list(_headers(out, HEADERS)), list(_headers(out, HEADERS_OF_ESTIMATES))
    open_windows = [pane for pane in newest(pane for _, pane in counts) if pane.n and pane.pane.kind is PaneKind.EARLY]
    keys = {pane.key for pane in open_windows}
    last = [pane for pane in newest(pane for _, pane in estimates) if pane.key in keys]
    _mark(PANES, counts, open_windows)
    _mark(ESTIMATES, estimates, last)
    return len(keys)


def _headers(out: Path, kind: Panes[PaneRecord]) -> Iterator[tuple[Path, PaneRecord]]:
    """Yield the headers of panes with their files; readers of the results report damage, and hide its windows."""
    hidden, found = Hidden(), list[tuple[Path, PaneRecord]]()
    for folder in folders_of(out, kind):
        files = read_files(out, kind, folder, ALL, _pass_over, hidden=hidden)
        if files is None:
            hidden.add_folder(folder)
        found += [(path, pane) for path, panes in (files or {}).items() for pane in panes]
    return ((path, pane) for path, pane in found if pane.key not in hidden)


def _pass_over(damage: ResultsError) -> None:
    """Ignore a damaged file."""


def _mark(kind: Panes[Any], panes: Sequence[tuple[Path, PaneHeader]], marked: Sequence[PaneHeader]) -> None:
    """Write the files again that hold panes to mark; a pane that is in two files is marked in both."""
    ages = {estimate_key(pane): pane.age for pane in marked}
    for path in sorted({path for path, pane in panes if ages.get(estimate_key(pane)) == pane.age}):
        folder = f"{path.parents[1].name}/{path.parent.name}"
        of_file = [
            _incomplete(pane) if ages.get(estimate_key(pane)) == pane.age else pane
            for pane in read_file(path, kind, folder)
        ]
        if of_file:  # else uldp prune has just removed it
            write_file(str(path), _content(kind.schema, folder, of_file))


def _incomplete(pane: PaneRecord) -> PaneRecord:
    return replace(pane, flags=tuple(sorted({*pane.flags, str(Flag.INCOMPLETE)})))


def _content(schema: str, folder: str, panes: Sequence[PaneHeader]) -> bytes:
    encoded = [encode_pane(schema, pane) for pane in panes]
    if span_of(folder) is not None:
        of_several = [(pane.key[:2], place_of(pane), each) for pane, each in zip(panes, encoded, strict=True)]
        return indexed_of_several(schema, of_several)[1]
    if collection_of(folder) is not None:
        return indexed(schema, [(place_of(pane), each) for pane, each in zip(panes, encoded, strict=True)])[1]
    return container_bytes(schema, encoded, deflated=True)

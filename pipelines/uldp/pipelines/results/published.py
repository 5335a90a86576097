"""The newest estimates of a results directory, read one at a time, for what does not hold a whole history in memory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uldp.pipelines.results.files import Damaged, ResultsError, check_directory, read_container, refuse
from uldp.pipelines.results.read import (
    ESTIMATES,
    PANES,
    Panes,
    choose,
    estimate_key,
    folders_of,
    read_files,
    read_window,
)
from uldp.pipelines.results.selection import ALL, Key, Selection, window_of
from uldp.pipelines.results.signed import Signed
from uldp.pipelines.results.soundness import sound_counts, sound_estimate
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.folders import COUNTS

_HEADERS = Panes(COUNTS, "statistic", lambda value: PaneHeader(**sound_counts(value).header()))
_HEADERS_OF_ESTIMATES = Panes("estimates", "estimate", lambda value: replace(sound_estimate(value), tables=()))


@dataclass(frozen=True)
class Published:
    """The estimates that ``current`` returns, which iteration reads from their files one at a time.

    Attributes:
        unpublished: The header of the newest pane of each window without a published estimate.
    """

    unpublished: list[PaneHeader]
    _files: Mapping[Path, set[tuple[Any, ...]]]

    def __len__(self) -> int:
        return sum(map(len, self._files.values()))

    def __iter__(self) -> Iterator[Estimate]:
        for path, chosen in self._files.items():
            left = set(chosen)
            for estimate in read_container(path, ESTIMATES.schema, ESTIMATES.read):
                if _pane_key(estimate) in left:  # two panes of a file may be equal
                    left.remove(_pane_key(estimate))
                    yield estimate
            if left:
                raise ResultsError(f"{plain(str(path))}: uldp prune removed it meanwhile; run the command again")


def published(
    out: Path, specs: Mapping[CollectionKey, CollectionSpec], selection: Selection = ALL, damaged: Damaged = refuse
) -> Published:
    """Return the estimates of ``current`` to iterate over, in memory for the headers of all panes and one whole pane.

    The function reads each file, so it finds those that are damaged, and iteration reads those of newest panes again.

    Args:
        out: A results directory.
        specs: The specs that the results were made under.
        selection: Which windows and estimators to read; the function does not open the files of others.
        damaged: As in ``current``. The result includes no window of a damaged file.

    Raises:
        ResultsError: if ``out`` is not a directory; during iteration, if a file was removed or damaged meanwhile.
            Errors that ``damaged`` raises pass through.
    """
    check_directory(out)
    fired: list[PaneHeader] = []
    paths: dict[tuple[Any, ...], Path] = {}
    estimates: list[Estimate] = []
    left_out: set[Key | None] = set()
    for folder in selection.folders(folders_of(out, PANES) | folders_of(out, ESTIMATES)):
        counted = read_window(out, _HEADERS, folder, selection, damaged)
        estimated = read_files(out, _HEADERS_OF_ESTIMATES, folder, selection, damaged)
        if counted is not None and estimated is not None:
            fired += counted
            for path, headers in estimated.items():
                estimates += headers
                for header in headers:
                    paths.setdefault(_pane_key(header), path)
        else:
            left_out.add(window_of(folder))
    for lost in Signed.read(out).lost_panes(out, [*fired, *estimates], selection, left_out):
        damaged(lost)
    newest_estimates, unpublished = choose(fired, estimates, specs, selection)
    files: dict[Path, set[tuple[Any, ...]]] = {}
    for key in map(_pane_key, newest_estimates):
        files.setdefault(paths[key], set()).add(key)
    return Published(unpublished, files)


def _pane_key(estimate: Estimate) -> tuple[Any, ...]:
    return *estimate_key(estimate), estimate.age

"""Read a results directory: all panes, the newest pane of each window, and the rejected reports.

    OUT/specs/<collection>-v<version>/spec.yaml
    OUT/estimates/<collection>-v<version>/<start>--<end>/<revision>.<estimator>.avro
    OUT/counts/<collection>-v<version>/<start>--<end>/<revision>.avro
    OUT/estimates/<collection>-v<version>/shared/<digest>.<estimator>.avro
    OUT/counts/<collection>-v<version>/shared/<digest>.avro
    OUT/rejected/*.avro

The files in ``shared`` hold panes of several windows. Older jobs named the folder of such counts ``uncounted``.

Writers rename a dot-prefixed file into place, so every other file is complete and can be read while a job runs. If a
file is damaged nevertheless, the readers leave out its window, because they would otherwise take an older pane of this
window for the newest. All other windows stay readable.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from uldp.pipelines.results.files import Damaged, ResultsError, check_directory, finished, read_container, refuse
from uldp.pipelines.results.selection import ALL, Key, Selection, window_of
from uldp.pipelines.results.soundness import sound_estimate, sound_statistic
from uldp.schemas.collection import CollectionKey, CollectionSpec
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import withheld
from uldp.schemas.pane import PaneHeader
from uldp.schemas.records import Rejected
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.folders import Kind, kind_of, mismatch

PaneRecord = TypeVar("PaneRecord", Estimate, Statistic)


def read_estimates(out: Path, damaged: Damaged = refuse) -> list[Estimate]:
    """Read every estimate of every window, ordered by path; the list is empty if no window has fired.

    Args:
        out: A results directory.
        damaged: Called for each damaged file. The list omits all panes of a window with a damaged file.

    Raises:
        ResultsError: if ``out`` is not a directory. Errors that ``damaged`` raises pass through.
    """
    return _read(out, ESTIMATES, damaged)


def read_statistics(out: Path, damaged: Damaged = refuse) -> list[Statistic]:
    """Read the statistic of every pane of every window, ordered by path; see ``read_estimates``.

    Raises:
        ResultsError: if ``out`` is not a directory. Errors that ``damaged`` raises pass through.
    """
    return _read(out, STATISTICS, damaged)


def read_pane_files(out: Path, damaged: Damaged = refuse) -> Iterator[dict[Path, list[Estimate] | list[Statistic]]]:
    """Yield the panes of each window by file, in a dictionary for its statistics and one for its estimates.

    Args:
        out: A results directory.
        damaged: Called for each damaged file. The function yields nothing of the folder of a damaged file.

    Raises:
        ResultsError: if ``out`` is not a directory. Errors that ``damaged`` raises pass through.
    """
    check_directory(out)
    for folder in sorted(folders_of(out, STATISTICS)):
        yield {**(read_files(out, STATISTICS, folder, ALL, damaged) or {})}
    for folder in sorted(folders_of(out, ESTIMATES)):
        yield {**(read_files(out, ESTIMATES, folder, ALL, damaged) or {})}


def read_rejected(out: Path, damaged: Damaged = refuse) -> Iterator[Rejected]:
    """Read the rejected reports, one at a time; a results directory may hold none.

    Args:
        out: A results directory.
        damaged: Called for each damaged file, after the reader has yielded the records before the damage.

    Raises:
        ResultsError: if ``out`` is not a directory. Errors that ``damaged`` raises pass through during iteration.
    """
    check_directory(out)
    return _rejected_in(out / "rejected", damaged)


def read_rejected_folder(folder: Path) -> Iterator[Rejected]:
    """Read the rejected reports of ``OUT/rejected``, or of a folder with copies of its files.

    Raises:
        ResultsError: if ``folder`` holds no such records, or, during iteration, if a file cannot be read.
    """
    if kind_of(folder) is not Kind.REJECTED:
        raise ResultsError(mismatch(folder, Kind.REJECTED))
    return _rejected_in(folder, refuse)


def _rejected_in(folder: Path, damaged: Damaged) -> Iterator[Rejected]:
    for path in finished(folder):
        try:
            yield from read_container(path, "rejected", Rejected.from_avro)
        except ResultsError as error:
            damaged(error)


def estimate_key(pane: Estimate | Statistic) -> tuple[str | int, ...]:
    """Return what the panes share of which only the newest holds: their key, and the estimator if there is one."""
    return *pane.key, pane.estimator if isinstance(pane, Estimate) else ""


def newest(panes: Iterable[PaneRecord]) -> list[PaneRecord]:
    """Keep one pane per (collection, version, window, estimator), ordered by that key.

    The newest pane has the largest ``PaneHeader.age``. A local run that is started again writes from revision 0 on,
    and the files of the earlier run stay.
    """
    best: dict[tuple[Any, ...], PaneRecord] = {}
    for fired in panes:
        key = estimate_key(fired)
        if key not in best or fired.age > best[key].age:
            best[key] = fired
    return [best[key] for key in sorted(best)]


class Current(NamedTuple):
    """The newest state of the windows in a results directory.

    Attributes:
        estimates: The newest estimate of each window and estimator.
        unpublished: The newest statistic of each window without a published estimate.
        statistics: The statistics of all panes, by the firing that made them.
    """

    estimates: list[Estimate]
    unpublished: list[Statistic]
    statistics: Mapping[tuple[Any, ...], Statistic]

    def statistic_of(self, estimate: Estimate) -> Statistic | None:
        """Return the statistic that an estimate was computed from; None if its file is missing."""
        return self.statistics.get(_firing(estimate))


def _firing(pane: PaneHeader) -> tuple[Any, ...]:
    """Identify the firing of a window. A job that runs again uses the revisions again, so they alone do not suffice."""
    return *pane.key, pane.pane.revision, pane.channel, pane.accounting


def current(
    out: Path, specs: Mapping[CollectionKey, CollectionSpec], selection: Selection = ALL, damaged: Damaged = refuse
) -> Current:
    """Return the newest estimates in ``out``, and the newest statistics of the windows without a published estimate.

    A window may have estimates of earlier panes and still be unpublished now, if its collection was stopped since
    then. Both lists are empty if no window has fired.

    Args:
        out: A results directory.
        specs: The specs that the results were made under.
        selection: Which windows and estimators to read; the function does not open the files of others.
        damaged: Called for each damaged file. The result includes no window of a damaged file.

    Raises:
        ResultsError: if ``out`` is not a directory. Errors that ``damaged`` raises pass through.
    """
    check_directory(out)
    statistics: list[Statistic] = []
    estimates: list[Estimate] = []
    for folder in selection.folders(folders_of(out, STATISTICS) | folders_of(out, ESTIMATES)):
        counted = read_window(out, STATISTICS, folder, selection, damaged)
        estimated = read_window(out, ESTIMATES, folder, selection, damaged)
        if counted is not None and estimated is not None:
            statistics += counted
            estimates += estimated
    newest_estimates, unpublished = choose(statistics, estimates, specs, selection)
    return Current(newest_estimates, unpublished, {_firing(statistic): statistic for statistic in statistics})


def choose(
    statistics: Iterable[Statistic],
    estimates: Iterable[Estimate],
    specs: Mapping[CollectionKey, CollectionSpec],
    selection: Selection,
) -> tuple[list[Estimate], list[Statistic]]:
    """Return the newest estimates of the selected windows, and the newest statistics of those without one."""
    statistics, estimates = newest(statistics), newest(estimates)
    chosen = selection.windows({pane.key for pane in (*statistics, *estimates)})
    panes = [pane for pane in statistics if pane.key in chosen]
    unpublished = [pane for pane in panes if pane.key[:2] in specs and withheld(specs[pane.key[:2]].limits, pane.flags)]
    published = chosen - {pane.key for pane in unpublished}
    return [estimate for estimate in estimates if estimate.key in published], unpublished


@dataclass(frozen=True)
class Panes(Generic[PaneRecord]):
    """A kind of pane: its folder, its schema, and the function that makes a pane from a value of this schema."""

    folder: str
    schema: str
    read: Callable[[Mapping[str, Any]], PaneRecord]


STATISTICS = Panes("counts", "statistic", sound_statistic)
ESTIMATES = Panes("estimates", "estimate", sound_estimate)


def _read(out: Path, kind: Panes[PaneRecord], damaged: Damaged) -> list[PaneRecord]:
    check_directory(out)
    windows = (read_window(out, kind, folder, ALL, damaged) for folder in sorted(folders_of(out, kind)))
    return [pane for window in windows for pane in window or ()]


def read_window(
    out: Path, kind: Panes[PaneRecord], folder: str, selection: Selection, damaged: Damaged
) -> list[PaneRecord] | None:
    """Read the panes of one window; return None if one of its files is damaged."""
    files = read_files(out, kind, folder, selection, damaged)
    return None if files is None else [pane for panes in files.values() for pane in panes]


def read_files(
    out: Path, kind: Panes[PaneRecord], folder: str, selection: Selection, damaged: Damaged
) -> dict[Path, list[PaneRecord]] | None:
    """Read the panes of one window by file; return None if one of its files is damaged."""
    files: dict[Path, list[PaneRecord]] = {}
    whole = True
    for path in finished(out / kind.folder / folder):
        estimator = estimator_of(path)
        if not selection.has_estimator(estimator):
            continue
        named = partial(_named, kind.read, window_of(folder), estimator)
        try:
            files[path] = list(read_container(path, kind.schema, named))
        except ResultsError as error:
            whole = False
            damaged(error)
    return files if whole else None


def _named(
    read: Callable[[Mapping[str, Any]], PaneRecord], window: Key | None, estimator: str | None, value: Mapping[str, Any]
) -> PaneRecord:
    """Read a pane, and check that its window and estimator match its path, as far as the path names them."""
    fired = read(value)
    if window not in (None, fired.key):
        raise ValueError("the record is of another window than its folder")
    if isinstance(fired, Estimate) and estimator not in (None, fired.estimator):
        raise ValueError("the record is of another estimator than its file name")
    return fired


def folders_of(out: Path, kind: Panes[Any]) -> set[str]:
    """Return the folders of windows, ``<collection>-v<version>/<start>--<end>``."""
    return {f"{path.parent.name}/{path.name}" for path in (out / kind.folder).glob("*/*")}


def estimator_of(path: Path) -> str | None:
    """Read the estimator from the name of a file, ``<revision>.<estimator>.avro`` or ``<digest>.<estimator>.avro``."""
    parts = path.name.split(".")
    return parts[1] if len(parts) == 3 else None

"""Read a results directory: all panes, the newest pane of each window, and the rejected reports.

    OUT/specs/<collection>-v<version>/spec.yaml
    OUT/estimates/<collection>-v<version>/<start>--<end>/<revision>.<estimator>.avro
    OUT/counts/<collection>-v<version>/<start>--<end>/<revision>.avro
    OUT/estimates/<collection>-v<version>/shared/[<day>-]<digest>.<estimator>.avro
    OUT/counts/<collection>-v<version>/shared/[<day>-]<digest>.avro
    PRIVATE/few/<collection>-v<version>/<start>--<end>/<revision>.avro
    PRIVATE/few/<collection>-v<version>/shared/[<day>-]<digest>.avro
    PRIVATE/rejected/*.avro
    OUT/missing/*.avro

PRIVATE is OUT, or the place of ``--private-to``. If a pane, or a variable of its record, has fewer reports than
``limits.min_reports``, its statistic is in ``few``, and ``counts`` has its header alone.

The files in ``shared`` hold panes of several windows; ``uldp compact`` writes those of a day.

Writers rename a dot-prefixed file into place, so every other file is complete and can be read while a job runs. If a
file is damaged nevertheless, the readers leave out its window, because they would otherwise take an older pane of this
window for the newest. All other windows stay readable.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from uldp.pipelines.results.files import Damaged, ResultsError, check_directory, finished, read_container, refuse
from uldp.pipelines.results.selection import ALL, Key, Selection, window_of
from uldp.pipelines.results.signed import Signed
from uldp.pipelines.results.soundness import check_claim, sound_counts, sound_estimate
from uldp.schemas.codec.blocks import ContainerError
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import withheld
from uldp.schemas.pane import PaneHeader
from uldp.schemas.records import Missing, iso
from uldp.schemas.rejected import Rejected, each_once
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.folders import COUNTS, FEW, MISSING, SOURCE_DIGITS, Kind, kind_of, mismatch
from uldp.transforms.io.kept_files import copies
from uldp.transforms.io.message_files import opened

R = TypeVar("R")
PaneRecord = TypeVar("PaneRecord", bound=PaneHeader)


def read_estimates(out: Path, damaged: Damaged = refuse) -> list[Estimate]:
    """Read every estimate of every window, ordered by path; the list is empty if no window has fired.

    Args:
        out: A results directory.
        damaged: Called for each damaged file. The list omits all panes of a window with a damaged file.

    Raises:
        ResultsError: if ``out`` is not a directory. Errors that ``damaged`` raises pass through.
    """
    return _read(out, ESTIMATES, damaged)


def read_panes(out: Path, damaged: Damaged = refuse) -> list[PaneHeader]:
    """Read every pane of every window, ordered by path: its statistic, or its header alone if its cells are apart.

    Args:
        out: A results directory.
        damaged: As in ``read_estimates``.

    Raises:
        ResultsError: if ``out`` is not a directory. Errors that ``damaged`` raises pass through.
    """
    return _read(out, PANES, damaged)


def read_statistics(out: Path, damaged: Damaged = refuse, *, private: Path | None = None) -> list[Statistic]:
    """Read the statistics of panes, ordered by path: of each window all that the directories hold, the newest included.

    Args:
        out: A results directory.
        damaged: Called for each damaged file, and once if cells are apart that ``private`` does not hold. The list
            omits all panes of a window with a damaged file, and of a window whose newest pane lacks its cells.
        private: The directory with the cells of panes of few reports: ``out``, or that of ``--private-to``. None if
            you may not read it.

    Raises:
        ResultsError: if a given path is not a directory. Errors that ``damaged`` raises pass through.
    """
    few = {} if private is None else {_firing(pane): pane for pane in _read(private, FEW_PANES, damaged)}
    panes = [_with_cells(pane, few.get(_firing(pane))) for pane in read_panes(out, damaged)]
    lacking = {pane.key: pane for pane in newest(panes) if not isinstance(pane, Statistic)}
    if lacking:
        damaged(_apart(out, list(lacking.values()), private))
    return [pane for pane in panes if isinstance(pane, Statistic) and pane.key not in lacking]


def _with_cells(pane: PaneHeader, few: PaneHeader | None) -> PaneHeader:
    """Return a pane with its cells if they are apart; the flag of a stopped job is in the header alone."""
    if isinstance(few, Statistic) and not isinstance(pane, Statistic):
        return Statistic(**pane.header(), cells=few.cells)
    return pane


def _apart(out: Path, panes: Sequence[PaneHeader], private: Path | None) -> ResultsError:
    first = panes[0]
    window = f"{first.collection} v{first.version} from {iso(first.window_start)}"
    more = f" and {len(panes) - 1:,} more" if len(panes) > 1 else ""
    remedy = (
        "give the directory that holds them as private, or leave these windows out by damaged"
        if private is None
        else f"{plain(str(private / FEW))} does not hold them: restore it, or run the job again"
    )
    return ResultsError(
        f"{plain(str(out))}: the counts of windows of too few reports are apart ({window}{more}); {remedy}"
    )


def read_pane_files(out: Path, damaged: Damaged = refuse) -> Iterator[dict[Path, list[PaneHeader]]]:
    """Yield the panes of each window by file, in a dictionary for each kind of pane.

    Args:
        out: A results directory.
        damaged: Called for each damaged file. The function yields nothing of the folder of a damaged file.

    Raises:
        ResultsError: if ``out`` is not a directory. Errors that ``damaged`` raises pass through.
    """
    check_directory(out)
    kinds: tuple[Panes[Any], ...] = (PANES, FEW_PANES, ESTIMATES)
    for kind in kinds:
        for folder in sorted(folders_of(out, kind)):
            files = read_files(out, kind, folder, ALL, damaged) or {}
            yield {path: list(panes) for path, panes in files.items()}


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


def read_missing(out: Path, damaged: Damaged = refuse) -> Iterator[Missing]:
    """Read the records of messages that the source lost; ``missing_messages`` counts each message of them once.

    Args:
        out: A results directory.
        damaged: Called for each damaged file.

    Raises:
        ResultsError: if ``out`` is not a directory. Errors that ``damaged`` raises pass through during iteration.
    """
    check_directory(out)
    return _records_in(out / MISSING, "missing", Missing.from_avro, damaged)


def read_rejected_folder(folder: Path) -> Iterator[Rejected]:
    """Read the rejected reports of ``OUT/rejected``, or of a folder with copies of its files.

    Raises:
        ResultsError: if ``folder`` holds no such records, or, during iteration, if a file cannot be read.
    """
    if kind_of(folder) is not Kind.REJECTED:
        raise ResultsError(mismatch(folder, Kind.REJECTED))
    return _rejected_in(folder, refuse)


def _rejected_in(folder: Path, damaged: Damaged) -> Iterator[Rejected]:
    """Read the rejected reports of a folder, each once: the first half of a file's name stands for its source.

    Of a file and its copies, one is read. The name is that which the job gave the file.
    """
    paths = [str(path) for path in finished(folder)]
    headers, copied = copies(paths, opened)
    names = {path: headers[path].name if path in headers else Path(path).stem for path in paths if path not in copied}
    ordered = sorted(names, key=lambda path: (names[path], path))
    for _, files in groupby(ordered, lambda path: names[path][:SOURCE_DIGITS]):
        yield from each_once(_records_of(map(Path, files), "rejected", Rejected.from_avro, damaged))


def _records_in(folder: Path, schema: str, read: Callable[[Mapping[str, Any]], R], damaged: Damaged) -> Iterator[R]:
    return _records_of(finished(folder), schema, read, damaged)


def _records_of(
    files: Iterable[Path], schema: str, read: Callable[[Mapping[str, Any]], R], damaged: Damaged
) -> Iterator[R]:
    for path in files:
        try:
            yield from read_container(path, schema, read)
        except ResultsError as error:
            damaged(error)


def estimate_key(pane: PaneHeader) -> tuple[str | int, ...]:
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
        unpublished: The newest pane of each window without a published estimate; only its header, if its cells are
            apart.
        statistics: The statistics of all panes whose cells are not apart, by the firing that made them.
    """

    estimates: list[Estimate]
    unpublished: list[PaneHeader]
    statistics: Mapping[tuple[Any, ...], Statistic]

    def statistic_of(self, estimate: Estimate) -> Statistic | None:
        """Return the statistic that an estimate was computed from; None if its cells are apart, or its file missing."""
        return self.statistics.get(_firing(estimate))


def _firing(pane: PaneHeader) -> tuple[Any, ...]:
    """Identify the firing of a window. A job that runs again uses the revisions again, so they alone do not suffice."""
    return *pane.key, pane.pane.revision, pane.channel, pane.accounting


def current(
    out: Path, specs: Mapping[CollectionKey, CollectionSpec], selection: Selection = ALL, damaged: Damaged = refuse
) -> Current:
    """Return the newest estimates in ``out``, and the newest panes of the windows without a published estimate.

    A window may have estimates of earlier panes and still be unpublished now, if its collection was stopped since
    then. Both lists are empty if no window has fired.

    Args:
        out: A results directory.
        specs: The specs that the results were made under.
        selection: Which windows and estimators to read; the function does not open the files of others.
        damaged: Called for each damaged file, and for each window whose newest pane a local job has written and that is
            not there. The result includes no window of a damaged file.

    Raises:
        ResultsError: if ``out`` is not a directory. Errors that ``damaged`` raises pass through.
    """
    check_directory(out)
    fired: list[PaneHeader] = []
    estimates: list[Estimate] = []
    left_out: set[Key | None] = set()
    for folder in selection.folders(folders_of(out, PANES) | folders_of(out, ESTIMATES)):
        counted = read_window(out, PANES, folder, selection, damaged)
        estimated = read_window(out, ESTIMATES, folder, selection, damaged)
        if counted is not None and estimated is not None:
            fired += counted
            estimates += estimated
        else:
            left_out.add(window_of(folder))
    for lost in Signed.read(out).lost_panes(out, [*fired, *estimates], selection, left_out):
        damaged(lost)
    newest_estimates, unpublished = choose(fired, estimates, specs, selection)
    statistics = {_firing(pane): pane for pane in fired if isinstance(pane, Statistic)}
    return Current(newest_estimates, unpublished, statistics)


def choose(
    fired: Iterable[PaneHeader],
    estimates: Iterable[Estimate],
    specs: Mapping[CollectionKey, CollectionSpec],
    selection: Selection,
) -> tuple[list[Estimate], list[PaneHeader]]:
    """Return the newest estimates of the selected windows, and the newest panes of those without one."""
    fired, estimates = newest(fired), newest(estimates)
    chosen = selection.windows({pane.key for pane in (*fired, *estimates)})
    panes = [pane for pane in fired if pane.key in chosen]
    unpublished = [pane for pane in panes if pane.key[:2] in specs and withheld(specs[pane.key[:2]].limits, pane.flags)]
    published = chosen - {pane.key for pane in unpublished}
    return [estimate for estimate in estimates if estimate.key in published], unpublished


@dataclass(frozen=True)
class Panes(Generic[PaneRecord]):
    """A kind of pane: its folder, its schema, and the function that makes a pane from a value of this schema."""

    folder: str
    schema: str
    read: Callable[[Mapping[str, Any]], PaneRecord]


PANES = Panes(COUNTS, "statistic", sound_counts)
FEW_PANES = Panes(FEW, "statistic", sound_counts)
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
        try:
            files[path] = read_file(path, kind, folder)
        except ResultsError as error:
            whole = False
            damaged(error)
    return files if whole else None


def read_file(path: Path, kind: Panes[PaneRecord], folder: str) -> list[PaneRecord]:
    """Read the panes of a file, of one of a window or of ``shared``.

    Raises:
        ResultsError: if the file cannot be read, its panes are of another window or estimator than its name says, or it
            claims more than a job writes.
    """
    window, spec = window_of(folder), path.parents[3] / "specs" / path.parents[1].name / "spec.yaml"
    number = count()

    def read(value: Mapping[str, Any]) -> PaneRecord:
        if next(number) and window is not None:
            raise ContainerError("holds several panes, and only a shared file may")
        check_claim(value, spec)
        return _named(kind.read(value), window, estimator_of(path))

    return list(read_container(path, kind.schema, read))


def _named(fired: PaneRecord, window: Key | None, estimator: str | None) -> PaneRecord:
    """Check that the window and the estimator of a pane match its path, as far as the path names them."""
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

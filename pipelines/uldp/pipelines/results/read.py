"""Read a results directory: all panes, the newest pane of each window, and estimates as JSON.

    OUT/specs/<collection>-v<version>/spec.yaml
    OUT/estimates/<collection>-v<version>/<start>--<end>/<revision>.<estimator>.avro
    OUT/counts/<collection>-v<version>/<start>--<end>/<revision>.avro
    OUT/counts/<collection>-v<version>/uncounted/*.avro
    OUT/rejected/*.avro

Writers rename a dot-prefixed file into place, so every other file is complete and can be read while a job runs. If a
file is damaged nevertheless, the readers leave out its window, because they would otherwise take an older pane of this
window for the newest. All other windows stay readable.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from uldp.pipelines.results.selection import ALL, Key, Selection, require, window_of
from uldp.pipelines.results.soundness import sound_counts, sound_estimate
from uldp.schemas.codec.blocks import Container, ContainerError, open_file
from uldp.schemas.collection import CollectionSpec
from uldp.schemas.flags import withheld
from uldp.schemas.mistakes import plain
from uldp.schemas.records import Estimate, Rejected, SupportCounts, iso
from uldp.transforms.io.folders import KINDS, Kind, kind_of, mismatch

Specs = Mapping[tuple[str, int], CollectionSpec]
PaneRecord = TypeVar("PaneRecord", Estimate, SupportCounts)
Read = TypeVar("Read")

_JSON_KEYS = (
    "collection",
    "version",
    "window_start",
    "window_end",
    "pane",
    "n",
    "mechanism",
    "epsilon",
    "estimator",
    "distribution",
    "stderr",
    "tags",
    "bound",
    "counts",
    "accounting",
    "flags",
    "supersedes",
    "signals",
)


class ResultsError(ValueError):
    """A results directory that cannot be read. The message names the path and the remedy."""


def refuse(damage: ResultsError) -> NoReturn:
    """Raise the error about a damaged file; this is the default of the readers below."""
    raise damage


#: A callback for a file that cannot be read; it takes the error, which names the file and the remedy.
Damaged = Callable[[ResultsError], object]


def read_estimates(out: Path, damaged: Damaged = refuse) -> list[Estimate]:
    """Read every estimate of every window, ordered by path; the list is empty if no window has fired.

    Args:
        out: A results directory.
        damaged: Called for each damaged file. The list omits all panes of a window with a damaged file.

    Raises:
        ResultsError: if ``out`` is not a directory. Errors that ``damaged`` raises pass through.
    """
    return _read(out, _ESTIMATES, damaged)


def read_counts(out: Path, damaged: Damaged = refuse) -> list[SupportCounts]:
    """Read the support counts of every pane of every window, ordered by path; see ``read_estimates``.

    Raises:
        ResultsError: if ``out`` is not a directory. Errors that ``damaged`` raises pass through.
    """
    return _read(out, _COUNTS, damaged)


def read_pane_files(out: Path, damaged: Damaged = refuse) -> Iterator[dict[Path, list[Estimate] | list[SupportCounts]]]:
    """Yield the panes of each window by file, in a dictionary for its counts and one for its estimates.

    Args:
        out: A results directory.
        damaged: Called for each damaged file. The function yields nothing of the folder of a damaged file.

    Raises:
        ResultsError: if ``out`` is not a directory. Errors that ``damaged`` raises pass through.
    """
    _check_directory(out)
    for folder in sorted(_folders(out, _COUNTS)):
        yield {**(_read_files(out, _COUNTS, folder, ALL, damaged) or {})}
    for folder in sorted(_folders(out, _ESTIMATES)):
        yield {**(_read_files(out, _ESTIMATES, folder, ALL, damaged) or {})}


def read_rejected(out: Path, damaged: Damaged = refuse) -> Iterator[Rejected]:
    """Read the rejected reports, one at a time; a results directory may hold none.

    Args:
        out: A results directory.
        damaged: Called for each damaged file, after the reader has yielded the records before the damage.

    Raises:
        ResultsError: if ``out`` is not a directory. Errors that ``damaged`` raises pass through during iteration.
    """
    _check_directory(out)
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
    for path in _finished(folder):
        try:
            yield from _read_container(path, "rejected", Rejected.from_avro)
        except ResultsError as error:
            damaged(error)


def read_specs(out: Path) -> dict[tuple[str, int], CollectionSpec]:
    """Load the specs that the results were made under, by (collection, version).

    Raises:
        ResultsError: if ``out`` is not a directory, or holds no spec.
        SpecError: if a spec in ``out`` is invalid.
    """
    _check_directory(out)
    specs = [CollectionSpec.load(path) for path in sorted(out.glob("specs/*/spec.yaml"))]
    if not specs:
        raise ResultsError(mismatch(out, Kind.RESULTS))
    return {spec.key: spec for spec in specs}


def spec_of(estimate: Estimate, specs: Specs) -> CollectionSpec:
    """Find the spec that an estimate was made under.

    Raises:
        ResultsError: if ``specs`` has no spec of the estimate's collection and version, or if the domain, tags or
            mechanism of that spec differ from the estimate's.
    """
    support = estimate.support
    name = f"{support.collection}-v{support.version}"
    spec = specs.get((support.collection, support.version))
    if spec is None:
        raise ResultsError(f"specs/{name}/spec.yaml is missing beside the estimates of {name}; copy the spec there")
    channel = (spec.mechanism.name, spec.mechanism.epsilon, spec.size, spec.size + len(spec.tags))
    if channel != (estimate.mechanism, estimate.epsilon, len(estimate.distribution), len(support.counts)):
        raise ResultsError(
            f"specs/{name}/spec.yaml is not the spec of the job that made the estimates of {name}: "
            "domain, tags, mechanism or epsilon differ; restore the spec of that job"
        )
    return spec


def newest(panes: Iterable[PaneRecord]) -> list[PaneRecord]:
    """Keep one pane per (collection, version, window, estimator), ordered by that key.

    The newest pane has the largest ``SupportCounts.age``. A local run that is started again writes from revision 0 on,
    and the files of the earlier run stay.
    """
    best: dict[tuple[Any, ...], PaneRecord] = {}
    for fired in panes:
        support: SupportCounts = _support(fired)
        estimator = "" if isinstance(fired, SupportCounts) else fired.estimator
        key = (*support.key, estimator)
        if key not in best or support.age > _support(best[key]).age:
            best[key] = fired
    return [best[key] for key in sorted(best)]


def current(
    out: Path, specs: Specs, selection: Selection = ALL, damaged: Damaged = refuse
) -> tuple[list[Estimate], list[SupportCounts]]:
    """Return the newest estimates in ``out``, and the newest counts of the windows without a published estimate.

    A window may have estimates of earlier panes and still be unpublished now, if its collection was stopped since
    then. Both lists are empty if no window has fired.

    Args:
        out: A results directory.
        specs: The specs that the results were made under.
        selection: Which windows and estimators to read; the function does not open the files of others.
        damaged: Called for each damaged file. Neither list includes the window of a damaged file.

    Raises:
        ResultsError: if ``out`` is not a directory. Errors that ``damaged`` raises pass through.
    """
    _check_directory(out)
    counts: list[SupportCounts] = []
    estimates: list[Estimate] = []
    for folder in selection.folders(_folders(out, _COUNTS) | _folders(out, _ESTIMATES)):
        counted = _read_window(out, _COUNTS, folder, selection, damaged)
        estimated = _read_window(out, _ESTIMATES, folder, selection, damaged)
        if counted is not None and estimated is not None:
            counts += counted
            estimates += estimated
    chosen = selection.windows({pane.key for pane in counts} | {estimate.support.key for estimate in estimates})
    panes = [pane for pane in newest(counts) if pane.key in chosen]
    unpublished = [pane for pane in panes if pane.key[:2] in specs and withheld(specs[pane.key[:2]].limits, pane.flags)]
    published = chosen - {pane.key for pane in unpublished}
    return [estimate for estimate in newest(estimates) if estimate.support.key in published], unpublished


def with_specs(
    estimates: Iterable[Estimate], specs: Specs, damaged: Damaged = refuse
) -> Iterator[tuple[Estimate, CollectionSpec]]:
    """Yield each estimate with the spec it was made under; pass each distinct error of ``spec_of`` to ``damaged``."""
    said = set()
    for estimate in estimates:
        try:
            spec = spec_of(estimate, specs)
        except ResultsError as error:
            if str(error) not in said:
                damaged(error)
            said.add(str(error))
        else:
            yield estimate, spec


def check_selection(out: Path, specs: Specs, selection: Selection) -> None:
    """Check that the results have the collection and the estimator that a selection names.

    Raises:
        SelectionError: if no spec has the collection, or if neither its specs nor its files name the estimator.
    """
    require("collection", selection.collection, {collection for collection, _ in specs})
    mine = [spec for spec in specs.values() if selection.collection in (None, spec.collection)]
    estimators: set[str] = {name for spec in mine for name in spec.estimators}
    for spec in mine:
        files = _finished(out, f"{_ESTIMATES.folder}/{spec.collection}-v{spec.version}/*/*.avro")
        estimators |= {name for name in map(_estimator_of, files) if name is not None}
    require("estimator", selection.estimator, estimators)


def to_json(estimate: Estimate) -> dict[str, Any]:
    """Return the fields of one line of ``uldp show --json``: those of ``estimate.avsc``, with times in ISO 8601."""
    support = estimate.support
    times = {"window_start": iso(support.window_start), "window_end": iso(support.window_end)}
    value = estimate.to_avro() | times
    return {key: value[key] for key in _JSON_KEYS}


@dataclass(frozen=True)
class _Panes(Generic[PaneRecord]):
    """A kind of pane: its folder, its schema, and the function that makes a pane from a value of this schema."""

    folder: str
    schema: str
    read: Callable[[Mapping[str, Any]], PaneRecord]


_COUNTS = _Panes("counts", "support_counts", sound_counts)
_ESTIMATES = _Panes("estimates", "estimate", sound_estimate)


def _support(fired: Estimate | SupportCounts) -> SupportCounts:
    return fired if isinstance(fired, SupportCounts) else fired.support


def _read(out: Path, kind: _Panes[PaneRecord], damaged: Damaged) -> list[PaneRecord]:
    _check_directory(out)
    windows = (_read_window(out, kind, folder, ALL, damaged) for folder in sorted(_folders(out, kind)))
    return [pane for window in windows for pane in window or ()]


def _read_window(
    out: Path, kind: _Panes[PaneRecord], folder: str, selection: Selection, damaged: Damaged
) -> list[PaneRecord] | None:
    """Read the panes of one window; return None if one of its files is damaged."""
    files = _read_files(out, kind, folder, selection, damaged)
    return None if files is None else [pane for panes in files.values() for pane in panes]


def _read_files(
    out: Path, kind: _Panes[PaneRecord], folder: str, selection: Selection, damaged: Damaged
) -> dict[Path, list[PaneRecord]] | None:
    """Read the panes of one window by file; return None if one of its files is damaged."""
    files: dict[Path, list[PaneRecord]] = {}
    whole = True
    for path in _finished(out / kind.folder / folder):
        estimator = _estimator_of(path)
        if not selection.has_estimator(estimator):
            continue
        named = partial(_named, kind.read, window_of(folder), estimator)
        try:
            files[path] = list(_read_container(path, kind.schema, named))
        except ResultsError as error:
            whole = False
            damaged(error)
    return files if whole else None


def _named(
    read: Callable[[Mapping[str, Any]], PaneRecord], window: Key | None, estimator: str | None, value: Mapping[str, Any]
) -> PaneRecord:
    """Read a pane, and check that its window and estimator match its path, as far as the path names them."""
    fired = read(value)
    if window not in (None, _support(fired).key):
        raise ValueError("the record is of another window than its folder")
    if isinstance(fired, Estimate) and estimator not in (None, fired.estimator):
        raise ValueError("the record is of another estimator than its file name")
    return fired


def _check_directory(out: Path) -> None:
    if not out.is_dir():
        raise ResultsError(mismatch(out, Kind.RESULTS))


def _folders(out: Path, kind: _Panes[Any]) -> set[str]:
    """Return the folders of windows, ``<collection>-v<version>/<start>--<end>``."""
    return {f"{path.parent.name}/{path.name}" for path in (out / kind.folder).glob("*/*")}


def _estimator_of(path: Path) -> str | None:
    """Read the estimator from the name of a file, ``<revision>.<estimator>.avro``."""
    parts = path.name.split(".")
    return parts[1] if len(parts) == 3 else None


def _finished(folder: Path, pattern: str = "*.avro") -> list[Path]:
    """Return the complete files of a folder, without files that a writer has not renamed yet."""
    return sorted(path for path in folder.glob(pattern) if not path.name.startswith("."))


def _read_container(path: Path, schema: str, read: Callable[[Mapping[str, Any]], Read]) -> Iterator[Read]:
    try:
        with open_file(path) as file:
            container = Container.open(file)
            if container.name != schema:
                raise ContainerError(f"holds {KINDS[container.name]}")
            for value in container.records():
                yield read(value)
    except FileNotFoundError:
        return  # uldp prune has removed the file since it was listed
    except OSError as error:
        raise ResultsError(
            f"{plain(str(path))}: {error.strerror or error}; check the path and its permissions"
        ) from error
    except ContainerError as error:
        raise _not_whole(path, schema, str(error)) from error
    except Exception as error:  # a record may hold any values of its schema's types
        raise _not_whole(path, schema, type(error).__name__) from error


def _not_whole(path: Path, schema: str, reason: str) -> ResultsError:
    return ResultsError(
        f"{plain(str(path))}: damaged, or not an Avro file of schema {schema} ({reason}); "
        "remove it and run its job again"
    )

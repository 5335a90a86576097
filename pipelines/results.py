"""Reading a results directory: what the sinks wrote, the newest pane of each window, and that as JSON.

    OUT/specs/<collection>-v<version>/spec.yaml
    OUT/estimates/<collection>-v<version>/<start>--<end>/<revision>.<estimator>.avro
    OUT/counts/<collection>-v<version>/<start>--<end>/<revision>.avro
    OUT/rejected/*.avro

Writers rename a dot-prefixed file into place, so any other file is complete and may be read while they work.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import fastavro

from schemas.collection import CollectionSpec
from schemas.flags import Flag, withheld
from schemas.framing import load_schema
from schemas.records import Estimate, PaneKind, Rejected, SupportCounts, iso

Specs = Mapping[tuple[str, int], CollectionSpec]
Fired = TypeVar("Fired", Estimate, SupportCounts)

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


_KINDS = tuple(PaneKind)  # in the order in which they fire


class ResultsError(ValueError):
    """A results directory that cannot be read. The message names the path and the remedy."""


def read_estimates(out: Path) -> list[Estimate]:
    """Read every pane of every window, ordered by path.

    Raises:
        ResultsError: if ``out`` is no directory, holds no estimate yet, or holds a file that cannot be read.
    """
    return [Estimate.from_avro(value) for value in _read_panes(out, "estimates", "estimate")]


def read_counts(out: Path) -> list[SupportCounts]:
    """Read the support counts of every pane of every window, ordered by path.

    Raises:
        ResultsError: if ``out`` is no directory, holds no counts yet, or holds a file that cannot be read.
    """
    return [SupportCounts.from_avro(value) for value in _read_panes(out, "counts", "support_counts")]


def read_rejected(out: Path) -> Iterator[Rejected]:
    """Read the rejected reports, one at a time; a results directory without any is fine.

    Raises:
        ResultsError: if ``out`` is no directory, or, on the way, at a file that cannot be read.
    """
    _check_directory(out)
    return _rejected_in(out / "rejected")


def read_rejected_folder(folder: Path) -> Iterator[Rejected]:
    """Read the rejected reports of ``OUT/rejected``, or of wherever its files were taken.

    Raises:
        ResultsError: if ``folder`` is no directory or holds no records, or, on the way, at a file that cannot be read.
    """
    _check_directory(folder)
    if not _finished(folder.glob("*.avro")):
        raise ResultsError(f"{folder}: no rejected reports; give the directory rejected of the results")
    return _rejected_in(folder)


def _rejected_in(folder: Path) -> Iterator[Rejected]:
    paths = _finished(folder.glob("*.avro"))
    return (Rejected.from_avro(value) for path in paths for value in _read_container(path, "rejected"))


def read_specs(out: Path) -> dict[tuple[str, int], CollectionSpec]:
    """Load the specs that the results were made under, by (collection, version).

    Raises:
        ResultsError: if ``out`` is no directory, or holds no spec.
        SpecError: if a spec in it cannot be used.
    """
    _check_directory(out)
    specs = [CollectionSpec.load(path) for path in sorted(out.glob("specs/*/spec.yaml"))]
    if not specs:
        raise ResultsError(f"{out}: no specs/*/spec.yaml in it; give the directory that --to named")
    return {spec.key: spec for spec in specs}


def spec_of(estimate: Estimate, specs: Specs) -> CollectionSpec:
    """Find the spec that an estimate was made under.

    Raises:
        ResultsError: if it is not among ``specs``, or the one there has another domain, other tags or another
            mechanism than the estimate.
    """
    support = estimate.support
    name = f"{support.collection}-v{support.version}"
    spec = specs.get((support.collection, support.version))
    if spec is None:
        raise ResultsError(f"specs/{name}/spec.yaml is missing beside the estimates of {name}; copy the spec there")
    channel = (spec.mechanism.name, spec.mechanism.epsilon, spec.size, spec.size + len(spec.tags))
    if channel != (estimate.mechanism, estimate.epsilon, len(estimate.distribution), len(support.counts)):
        raise ResultsError(
            f"specs/{name}/spec.yaml is not the spec that the estimates of {name} were made under: "
            "its domain, tags, mechanism or epsilon differ; put that spec back"
        )
    return spec


def newest(panes: Iterable[Fired]) -> list[Fired]:
    """Keep one pane per (collection, version, window, estimator), ordered by that key.

    The newest is the one that has received the most; then one that is not incomplete; then a late one before one on
    time before an early one; then the one of the highest revision. Revisions start again at 0 when a local run is
    started again, and what the run before has written stays, but what a window has received never shrinks.
    """
    best: dict[tuple[Any, ...], tuple[tuple[int, bool, int, int], Fired]] = {}
    for fired in panes:
        support: SupportCounts = fired if isinstance(fired, SupportCounts) else fired.support
        estimator = "" if isinstance(fired, SupportCounts) else fired.estimator
        key = (*support.key, estimator)
        whole = Flag.INCOMPLETE not in support.flags
        age = (support.accounting.received, whole, _KINDS.index(support.pane.kind), support.pane.revision)
        if key not in best or age > best[key][0]:
            best[key] = age, fired
    return [best[key][1] for key in sorted(best)]


def current(out: Path, specs: Specs) -> tuple[list[Estimate], list[SupportCounts]]:
    """Return what ``out`` says now: the newest estimates, and the newest counts of windows of which none is published.

    A window may have estimates of earlier panes and yet publish none now: its collection was stopped since.

    Raises:
        ResultsError: if no window has fired yet, or a file cannot be read.
    """
    panes = newest(read_counts(out)) if _fired(out, "counts") else []
    silent = [pane for pane in panes if pane.key[:2] in specs and withheld(specs[pane.key[:2]].limits, pane.flags)]
    keys = {pane.key for pane in silent}
    estimates = newest(read_estimates(out)) if _fired(out, "estimates") or not silent else []
    return [estimate for estimate in estimates if estimate.support.key not in keys], silent


def to_json(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as one line of ``uldp show --json``: the fields of ``estimate.avsc``, times as ISO 8601."""
    support = estimate.support
    times = {"window_start": iso(support.window_start), "window_end": iso(support.window_end)}
    value = estimate.to_avro() | times
    return {key: value[key] for key in _JSON_KEYS}


def _read_panes(out: Path, directory: str, schema: str) -> Iterator[dict[str, Any]]:
    _check_directory(out)
    paths = _fired(out, directory)
    if not paths:
        raise ResultsError(
            f"{out}: no {directory} in it yet; they appear when the first window fires, "
            "so wait for that, or check that this is the directory that --to named"
        )
    for path in paths:
        yield from _read_container(path, schema)


def _check_directory(out: Path) -> None:
    if not out.is_dir():
        raise ResultsError(f"{out}: no such directory; give the one that --to of uldp backfill or uldp stream named")


def _fired(out: Path, directory: str) -> list[Path]:
    return _finished(out.glob(f"{directory}/*/*/*.avro"))


def _finished(paths: Iterable[Path]) -> list[Path]:
    """Leave out what a writer has not renamed yet."""
    return sorted(path for path in paths if not path.name.startswith("."))


def _read_container(path: Path, schema: str) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            yield from cast("Iterator[dict[str, Any]]", fastavro.reader(file, load_schema(schema)))
    except OSError as error:
        raise ResultsError(f"{path}: {error.strerror or error}; check the path and its permissions") from error
    except Exception as error:  # the reader raises what its C code happens to meet in a damaged file
        raise ResultsError(
            f"{path}: not a whole Avro file of schema {schema} ({type(error).__name__}); "
            "remove it and run its pipeline again"
        ) from error

"""Reading a results directory: what the sinks wrote, the newest pane of each window, as JSON and as text.

    OUT/specs/<collection>-v<version>/spec.yaml
    OUT/estimates/<collection>-v<version>/<start>--<end>/<revision>.<estimator>.avro
    OUT/counts/<collection>-v<version>/<start>--<end>/<revision>.avro
    OUT/rejected/*.avro

Writers rename a dot-prefixed file into place, so any other file is complete and may be read while they work.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import fastavro
import numpy as np

from schemas.collection import CollectionSpec
from schemas.framing import load_schema
from schemas.records import Accounting, Estimate, Floats, PaneKind, Rejected, SupportCounts, iso

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

    The newest is the one that has received the most; then a late one before one on time before an early one; then the
    one of the highest revision. Revisions start again at 0 when a local run is started again, and what the run before
    has written stays, but what a window has received never shrinks.
    """
    best: dict[tuple[Any, ...], tuple[tuple[int, int, int], Fired]] = {}
    for fired in panes:
        support = fired if isinstance(fired, SupportCounts) else fired.support
        estimator = "" if isinstance(fired, SupportCounts) else fired.estimator
        key = (support.collection, support.version, support.window_start, support.window_end, estimator)
        age = (support.accounting.received, _KINDS.index(support.pane.kind), support.pane.revision)
        if key not in best or age > best[key][0]:
            best[key] = age, fired
    return [best[key][1] for key in sorted(best)]


def to_json(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as one line of ``uldp show --json``: the fields of ``estimate.avsc``, times as ISO 8601."""
    support = estimate.support
    times = {"window_start": iso(support.window_start), "window_end": iso(support.window_end)}
    value = estimate.to_avro() | times
    return {key: value[key] for key in _JSON_KEYS}


def to_text(estimate: Estimate, labels: Sequence[str], *, top: int = 10) -> str:
    """Return an estimate as a block of lines for a person.

    Args:
        estimate: What to show.
        labels: A name for each value of the domain.
        top: How many values to show, the most frequent first.
    """
    support = estimate.support
    order = largest(estimate.distribution, top)
    # Labels are data: what a terminal would obey instead of showing is replaced.
    names = ["".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in labels[i]) for i in order]
    stderrs = [*estimate.stderr[order].tolist(), *(tag.stderr for tag in estimate.tags.values())]
    places = decimals(np.array(stderrs))
    width = max(map(len, [*names, *estimate.tags]))

    def row(name: str, share: float, stderr: float) -> str:
        return f"    {name:>{width}}  {percent(share, places):>{places + 4}}  ± {percent(stderr, places)}"

    epsilon = "no privacy" if estimate.epsilon is None else f"epsilon {estimate.epsilon:g}"
    pane = f"pane {support.pane.kind}, revision {support.pane.revision}"
    lines = [
        f"{support.collection} v{support.version}  {window_text(support)}  {estimate.estimator}",
        f"  n {support.n:,}  {pane}  {estimate.mechanism}, {epsilon}",
        f"  {accounting_text(support.accounting)}",
    ]
    if estimate.flags:
        lines.append(f"  flags: {', '.join(estimate.flags)}")
    lines.append(f"  the {len(order)} largest of {len(labels)} values, in % ± standard error")
    lines += [row(name, estimate.distribution[i], estimate.stderr[i]) for name, i in zip(names, order, strict=True)]
    if estimate.tags:
        lines.append("  behind tags, in % ± standard error")
        lines += [row(name, tag.mass, tag.stderr) for name, tag in estimate.tags.items()]
        lines.append(f"    wrong background knowledge costs at most {estimate.bound:.3g} in l1 (Theorem 1)")
    return "\n".join(lines)


def window_text(support: SupportCounts) -> str:
    """Write a window for a person; the end's day only where it differs: ``2026-01-05 10:00 to 11:00 UTC``."""
    start, end = (
        iso(time).replace("T", " ").removesuffix("Z").removesuffix(":00")
        for time in (support.window_start, support.window_end)
    )
    return f"{start} to {end.removeprefix(start[:11])} UTC"


def accounting_text(accounting: Accounting) -> str:
    """Write the accounting law with its figures, and say so if it does not hold."""
    text = (
        f"{accounting.received:,} received = {accounting.counted:,} counted + {accounting.duplicate:,} duplicate"
        f" + {accounting.late:,} late + {accounting.rejected:,} rejected"
    )
    return text if accounting.closes() else f"{text} (does not add up: reports were lost or counted twice)"


def largest(distribution: Floats, top: int) -> list[int]:
    """Return the indices of the ``top`` largest values, the largest first, ties in their order."""
    return [int(index) for index in np.argsort(-distribution, kind="stable")[:top]]


def decimals(stderr: Floats) -> int:
    """Return how many decimals show two digits of a typical standard error when it is written in percent."""
    positive = stderr[stderr > 0]
    if not positive.size:
        return 2
    return min(max(1 - math.floor(math.log10(100 * float(np.median(positive)))), 0), 9)


def percent(share: float, places: int) -> str:
    """Write a share in percent, without the sign of a negative zero."""
    return f"{100 * share:z.{places}f}"


def _read_panes(out: Path, directory: str, schema: str) -> Iterator[dict[str, Any]]:
    _check_directory(out)
    paths = _finished(out.glob(f"{directory}/*/*/*.avro"))
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

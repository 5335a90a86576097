"""One estimate from the versions of a collection that were counted in the same window, from their newest statistics.

A job keeps the versions apart, because their device halves differ. Readers pool them, so a results directory needs
nothing new, and a version may come or go at any time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.pooling.pooled_tables import VersionCounts, pooled_tables
from uldp.mechanisms.pooling.versions import difference
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.pipelines.results.json_lines import to_json
from uldp.pipelines.results.newest import Current
from uldp.pipelines.results.tables import tables_text
from uldp.pipelines.results.text import mechanism_text, number_of, window_text
from uldp.schemas.arrays import Counts
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import Accounting, Signals
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.mistakes import printable
from uldp.schemas.statistic import Statistic
from uldp.schemas.table import Table

#: The estimator that a pooled estimate names.
POOLED = "pooled"
# What a line of JSON says about one version; the lines of the versions have it.
_OF_ONE_VERSION = {
    "version",
    "pane",
    "mechanism",
    "epsilon",
    "lasting_epsilon",
    "budget",
    "shuffle",
    "assume_forgers",
    "device_digest",
    "counts",
    "supersedes",
    "signals",
}


@dataclass(frozen=True)
class Pooled:
    """The pooled estimate of a window."""

    versions: tuple[Estimate, ...]  # an estimate of each version, the newest version last
    spec: CollectionSpec  # the spec of the newest version, whose labels, background and limits hold
    estimate: Estimate  # as one of the newest version, with the accounting and the flags of all
    compared: int  # the number of estimates that the versions were compared in: of symbols, or of means
    contradictory: int  # the number of those in which two versions contradict each other

    @property
    def title(self) -> str:
        """Return the names of the versions: ``versions 1 and 2``."""
        return _names(self.versions)

    @property
    def reports(self) -> str:
        """Return the numbers of reports: ``40,000 of version 1 (urr, epsilon 1) + 20,000 of version 2 (...)``."""
        return " + ".join(f"{each.n:,} of version {each.version} ({mechanism_text(each)})" for each in self.versions)

    @property
    def warning(self) -> str:
        """Return a sentence about contradictions between the versions; empty if there are none."""
        if not self.contradictory:
            return ""
        return (
            f"the versions contradict each other in {self.contradictory:,} of {number_of(self.compared, 'estimate')}: "
            "their users differ, or some of them report falsely; read each version alone"
        )


def pool_versions(
    estimates: Iterable[tuple[Estimate, CollectionSpec]], found: Current, not_pooled: Callable[[str], object]
) -> Iterator[Pooled]:
    """Yield the pooled estimate of each window that has published estimates of two versions or more.

    A version that does not fit the newest one is left out, as is a table of fewer reports than its
    ``limits.min_reports``; ``not_pooled`` is called once with each such version, and why.
    """
    windows: dict[tuple[str, int, int], dict[int, tuple[Estimate, CollectionSpec]]] = {}
    for estimate, spec in estimates:
        window = (estimate.collection, estimate.window_start, estimate.window_end)
        windows.setdefault(window, {}).setdefault(estimate.version, (estimate, spec))
    pooling = _Pooling(found)
    said: set[str] = set()
    for window, versions in windows.items():
        if len(versions) > 1:
            result, reasons = pooling.of([versions[version] for version in sorted(versions)])
            for reason in reasons:
                if reason not in said:
                    not_pooled(f"{window[0]}: {reason}")
                said.add(reason)
            if result is not None:
                yield result


@dataclass(frozen=True)
class _Pooling:
    """Pools windows of some results; keeps the decoders of their specs, which cost more to build than an estimate."""

    found: Current
    decoders: dict[CollectionKey, Decoder] = field(default_factory=dict)

    def of(self, versions: Sequence[tuple[Estimate, CollectionSpec]]) -> tuple[Pooled | None, list[str]]:
        """Pool the versions of one window, the newest last; return the reasons for versions that are left out too."""
        _, newest = versions[-1]
        reasons, estimates, counts = [], [], []
        for estimate, spec in versions:
            statistic = self.found.statistic_of(estimate)
            reason = difference(spec, newest) or ("its counts are missing" if statistic is None else None)
            if statistic is None or reason is not None:
                reasons.append(f"version {spec.version} is not pooled with version {newest.version}: {reason}")
            else:
                estimates.append(estimate)
                counts.append(VersionCounts(*self._counted(spec, statistic)))
        if len(counts) < 2:
            return None, reasons
        try:
            result = pooled_tables(counts)
        except ValueError as error:
            return None, [*reasons, f"{_names(estimates)} are not pooled: {error}"]
        tables = tuple(table for table in result.tables if table.n >= newest.limits.min_reports)
        if not tables:
            return None, reasons
        joined = _joined(estimates, tables)
        return Pooled(tuple(estimates), newest, joined, result.compared, result.contradictory), reasons

    def _counted(self, spec: CollectionSpec, statistic: Statistic) -> tuple[Decoder, Counts, int]:
        """Return the decoder of a statistic, its cells and n: of slices, those of all users together."""
        decoder = self._decoder(spec)
        if not statistic.n:
            return decoder, statistic.cells, 0
        of_all = decoder.of_all(statistic.cells, statistic.n)
        return of_all.decoder, of_all.cells, of_all.n

    def _decoder(self, spec: CollectionSpec) -> Decoder:
        if spec.key not in self.decoders:
            self.decoders[spec.key] = build_protocol(spec).decoder
        return self.decoders[spec.key]


def _joined(versions: Sequence[Estimate], tables: tuple[Table, ...]) -> Estimate:
    """Return a record of the newest version's window with the reports and the flags of all versions."""
    accounting = sum((each.accounting for each in versions), Accounting())
    return replace(
        versions[-1],
        shuffle=(),
        estimator=POOLED,
        assume_forgers=None,
        tables=tables,
        # The versions read one stream, so they miss the same messages.
        accounting=replace(accounting, missing=max(each.accounting.missing for each in versions)),
        flags=tuple(dict.fromkeys(flag for each in versions for flag in each.flags)),
        supersedes=None,
        signals=Signals(),
    )


def _names(versions: Sequence[Estimate]) -> str:
    """Write the versions of estimates: ``versions 1, 2 and 3``."""
    *others, last = [str(each.version) for each in versions]
    return f"versions {', '.join(others)} and {last}"


def pooled_text(pooled: Pooled, *, top: int) -> str:
    """Return a pooled estimate as a block of lines; see ``estimate_text``."""
    estimate = pooled.estimate
    lines = [
        f"{estimate.collection} {pooled.title}  {window_text(estimate)}  {POOLED}",
        f"  n {estimate.n:,} = {pooled.reports}",
        *([f"  flags: {', '.join(estimate.flags)}"] if estimate.flags else []),
        *([f"  {pooled.warning}"] if pooled.warning else []),
        *tables_text(estimate, pooled.spec, top=top),
    ]
    return "\n".join(map(printable, lines))


def pooled_json(pooled: Pooled) -> dict[str, Any]:
    """Return the fields of one line of JSON: those of ``to_json`` that are not about one version, and ``versions``."""
    fields = {
        name: value
        for name, value in to_json(pooled.estimate, None, pooled.spec).items()
        if name not in _OF_ONE_VERSION
    }
    return {"versions": [each.version for each in pooled.versions], "contradictory": pooled.contradictory} | fields

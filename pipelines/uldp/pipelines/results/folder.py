"""A results directory, which every command that reads results opens."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from uldp.pipelines.results.catalog import Catalog
from uldp.pipelines.results.files import Damaged, ResultsError, check_directory, check_results, finished, refuse
from uldp.pipelines.results.newest import Current, firing, identity, newest_published
from uldp.pipelines.results.panes import ESTIMATES, FEW_PANES, PANES, Entry, Panes, pane_paths
from uldp.pipelines.results.records import left_out_line, records_of, rejected_in
from uldp.pipelines.results.selection import ALL, Selection, require, window_name
from uldp.pipelines.results.soundness import PaneRecord
from uldp.pipelines.results.specs import KeptSpecs, Specs, spec_of
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader
from uldp.schemas.records import Missing
from uldp.schemas.rejected import Rejected
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.folders import FEW, MISSING
from uldp.transforms.io.results.names import PaneFileName


@dataclass(frozen=True)
class Published:
    """The estimates of ``Current``, which iteration reads from their files, for a long history."""

    unpublished: list[PaneHeader]  # the header of the newest pane of each window without a published estimate
    headers: list[Estimate]  # the estimates without their tables
    catalog: Catalog  # all panes and estimates
    _entries: list[Entry[Estimate]]

    def only(self, headers: list[Estimate]) -> Self:
        """Return some of the estimates, given the headers of these."""
        return replace(self, headers=headers, _entries=_entries_of(headers, self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Estimate]:
        return self.catalog.panes(ESTIMATES, self._entries)


@dataclass(frozen=True)
class ResultsFolder:
    """A results directory, which may be read while its job writes it. Errors that ``damaged`` raises pass through.

    Attributes:
        path: The directory; a text becomes a path.
        damaged: Called for each damaged file, whose panes are left out. By default, it raises the error.
        private: The directory with rejected reports and the cells of panes of few reports, if you may read it: that of
            ``--private-to``, or ``path`` again. Without it, cells that are apart are left out, and rejected reports
            are those in ``path``. ResultsError if one of the two is not a directory.
    """

    path: Path
    damaged: Damaged = refuse
    private: Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        if self.private is not None:
            object.__setattr__(self, "private", Path(self.private))
        check_directory(self.path)
        check_directory(self.private or self.path)

    @cached_property
    def specs(self) -> Specs:
        """The specs of the results, by collection and version, as at the first look; ResultsError if none."""
        specs = KeptSpecs(self.path)
        if not specs:
            check_results(self.path)
            raise ResultsError(
                f"{plain(str(self.path / 'specs'))}: holds no folder with a spec.yaml; restore the specs"
            )
        return specs

    def estimates(self) -> list[Estimate]:
        """Read every estimate of every window, in the order of windows; the list is empty if no window has fired."""
        return self._all(ESTIMATES, self.path)

    def panes(self) -> list[PaneHeader]:
        """Read every pane, in the order of windows: its statistic, or its header alone if its cells are apart."""
        return self._all(PANES, self.path)

    def statistics(self) -> list[Statistic]:
        """Read the statistics of panes in the order of windows, of each window all that there are.

        If cells are apart that ``private`` does not hold, ``damaged`` is called once. The list omits all panes of a
        window whose newest pane lacks its cells, unless these are held back: then the newest is the published one.
        """
        few = {} if self.private is None else {firing(pane): pane for pane in self._all(FEW_PANES, self.private)}
        panes = [_with_cells(pane, few.get(firing(pane))) for pane in self.panes()]
        lacking = {pane.key: pane for pane in newest_published(panes) if not isinstance(pane, Statistic)}
        if lacking:
            self.damaged(self._apart(list(lacking.values())))
        return [pane for pane in panes if isinstance(pane, Statistic) and pane.key not in lacking]

    def rejected(self) -> Iterator[Rejected]:
        """Read the rejected reports, one at a time; of a damaged file, those before the damage."""
        return rejected_in((self.private or self.path) / "rejected", self.damaged)

    def missing(self) -> Iterator[Missing]:
        """Read the records of messages that the source lost; ``missing_messages`` counts each message of them once."""
        return records_of(finished(self.path / MISSING), "missing", Missing.from_avro, self.damaged)

    def left_out(self) -> str | None:
        """Return the line about what the job of these results left out of its archive; None if it left out nothing."""
        return left_out_line(self.path, self.damaged)

    def select(
        self,
        collection: str | None = None,
        since: int | None = None,
        until: int | None = None,
        last: int | None = None,
        estimator: str | None = None,
    ) -> Selection:
        """Return a selection of windows and estimators; RequestError for a collection or estimator that none has."""
        require("collection", collection, {name for name, _ in self.specs})
        mine = [self.specs[key] for key in self.specs if collection in (None, key[0])]
        named = (PaneFileName.read(path.name) for path in pane_paths(self.path, ESTIMATES))
        of_files = {name.estimator for name in named if name and (name.of is None or collection in (None, name.of[0]))}
        estimators = {name for spec in mine for name in spec.estimators} | {name for name in of_files if name}
        require("estimator", estimator, estimators)
        return Selection(collection, since, until, last, estimator)

    def current(self, selection: Selection = ALL) -> Current:
        """Return the newest estimates, and the newest panes of the windows without a published estimate.

        A window may have estimates of earlier panes and still be unpublished now, if its collection was stopped since
        then. ``damaged`` is also called for each window whose newest pane a local job has written and that is not
        there. Files without a selected window or estimator are not opened.
        """
        catalog, found = self._current(selection)
        chosen = set(map(firing, found.estimates))
        counted = (entry for entry in catalog.entries(PANES) if firing(entry.header) in chosen)
        statistics = catalog.panes(PANES, (entry for entry in counted if not entry.header.apart))
        entries = _entries_of(found.estimates, catalog.entries(ESTIMATES))
        return found._replace(
            estimates=list(catalog.panes(ESTIMATES, entries)),
            statistics={firing(pane): pane for pane in statistics if isinstance(pane, Statistic)},
        )

    def published(self, selection: Selection = ALL) -> Published:
        """Return the estimates of ``current`` to iterate over, with headers and a few files in memory."""
        catalog, found = self._current(selection)
        entries = _entries_of(found.estimates, catalog.entries(ESTIMATES))
        return Published(found.unpublished, found.estimates, catalog, entries)

    def with_specs(self, estimates: Iterable[Estimate]) -> Iterator[tuple[Estimate, CollectionSpec]]:
        """Yield each estimate with the spec it was made under; each distinct error of ``spec_of`` is damage."""
        said = set()
        for estimate in estimates:
            try:
                spec = spec_of(estimate, self.specs)
            except ResultsError as error:
                if str(error) not in said:
                    self.damaged(error)
                said.add(str(error))
            else:
                yield estimate, spec

    def _all(self, kind: Panes[PaneRecord], root: Path) -> list[PaneRecord]:
        catalog = Catalog.read(root, (kind,), self.damaged)
        return list(catalog.panes(kind, catalog.entries(kind)))

    def _current(self, selection: Selection) -> tuple[Catalog, Current]:
        """Read the headers of selected windows, and choose the newest."""
        catalog = Catalog.read(self.path, (PANES, ESTIMATES), self.damaged, selection)
        catalog.name_lost(PANES, ESTIMATES)
        fired = [entry.header for entry in catalog.entries(PANES)]
        estimates = [entry.header for entry in catalog.entries(ESTIMATES)]
        return catalog, Current.of(fired, estimates, self.specs, selection)

    def _apart(self, panes: list[PaneHeader]) -> ResultsError:
        window = window_name(panes[0].key)
        more = f" and {len(panes) - 1:,} more" if len(panes) > 1 else ""
        remedy = (
            "give the directory that holds them as private, or leave these windows out by damaged"
            if self.private is None
            else f"{plain(str(self.private / FEW))} does not hold them: restore it, or run the job again"
        )
        return ResultsError(
            f"{plain(str(self.path))}: the counts of windows of too few reports are apart ({window}{more}); {remedy}"
        )


def _entries_of(headers: Iterable[Estimate], entries: Iterable[Entry[Estimate]]) -> list[Entry[Estimate]]:
    """Return the entry of each header, in their order."""
    found = {identity(entry.header): entry for entry in entries}
    return [found[identity(header)] for header in headers]


def _with_cells(pane: PaneHeader, few: PaneHeader | None) -> PaneHeader:
    """Return a pane with its cells if they are apart; the flag of a stopped job is in the header alone."""
    if isinstance(few, Statistic) and not isinstance(pane, Statistic):
        return Statistic(**pane.header(), cells=few.cells)
    return pane

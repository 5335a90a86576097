"""A results directory, which every command that reads results opens: what is in it, and what of that is damaged.

Writers rename a dot-prefixed file into place, so every other file is complete and can be read while a job runs. If a
file is damaged nevertheless, the readers leave out its window, because they would otherwise take an older pane of this
window for the newest. All other windows stay readable.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from uldp.pipelines.results.files import Damaged, ResultsError, check_directory, finished, refuse
from uldp.pipelines.results.hidden import Hidden
from uldp.pipelines.results.left_out import left_out_line
from uldp.pipelines.results.newest import Current, Published, firing, newest_published
from uldp.pipelines.results.panes import (
    ESTIMATES,
    FEW_PANES,
    HEADERS,
    HEADERS_OF_ESTIMATES,
    PANES,
    PaneRecord,
    Panes,
    estimator_of,
    folders_of,
    read_files,
    read_window,
)
from uldp.pipelines.results.records import records_of, rejected_in
from uldp.pipelines.results.selected import selected_folders
from uldp.pipelines.results.selection import ALL, Selection, require
from uldp.pipelines.results.signed import Signed
from uldp.pipelines.results.specs import Specs, load_all_kept, spec_of
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader
from uldp.schemas.records import Missing, iso
from uldp.schemas.rejected import Rejected
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.folders import FEW, MISSING, Kind, kind_of, mismatch
from uldp.transforms.io.results.names import ALL_COLLECTIONS


@dataclass(frozen=True)
class ResultsFolder:
    """A results directory, which may be read while its job writes it. Errors that ``damaged`` raises pass through.

    Attributes:
        path: The directory; a text becomes a path.
        damaged: Called for each damaged file: all panes of its window are left out. By default, it raises the error.
        private: The directory with rejected reports and the cells of panes of few reports, if you may read it: that of
            ``--private-to``, or ``path`` again. Without it, cells that are apart are left out, and rejected reports
            are those in ``path``.

    Raises:
        ResultsError: if one of the two is not a directory.
    """

    path: Path
    damaged: Damaged = refuse
    private: Path | None = None

    def __post_init__(self) -> None:
        """Refuse what is no directory."""
        object.__setattr__(self, "path", Path(self.path))
        if self.private is not None:
            object.__setattr__(self, "private", Path(self.private))
        check_directory(self.path)
        check_directory(self.private or self.path)

    @cached_property
    def specs(self) -> Specs:
        """The specs that the results were made under, by (collection, version), as they are at the first look.

        Raises:
            ResultsError: if there is none.
            SpecError: if one is invalid.
        """
        specs = load_all_kept(self.path)
        if not specs:
            if kind_of(self.path) is not Kind.RESULTS:
                raise ResultsError(mismatch(self.path, Kind.RESULTS))
            raise ResultsError(
                f"{plain(str(self.path / 'specs'))}: holds no folder with a spec.yaml; restore the specs"
            )
        return specs

    def estimates(self) -> list[Estimate]:
        """Read every estimate of every window, ordered by path; the list is empty if no window has fired."""
        return self._all(self.path, ESTIMATES)

    def panes(self) -> list[PaneHeader]:
        """Read every pane, ordered by path: its statistic, or its header alone if its cells are apart."""
        return self._all(self.path, PANES)

    def statistics(self) -> list[Statistic]:
        """Read the statistics of panes, ordered by path: of each window all that there are, the newest included.

        If cells are apart that ``private`` does not hold, ``damaged`` is called once. The list omits all panes of a
        window whose newest pane lacks its cells, unless these are held back: then the newest is the published one.
        """
        few = {} if self.private is None else {firing(pane): pane for pane in self._all(self.private, FEW_PANES)}
        panes = [_with_cells(pane, few.get(firing(pane))) for pane in self.panes()]
        lacking = {pane.key: pane for pane in newest_published(panes) if not isinstance(pane, Statistic)}
        if lacking:
            self.damaged(self._apart(list(lacking.values())))
        return [pane for pane in panes if isinstance(pane, Statistic) and pane.key not in lacking]

    def pane_files(self) -> Iterator[dict[Path, list[PaneHeader]]]:
        """Yield the panes of each window by file, in a dictionary for each kind of pane."""
        kinds: tuple[Panes[Any], ...] = (PANES, FEW_PANES, ESTIMATES)
        for kind in kinds:
            for folder in folders_of(self.path, kind):
                files = read_files(self.path, kind, folder, ALL, self.damaged) or {}
                yield {path: list(panes) for path, panes in files.items()}

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
        """Return a selection of windows and estimators; its attributes are the arguments.

        Raises:
            RequestError: if no spec has the collection, or if neither its specs nor its files name the estimator.
        """
        require("collection", collection, {name for name, _ in self.specs})
        mine = [spec for spec in self.specs.values() if collection in (None, spec.collection)]
        estimators: set[str] = {name for spec in mine for name in spec.estimators}
        for spec in mine:
            files = finished(self.path, f"{ESTIMATES.folder}/{spec.collection}-v{spec.version}/*/*.avro")
            estimators |= {name for name in map(estimator_of, files) if name is not None}
        of_all = finished(self.path, f"{ESTIMATES.folder}/{ALL_COLLECTIONS}/*/*.avro")
        estimators |= {name for name in map(estimator_of, of_all) if name is not None}
        require("estimator", estimator, estimators)
        return Selection(collection, since, until, last, estimator)

    def current(self, selection: Selection = ALL) -> Current:
        """Return the newest estimates, and the newest panes of the windows without a published estimate.

        A window may have estimates of earlier panes and still be unpublished now, if its collection was stopped since
        then. ``damaged`` is also called for each window whose newest pane a local job has written and that is not
        there. The files of windows and estimators that are not selected are not opened, nor are
        the blocks of shared files that hold none of the selected windows.
        """
        fired, files = self._windows(PANES, ESTIMATES, selection)
        return Current.of(fired, _joined(files), self.specs, selection)

    def published(self, selection: Selection = ALL) -> Published:
        """Return the estimates of ``current`` to iterate over, in memory for the headers of all panes and one of them.

        Each file is read, so that damage is found, and iteration reads those of newest panes again. It raises a
        ``ResultsError`` if a file was removed or damaged meanwhile.
        """
        fired, files = self._windows(HEADERS, HEADERS_OF_ESTIMATES, selection)
        return Published.of(Current.of(fired, _joined(files), self.specs, selection), files)

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

    def _all(self, root: Path, kind: Panes[PaneRecord]) -> list[PaneRecord]:
        hidden, panes = Hidden(), list[PaneRecord]()
        for folder in folders_of(root, kind):
            found = read_window(root, kind, folder, ALL, self.damaged, hidden=hidden)
            if found is None:
                hidden.add_folder(folder)
            panes += found or ()
        return [pane for pane in panes if pane.key not in hidden]

    def _windows(
        self, counts: Panes[PaneHeader], estimates: Panes[Estimate], selection: Selection
    ) -> tuple[list[PaneHeader], dict[Path, list[Estimate]]]:
        """Read the panes, and the estimates by file, of the selected windows without a damaged file."""
        fired: list[PaneHeader] = []
        files: dict[Path, list[Estimate]] = {}
        hidden = Hidden()
        signed = Signed.read(self.path)  # before the panes: a job that runs may sign more while they are read
        for folder, wanted in selected_folders(self.path, (counts, estimates), selection):
            counted = read_window(self.path, counts, folder, selection, self.damaged, wanted, hidden)
            estimated = read_files(self.path, estimates, folder, selection, self.damaged, wanted, hidden)
            if counted is not None and estimated is not None:
                fired += counted
                files |= estimated
            else:
                hidden.add_folder(folder)
        fired = [pane for pane in fired if pane.key not in hidden]
        files = {path: [pane for pane in panes if pane.key not in hidden] for path, panes in files.items()}
        there = (*fired, *_joined(files))
        for lost in signed.lost_panes(self.path, there, selection, hidden):
            self.damaged(lost)
        return fired, files

    def _apart(self, panes: list[PaneHeader]) -> ResultsError:
        first = panes[0]
        window = f"{first.collection} v{first.version} from {iso(first.window_start)}"
        more = f" and {len(panes) - 1:,} more" if len(panes) > 1 else ""
        remedy = (
            "give the directory that holds them as private, or leave these windows out by damaged"
            if self.private is None
            else f"{plain(str(self.private / FEW))} does not hold them: restore it, or run the job again"
        )
        return ResultsError(
            f"{plain(str(self.path))}: the counts of windows of too few reports are apart ({window}{more}); {remedy}"
        )


def _joined(files: dict[Path, list[Estimate]]) -> list[Estimate]:
    return [estimate for estimates in files.values() for estimate in estimates]


def _with_cells(pane: PaneHeader, few: PaneHeader | None) -> PaneHeader:
    """Return a pane with its cells if they are apart; the flag of a stopped job is in the header alone."""
    if isinstance(few, Statistic) and not isinstance(pane, Statistic):
        return Statistic(**pane.header(), cells=few.cells)
    return pane

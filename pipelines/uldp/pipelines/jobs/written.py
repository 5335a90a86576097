"""What a job has written, as its journal says: what is gone since, and which windows its end leaves open."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from uldp.pipelines.jobs.outputs import Claim
from uldp.pipelines.results.catalog import Catalog
from uldp.pipelines.results.files import pass_over
from uldp.pipelines.results.newest import estimate_key, newest
from uldp.pipelines.results.panes import KINDS, PANES
from uldp.pipelines.results.prune import pruned_before
from uldp.pipelines.results.selection import window_name
from uldp.schemas.pane import PaneKind
from uldp.transforms.io.folders import COUNTS, FEW
from uldp.transforms.io.local.journal import (
    JOURNAL,
    Entry,
    Extent,
    FileWritten,
    LeftOpen,
    PaneWritten,
    append_entries,
    results_written,
)
from uldp.transforms.io.results.signing import is_as_written

#: A folder of results, and what the panes in it share of which the newest alone counts; see ``estimate_key``.
_Place = tuple[str, tuple[str | int, ...]]


@dataclass(frozen=True)
class Results:
    """The folders of a job, and its journal."""

    public: Path
    private: Path

    @classmethod
    def of(cls, claim: Claim) -> Self:
        """Return those of a job on this machine."""
        return cls(Path(claim.results), Path(claim.private))

    @property
    def journal(self) -> Path:
        """The file of the journal."""
        return self.public / JOURNAL

    def lost(self, size: int | None, taken: Callable[[PaneWritten], bool]) -> str | None:
        """Say what is gone, damaged or older of what ``size`` bytes of the journal say is written; None if nothing."""
        entries = list(_newest(results_written(self.journal, size), taken))
        gone = self._gone(entries)
        # A pane that uldp compact moves meanwhile is in neither of its files as they were listed: look again.
        while gone and (again := self._gone(entries)) != gone:
            gone = again
        more = f" (and {len(gone) - 1:,} more)" if len(gone) > 1 else ""
        return f"{gone[0]}{more}" if gone else None

    def _gone(self, entries: Sequence[Entry]) -> list[str]:
        return [*self._files(entries), *self._panes(entries)]

    def _files(self, entries: Iterable[Entry]) -> Iterator[str]:
        """Yield the files that are gone or damaged, but not those that ``uldp prune`` may have removed."""
        before = pruned_before(self.private)
        for entry in entries:
            if isinstance(entry, FileWritten) and entry.time > before:
                path = self.private / entry.name
                try:
                    wrong = None if is_as_written(path, entry) else "is damaged"
                except FileNotFoundError:
                    wrong = "is gone"
                if wrong is not None:
                    yield f"{path}: {wrong}"

    def _panes(self, entries: Iterable[Entry]) -> Iterator[str]:
        """Yield the panes of which no file is there, or of which those that are there account for less."""
        needed = {place: pane for pane in entries if isinstance(pane, PaneWritten) for place in self._places(pane)}
        if not needed:
            return
        found: dict[_Place, Extent] = {}
        for root in dict.fromkeys((self.public, self.private)):
            catalog = Catalog.read(root, KINDS, pass_over)
            for kind in KINDS:
                for pane, _, _ in catalog.entries(kind):
                    place, extent = (kind.folder, estimate_key(pane)), Extent.of(pane.accounting)
                    found[place] = max(found.get(place, extent), extent)
        for place, entry in needed.items():
            there, had = found.get(place), entry.extent
            if there is None or there < had:
                lacks = "is gone" if there is None else f"has {there.received:,} reports, and had {had.received:,}"
                folder = (self.private if place[0] == FEW else self.public) / place[0]
                yield f"{folder}: the window of {window_name(entry[:4])} {lacks}"

    def _places(self, pane: PaneWritten) -> Iterator[_Place]:
        key = (*pane[:4], pane.estimator)
        yield ("estimates" if pane.estimator else COUNTS), key
        if pane.apart and pane.window_start > pruned_before(self.private) * 1000:
            yield FEW, key


def _newest(entries: Iterable[Entry], taken: Callable[[PaneWritten], bool]) -> Iterator[Entry]:
    """Yield the files, and of each window and estimator the pane that accounts for the most, if it is taken."""
    panes: dict[tuple[str | int, ...], PaneWritten] = {}
    files: dict[str, FileWritten] = {}
    for entry in entries:
        if isinstance(entry, PaneWritten) and taken(entry):
            before = panes.setdefault((*entry[:4], entry.estimator), entry)
            if entry.existed >= before.existed:
                panes[*entry[:4], entry.estimator] = entry
        elif isinstance(entry, FileWritten):
            files[entry.name] = entry
    yield from files.values()
    yield from panes.values()


def mark_open_windows(out: Path) -> int:
    """Say in the journal which windows have no on-time pane although their job has ended; return their number.

    Readers give the early panes of such a window the flag ``incomplete``, until the job runs again and writes a pane of
    it. Panes that count no report have no estimate, and are left out.
    """
    panes = newest(entry.header for entry in Catalog.read(out, (PANES,), pass_over).entries(PANES))
    left = [pane for pane in panes if pane.n and pane.pane.kind is PaneKind.EARLY]
    if left:
        append_entries(out / JOURNAL, (LeftOpen(*pane.key, pane.accounting.existed) for pane in left))
    return len(left)

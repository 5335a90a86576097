"""What a job has signed in its journal, and what of it is not there: readers name it rather than leave it out."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.newest import estimator_of
from uldp.pipelines.results.selection import Key, Selection, window_name
from uldp.pipelines.results.soundness import PaneRecord
from uldp.schemas.flags import Flag
from uldp.schemas.pane import PaneHeader, PaneKind
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.folders import COUNTS
from uldp.transforms.io.local.journal import (
    JOURNAL,
    Entry,
    Extent,
    FileWritten,
    GivenUpTaken,
    LeftOpen,
    SegmentRead,
    read_journal,
)
from uldp.transforms.io.results.signing import is_as_written

#: Collection, version, start and end of a window, and the estimator; empty for the statistic.
PaneKey = tuple[str, int, int, int, str]
_RESTORE = "restore it from a backup, or run the job again"


@dataclass
class Signed:
    """The last entry of each segment, pane and file."""

    segments: dict[str, SegmentRead] = field(default_factory=dict)  # what was read, by the name of the segment's file
    #: The segments that were taken as given up, by the number of the first.
    given_up: dict[int, GivenUpTaken] = field(default_factory=dict)
    panes: dict[PaneKey, Extent] = field(default_factory=dict)  # what the newest pane of a window accounts for
    #: The files of late and rejected reports, by their paths below the folder of private results.
    files: dict[str, FileWritten] = field(default_factory=dict)
    #: The windows that their job has left open, with the reports that the newest pane accounted for.
    left_open: dict[Key, int] = field(default_factory=dict)

    @classmethod
    def read(cls, out: Path) -> Self:
        """Read the journal beside results; a job without one has signed nothing; DataError if it is damaged."""
        signed = cls()
        for entry in read_journal(out / JOURNAL):
            signed._add(entry)
        return signed

    def _add(self, entry: Entry) -> None:
        if isinstance(entry, SegmentRead):
            self.segments[f"{entry.segment}.avro"] = entry
        elif isinstance(entry, GivenUpTaken):
            self.given_up[entry.first] = entry
        elif isinstance(entry, FileWritten):
            self.files[entry.name] = entry
        elif isinstance(entry, LeftOpen):
            self.left_open[entry[:4]] = entry.existed
        else:
            self.left_open.pop(entry[:4], None)
            key = entry.collection, entry.version, entry.window_start, entry.window_end, entry.estimator
            if entry.existed >= self.panes.get(key, entry.extent).existed:  # the last of equal ones is the newest
                self.panes[key] = entry.extent

    def estimators(self) -> dict[Key, dict[str, int]]:
        """Return of each window the most reports that an estimate accounts for, by estimator."""
        found: dict[Key, dict[str, int]] = {key[:4]: {} for key in self.panes}
        for key, extent in self.panes.items():
            if key[4]:
                found[key[:4]][key[4]] = extent.existed
        return found

    def of_counts(self) -> Self:
        """Return what is signed without the estimates."""
        return replace(self, panes={key: extent for key, extent in self.panes.items() if not key[4]})

    def marked(self, pane: PaneRecord) -> PaneRecord:
        """Return a pane with the flag ``incomplete`` if its job has left its window open."""
        left = self.left_open.get(pane.key)
        if left is None or pane.accounting.existed > left or pane.pane.kind is not PaneKind.EARLY:
            return pane
        return replace(pane, flags=tuple(sorted({*pane.flags, str(Flag.INCOMPLETE)})))

    def lost_panes(
        self, out: Path, panes: Iterable[PaneHeader], selection: Selection, damaged: Callable[[Key], bool]
    ) -> Iterator[ResultsError]:
        """Yield an error for each selected window whose newest pane is not there, unless a ``damaged`` file has it."""
        there: dict[PaneKey, Extent] = {}
        for pane in panes:
            key = (*pane.key, estimator_of(pane))
            extent = Extent.of(pane.accounting)
            there[key] = max(there.get(key, extent), extent)
        chosen = selection.windows({key[:4] for key in (*there, *self.panes)})
        for key, extent in sorted(self.panes.items()):
            if (
                key[:4] in chosen
                and not damaged(key[:4])
                and selection.has_estimator(key[4] or None)
                and (key not in there or there[key] < extent)
            ):
                folder = plain(str(out / ("estimates" if key[4] else COUNTS)))
                by = f" by {key[4]}" if key[4] else ""
                yield ResultsError(f"{folder}: the newest pane{by} of {window_name(key[:4])} is missing; {_RESTORE}")

    def lost_files(self, folder: Path, before: float) -> Iterator[ResultsError]:
        """Yield an error for each late or rejected file that is lost or changed, and not removed on purpose."""
        for entry in self.files.values():
            kind, _, file = entry.name.rpartition("/")
            if folder.is_dir() and kind == folder.name and entry.time > before:
                try:
                    wrong = None if is_as_written(folder / file, entry) else "not as the job has written it"
                except FileNotFoundError:
                    wrong = "missing"
                except OSError as error:
                    wrong = error.strerror or str(error)
                if wrong is not None:
                    yield ResultsError(f"{plain(str(folder / file))}: {wrong}; {_RESTORE}")

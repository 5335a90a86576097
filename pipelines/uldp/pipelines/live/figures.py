"""Figures of a results folder for those who watch it: where reports went, and how new its panes are."""

import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from pathlib import Path

from uldp.pipelines.live.headers import Headers
from uldp.pipelines.results.files import finished, pass_over
from uldp.pipelines.results.newest import firing, newest, total_accounting
from uldp.pipelines.results.records import records_of
from uldp.schemas.pane import Accounting, PaneHeader, PaneKind
from uldp.schemas.records import Missing, missing_messages
from uldp.schemas.rejected import Rejected, count_reasons, each_once
from uldp.schemas.specs.collection import CollectionKey
from uldp.transforms.io.folders import MISSING, SOURCE_DIGITS
from uldp.transforms.io.message_files import opened
from uldp.transforms.io.stored_files import read_stored


class RejectedReasons:
    """Counts the rejected reports of a folder by reason; may be used by several threads.

    What came from one source, such as a segment, is counted anew when one of its files changes. The numbers of a source
    whose files ``uldp prune`` has removed stay, so that none falls.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._files: dict[str, tuple[tuple[str, int], ...]] = {}
        self._counts: dict[str, Counter[str]] = {}

    def count(self) -> Counter[str]:
        """Return the number of reports by reason; of a damaged file, those before the damage."""
        with self._lock:
            for source, files in groupby(finished(self._folder), lambda path: path.name[:SOURCE_DIGITS]):
                self._count(source, list(files))
            total: Counter[str] = Counter()
            for counts in self._counts.values():
                total += counts
            return total

    def _count(self, source: str, files: list[Path]) -> None:
        with suppress(FileNotFoundError):  # removed since they were listed
            now = tuple((path.name, os.stat(path).st_mtime_ns) for path in files)
            if self._files.get(source) != now:
                own = [path for path in files if not self._is_copy(path)]
                records = records_of(own, "rejected", Rejected.from_avro, pass_over)
                self._counts[source] = count_reasons(each_once(records))
                self._files[source] = now

    def _is_copy(self, path: Path) -> bool:
        """Return whether a file has another name than its job gave it, and the file of that name is there too."""
        header = read_stored(str(path), opened)
        return header is not None and header.name != path.stem and (self._folder / f"{header.name}.avro").exists()


@dataclass(frozen=True)
class CollectionFigures:
    """Figures of a version of a collection."""

    accounting: Accounting  # where the reports went that could be given to a window, each once
    panes: int  # the number of panes that are there
    windows: int  # the number of windows that have fired
    flagged: Mapping[str, int]  # the number of windows by the flags of their newest panes
    last: PaneHeader  # the newest pane of the last window that has fired on time, or of the last one if none has
    written: float  # when a pane was last written, in seconds since 1970

    @property
    def rejected_share(self) -> float:
        """The share of the reports of the last window that were rejected."""
        return _share(self.last.accounting.rejected, self.last.accounting.received)

    @property
    def missing_share(self) -> float:
        """The share of the reports of the last window that the source may have lost; an upper bound."""
        return _share(self.last.accounting.missing, self.last.accounting.received + self.last.accounting.missing)


@dataclass(frozen=True)
class Figures:
    """Figures of a results folder."""

    collections: Mapping[CollectionKey, CollectionFigures]  # those of each version of a collection that has a pane
    rejected: Mapping[str, int]  # the number of all rejected reports by reason, those of no window included
    missing: int  # the number of messages that the source lost
    damaged: int  # the number of damaged files of counts, whose panes are left out

    @property
    def accounting(self) -> Accounting:
        """Where all reports went, with rejected ones of no window; less, if records of these are elsewhere."""
        total = reduce(Accounting.__add__, (each.accounting for each in self.collections.values()), Accounting())
        nameless = max(sum(self.rejected.values()) - total.rejected, 0)
        return total + Accounting(received=nameless, rejected=nameless)


class FiguresOf:
    """Computes the figures of a folder, anew when it has changed; may be used by several threads."""

    def __init__(self, headers: Headers, out: Path, private: Path | None = None) -> None:
        self._headers, self._out = headers, out
        self._reasons = RejectedReasons((private or out) / "rejected")
        self._lock = threading.Lock()
        self._state = ""
        self._collections: Mapping[CollectionKey, CollectionFigures] = {}

    def now(self) -> Figures:
        """Return the figures."""
        with self._lock:
            fired = self._headers.fired()
            if fired.state != self._state:
                self._collections = dict(collections_of(fired.panes, fired.written))
                self._state = fired.state
            lost = records_of(finished(self._out / MISSING), "missing", Missing.from_avro, pass_over)
            return Figures(self._collections, self._reasons.count(), missing_messages(lost), fired.damaged)


def collections_of(
    panes: Iterable[PaneHeader], written: Mapping[str, float]
) -> Iterable[tuple[CollectionKey, CollectionFigures]]:
    """Return the figures of each version of a collection, from all panes and the times of their files."""
    all_panes = list(panes)
    number = Counter(key[:2] for key in set(map(firing, all_panes)))  # each once, whatever the number of its files
    for key, group in groupby(newest(all_panes), lambda pane: pane.key[:2]):
        mine = list(group)
        yield (
            key,
            CollectionFigures(
                accounting=total_accounting(mine),
                panes=number[key],
                windows=len(mine),
                flagged=Counter(flag for pane in mine for flag in pane.flags),
                last=max(
                    mine, key=lambda pane: (pane.pane.kind is not PaneKind.EARLY, pane.window_end, pane.window_start)
                ),
                written=written.get(f"{key[0]}-v{key[1]}", 0.0),
            ),
        )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0

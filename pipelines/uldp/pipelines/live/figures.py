"""Figures of a results folder for those who watch it: where reports went, and how new its panes are."""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from pathlib import Path

from uldp.pipelines.live.headers import Headers
from uldp.pipelines.live.rejected import RejectedReasons
from uldp.pipelines.results.files import ResultsError, finished
from uldp.pipelines.results.newest import firing, newest
from uldp.pipelines.results.records import records_of
from uldp.pipelines.results.totals import total_accounting
from uldp.schemas.pane import Accounting, PaneHeader, PaneKind
from uldp.schemas.records import Missing, missing_messages
from uldp.schemas.specs.collection import CollectionKey
from uldp.transforms.io.folders import MISSING


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
            lost = records_of(finished(self._out / MISSING), "missing", Missing.from_avro, _pass_over)
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


def _pass_over(damage: ResultsError) -> None:
    """Leave a damaged file to the commands that name it."""

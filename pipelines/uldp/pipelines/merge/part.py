"""What one folder has of a window, and what two folders prove about their reports of it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import reduce
from itertools import zip_longest

import numpy as np

from uldp.pipelines.merge.ids import Ids
from uldp.pipelines.results.newest import newest, newest_published
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import Accounting, PaneHeader, Signals
from uldp.schemas.statistic import Statistic

#: Windows of different reports are as equal as two folders' are with this probability or less.
_ALIKE = 1e-9


class Proof(StrEnum):
    """Why each report of a window is counted once; the texts stand in the record of a merge."""

    ALONE = "one folder has the window"
    EQUAL = "the folders have the same reports"
    INSIDE = "one folder has all reports of the others"
    DISJOINT = "no report is in two folders"
    COVERED = "folders without a common report have all reports of the others"


@dataclass(frozen=True, eq=False)
class Part:
    """The panes of a window in a folder, or in several that were joined."""

    folders: tuple[int, ...]  # the numbers of the folders
    #: As ``chosen`` returns them; panes whose cells cannot be read are headers.
    panes: tuple[PaneHeader, ...]
    estimates: tuple[Estimate, ...]  # the newest estimate of each estimator
    ids: Ids  # the ids of reports that the folder keeps of the window; they count if there is one for each report
    proof: Proof = field(default=Proof.ALONE)  # why each report is counted once

    @property
    def has_ids(self) -> bool:
        """Whether there is an id for each counted report."""
        return len(self.ids) == self.newest.n

    @property
    def lost_ids(self) -> bool:
        """Whether some ids are there, and not those of the counted reports: they are damaged or partly removed."""
        return len(self.ids) > 0 and not self.has_ids

    @property
    def newest(self) -> PaneHeader:
        """The newest pane."""
        return self.panes[0]

    @property
    def published(self) -> PaneHeader | None:
        """The newest pane that is not held back."""
        found = newest_published(self.panes)
        return found[0] if found else None


def chosen(panes: Sequence[PaneHeader]) -> list[PaneHeader]:
    """Return the newest of the panes of a window, and then the newest that is not held back, if that is another."""
    (last,) = newest(panes)
    return [last, *(pane for pane in newest_published(panes) if pane.age != last.age)]


def ids_decide(one: Part, other: Part) -> bool:
    """Return whether ids say which reports two parts share, or are damaged; equal statistics are no proof then."""
    return one.lost_ids or other.lost_ids or (one.has_ids and other.has_ids and one.newest.n + other.newest.n > 0)


def equal_statistics(one: Part, other: Part) -> bool:
    """Return whether two folders have one statistic of a window, with the same accounting and signals."""
    first, second = one.newest, other.newest
    return (
        isinstance(first, Statistic)
        and isinstance(second, Statistic)
        and (first.accounting, first.signals) == (second.accounting, second.signals)
        and np.array_equal(first.cells, second.cells)
    )


def are_copies(log_chances: Iterable[float]) -> bool:
    """Return whether equal statistics are, but for one part in a billion, of the same reports; see ``log_chance``."""
    return sum(log_chances) < math.log(_ALIKE)


def log_chance(part: Part) -> float:
    """Return the log of a bound, 1/sqrt(2 pi n f (1-f)) for a cell of share f, that other reports' counts are equal."""
    pane = part.newest
    assert isinstance(pane, Statistic)
    share = np.sort(np.clip(pane.cells / max(pane.n, 1), 0.0, 1.0))[:-1]  # the others decide the largest
    return float(-np.log(np.maximum(2 * np.pi * pane.n * share * (1 - share), 1.0)).sum() / 2)


def summed_signals(signals: Sequence[Signals]) -> Signals:
    """Add signals; the busiest sender is the one with the most reports, which may be more in the sum."""
    senders = [each.busiest_sender for each in signals if each.busiest_sender is not None]
    return Signals(
        _added([each.early for each in signals]),
        _added([each.past for each in signals]),
        sum(each.improbable_reports for each in signals),
        max(senders, key=lambda sender: (sender.reports, sender.digest), default=None),
    )


def _added(ranges: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip_longest(*ranges, fillvalue=0)))


def summed_accounting(parts: Sequence[Accounting], late: Sequence[Accounting]) -> Accounting:
    """Add the accounting of parts without a report in common; a stream among them has received ``late`` ones already.

    ValueError if the parts know of fewer late reports than ``late``, the accounting of backfills of these.
    """
    again, known = sum(each.received for each in late), sum(each.late for each in parts)
    if again > known:
        raise ValueError(f"{again:,} reports are counted again, but only {known:,} were late")
    total = reduce(Accounting.__add__, (*parts, *late))
    return replace(total, received=total.received - again, late=total.late - again)

"""What is published of a window one pane after the other, so that no two panes differ by a few reports.

Panes of a window accumulate, so the difference of two is itself a statistic: of those reports that came in between. A
pane is therefore published only if each of its tables has as many reports as ``limits.min_reports`` asks for, and as
many more than each table that was published of this window before, or the same.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import NamedTuple, Self

import numpy as np

from uldp.collector.partial import Partial
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.schemas.arrays import Counts, Mask, Times
from uldp.schemas.pane import Superseded

#: The number of reports behind each table of a pane; none for a pane without counted reports.
Reports = tuple[int, ...]


def reports_of(decoder: Decoder, partial: Partial) -> Reports:
    """Return the number of reports behind each table of a sum."""
    return () if partial.cells is None else decoder.reports(as_dense(partial.cells), partial.accounting.counted)


def public(reports: Reports, least: int) -> Reports:
    """Return the numbers of reports behind the tables that are published, and 0 for each other table."""
    return tuple(n if n >= least else 0 for n in reports)


def is_whole(reports: Reports, least: int) -> bool:
    """Return whether tables are published, and none is withheld."""
    return any(reports) and public(reports, least) == reports


def differs(before: Reports, after: Reports, least: int, *, or_equals: bool) -> bool:
    """Return whether each table that was published before has enough reports more.

    Args:
        before: The reports behind each table that was published; 0 for a table that was not.
        after: Those behind the tables of a later sum.
        least: The fewest reports that a difference may be about.
        or_equals: Whether a table may also have the same reports.
    """
    pairs = zip_longest(before, after, fillvalue=0)
    return all(not n or now - n >= least or (or_equals and now == n) for n, now in pairs)


def has_few_at_ends(ends: Counts | None, reports: Reports, least: int) -> bool:
    """Return whether a window would show few reports in the difference to another window, of any of its tables.

    ``ends`` are as in ``SliceReports.at_ends``; None if no other window shares reports with this one. A table with few
    reports behind it is not published anyway.
    """
    if ends is None:
        return False
    levels = ends.reshape(-1, 2, len(reports))
    return not ((levels >= least) | (np.array(reports) < least)).all(axis=(1, 2)).any()


class EarlyStep(NamedTuple):
    """What an early firing publishes, if anything, and what a later one may publish."""

    published: Partial | None
    waiting: Partial | None


def early_step(decoder: Decoder, waiting: Partial | None, total: Partial, least: int) -> EarlyStep:
    """Publish what waits once enough reports have come after it; then the total waits.

    So whatever is published later, on time above all, has enough reports more than any early pane.
    """
    if least == 1:
        return EarlyStep(total, None)
    reports = reports_of(decoder, total)
    if not is_whole(reports, least) or has_few_at_ends(total.ends.get(0), reports, least):
        return EarlyStep(None, waiting)
    if waiting is None:
        return EarlyStep(None, total)
    if differs(reports_of(decoder, waiting), reports, least, or_equals=False):
        return EarlyStep(waiting, total)
    return EarlyStep(None, waiting)


@dataclass(frozen=True, slots=True)
class History:
    """The panes of a window so far."""

    fired: int = 0  # the reports that the window had received when it last fired, and its missing messages
    panes: int = 0
    closed: bool = False  # whether one of them is not early
    last: Superseded | None = None  # the last pane whose reports are not held back
    held: Superseded | None = None  # the last pane since then whose reports are held back
    reports: Reports = ()  # the reports behind each table that was published last; 0 for a table that was not

    def after(self, n: int, reports: Reports, *, closed: bool) -> Self:
        """Return the history with one more pane, of n counted reports, which are not held back."""
        pane = Superseded(self.panes, n)
        closed = closed or self.closed
        return replace(self, panes=self.panes + 1, closed=closed, last=pane, held=None, reports=reports)

    def after_held(self, n: int) -> Self:
        """Return the history with one more pane, of n counted reports, which are held back: no early one is."""
        return replace(self, panes=self.panes + 1, closed=True, held=Superseded(self.panes, n))


_WIDTH = struct.Struct("<I")
#: The columns of ``Histories`` before those of the reports.
_COLUMNS = 8
_NO_PANE = [-1, 0]


class Histories:
    """The histories of windows as rows, for there may be thousands: by start, or by slot if that is the same."""

    def __init__(self, rows: Counts) -> None:
        self._rows = rows

    @classmethod
    def unpack(cls, packed: bytes | None) -> Self:
        """Read back what ``pack`` wrote, if anything."""
        if packed is None:
            return cls(np.zeros((0, _COLUMNS), dtype=np.int64))
        (width,) = _WIDTH.unpack_from(packed)
        return cls(np.frombuffer(packed, np.int64, offset=_WIDTH.size).reshape(-1, width))

    def pack(self) -> bytes:
        """Write the histories."""
        return _WIDTH.pack(self._rows.shape[1]) + self._rows.tobytes()

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, start: int) -> History:
        """Return the history of a window, by its start or slot."""
        at = int(np.searchsorted(self._rows[:, 0], start))
        if at == len(self) or self._rows[at, 0] != start:
            return History()
        _, fired, panes, closed, *numbers = self._rows[at].tolist()
        last, held = (None if pane == _NO_PANE else Superseded(*pane) for pane in (numbers[:2], numbers[2:4]))
        return History(fired, panes, bool(closed), last, held, tuple(numbers[4:]))

    def fired(self, slots: Times) -> tuple[Counts, Mask]:
        """Return ``History.fired`` and ``History.closed`` of windows, shape (k,) each."""
        if not len(self):
            return np.zeros(len(slots), dtype=np.int64), np.zeros(len(slots), dtype=np.bool_)
        at = np.searchsorted(self._rows[:, 0], slots).clip(max=len(self) - 1)
        known = self._rows[at, 0] == slots
        return np.where(known, self._rows[at, 1], 0), known & (self._rows[at, 3] != 0)

    def update(self, histories: Mapping[int, History]) -> Self:
        """Return the histories of these windows, by start or slot, and of the other ones."""
        reports = max((len(each.reports) for each in histories.values()), default=0)
        width = max(self._rows.shape[1], _COLUMNS + reports)
        rows = np.zeros((len(histories), width), dtype=np.int64)
        for row, (start, each) in zip(rows, sorted(histories.items()), strict=True):
            last, held = (_NO_PANE if pane is None else [pane.revision, pane.n] for pane in (each.last, each.held))
            numbers = [start, each.fired, each.panes, each.closed, *last, *held, *each.reports]
            row[: len(numbers)] = numbers
        if not len(self):
            return type(self)(rows)
        others = self._rows[~np.isin(self._rows[:, 0], rows[:, 0])]
        rows = np.concatenate([np.pad(others, ((0, 0), (0, width - others.shape[1]))), rows])
        return type(self)(rows[np.argsort(rows[:, 0])])

    def since(self, start: int) -> Self:
        """Return the histories of the windows that begin at ``start`` or later."""
        return type(self)(self._rows[np.searchsorted(self._rows[:, 0], start) :])

"""Parts of the statistics of windows, as the stages send them to the sum: one time slice, or many as columns.

Thousands of windows cost more as objects than as reports. So bounded jobs sum spans of slices, and cut out a slice only
when they publish its window. A stream sums each window alone, because each fires on its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from operator import add
from typing import TypeVar

import numpy as np

from uldp.collector.signals import SenderCounts, published_signals
from uldp.mechanisms.protocol.cells import (
    Cells,
    SparseCells,
    add_cells,
    spread_rows,
    stack_cells,
    sum_rows,
    take_rows,
    unstack_cells,
)
from uldp.schemas.arrays import Counts, Times
from uldp.schemas.pane import OUTCOMES, SKEW_RANGES, Accounting, Signals

#: The columns of ``Partial.numbers``: the fields of the accounting, then the improbable reports, then clock skew.
_COUNTED, _MISSING, _RECEIVED = map(OUTCOMES.index, ("counted", "missing", "received"))
_IMPROBABLE = len(OUTCOMES)
_SKEW = _IMPROBABLE + 1
NUMBERS = _SKEW + 2 * SKEW_RANGES

_ONE_SLOT = np.zeros(1, dtype=np.int64)
_ONE_SLOT.flags.writeable = False  # many parts share it


def numbers_of(k: int, skew: Counts | int = 0, improbable: Counts | int = 0, **outcomes: Counts | int) -> Counts:
    """Return the numbers of k slices, shape (k, NUMBERS); all that is not given is 0.

    ``skew``, shape (k, 2 SKEW_RANGES), are the reports by range of clock skew, as in ``signal_bits``; ``improbable``
    and the ``outcomes``, which are fields of ``Accounting``, have the shape (k,).
    """
    numbers = np.zeros((k, NUMBERS), dtype=np.int64)
    numbers[:, _IMPROBABLE] = improbable
    numbers[:, _SKEW:] = skew
    for name, counts in outcomes.items():
        numbers[:, OUTCOMES.index(name)] = counts
    return numbers


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """Parts of the statistics of k time slices; a commutative monoid, with no slices as its zero.

    Attributes:
        slots: Shape (k,): which slices, ascending: their starts, or their slots if they are those of several
            collections; see ``uldp.collector.groups``. The only slice of a part whose window is known has slot 0.
        numbers: Shape (k, NUMBERS): accounting, improbable reports and clock skew of each slice.
        cells: The cells of all slices, one slice behind the other; None if no report was counted in any of them. They
            are 0 for a slice in which none was.
        senders: Number of reports by sender for the slices that have it, by slot.
        ends: Number of reports at the ends of sliding windows, by slot; see ``SliceReports.at_ends``.
        payloads: The sketches of the payloads of all slices, as ``cells``; None where none is kept. See
            ``uldp.collector.repeats``.
    """

    slots: Times = field(default_factory=lambda: _ONE_SLOT[:0])
    numbers: Counts = field(default_factory=lambda: numbers_of(0))
    cells: Cells | None = None
    senders: Mapping[int, SenderCounts] = field(default_factory=dict)
    ends: Mapping[int, Counts] = field(default_factory=dict)
    payloads: Cells | None = None

    def __len__(self) -> int:
        return len(self.slots)

    def __add__(self, other: "Partial") -> "Partial":
        if not len(self) or not len(other):
            return self if len(self) else other
        if self.slots.tobytes() != other.slots.tobytes():
            slots = np.union1d(self.slots, other.slots)
            self, other = self._spread(slots), other._spread(slots)
        cells, payloads = _sum(self.cells, other.cells), _sum(self.payloads, other.payloads)
        senders, ends = _sum_by_slot(self.senders, other.senders), _sum_by_slot(self.ends, other.ends)
        return Partial(self.slots, self.numbers + other.numbers, cells, senders, ends, payloads)

    def _spread(self, slots: Times) -> "Partial":
        """Return the same parts among the same slices or more."""
        if len(slots) == len(self):
            return self
        at = np.searchsorted(slots, self.slots)
        numbers = np.zeros((len(slots), NUMBERS), dtype=np.int64)
        numbers[at] = self.numbers
        cells, payloads = (
            None if each is None else spread_rows(each, at, len(slots)) for each in (self.cells, self.payloads)
        )
        return Partial(slots, numbers, cells, self.senders, self.ends, payloads)

    @property
    def accounting(self) -> Accounting:
        """The accounting of all slices."""
        return Accounting(*self._totals()[:_IMPROBABLE].tolist())

    def signals(self, start: int) -> Signals:
        """Return the signals of all slices, as a window that starts at ``start``, in milliseconds, publishes them."""
        totals = self._totals()
        senders = reduce(add, self.senders.values()) if self.senders else None
        return published_signals(totals[_SKEW:], int(totals[_IMPROBABLE]), senders, start)

    def _totals(self) -> Counts:
        """Return the numbers of all slices, shape (NUMBERS,)."""
        return np.asarray(self.numbers[0] if len(self) == 1 else self.numbers.sum(axis=0))

    def at(self, slot: int) -> "Partial":
        """Return the part of a slice, whose slot is 0, with another slot."""
        senders = {slot: self.senders[0]} if self.senders else {}
        ends = {slot: self.ends[0]} if self.ends else {}
        return Partial(_ONE_SLOT + slot, self.numbers, self.cells, senders, ends, self.payloads)

    def cut(self, size: int, offset: int) -> Iterator[tuple[int, "Partial"]]:
        """Cut slices of one collection, not windows, at the multiples of ``size`` milliseconds, ``offset`` later.

        Yield each such time below a slice, and its slices.
        """
        if not len(self):
            return
        origins = (self.slots - offset) // size * size + offset
        bounds = [0, *(np.flatnonzero(origins[1:] != origins[:-1]) + 1).tolist(), len(self)]
        if len(bounds) == 2:
            yield int(origins[0]), self
            return
        for first, end in pairwise(bounds):
            yield int(origins[first]), self._between(first, end)

    def between(self, start: int, end: int) -> "Partial":
        """Return the slices from ``start`` until ``end``, in milliseconds: slices of one collection, not windows."""
        first, until = np.searchsorted(self.slots, (start, end)).tolist()
        return self._between(first, until)

    def _between(self, first: int, end: int) -> "Partial":
        if first == end:
            return Partial()
        k, slots = len(self), self.slots[first:end]
        return Partial(
            slots,
            self.numbers[first:end],
            None if self.cells is None else take_rows(self.cells, first, end, k),
            {slot: each for slot, each in self.senders.items() if slots[0] <= slot <= slots[-1]},
            payloads=None if self.payloads is None else take_rows(self.payloads, first, end, k),
        )

    def window(self, start: int, end: int) -> "Partial":
        """Sum the slices of a window, whose slot is then 0.

        Messages that are missing in a slice are missing in the window that begins with it alone; see
        ``account_missing``.
        """
        of_window = self.between(start, end)
        k = len(of_window)
        if not k:
            return of_window
        numbers = of_window.numbers.sum(axis=0, keepdims=True)
        numbers[0, _MISSING] = of_window.numbers[0, _MISSING] if of_window.slots[0] == start else 0
        cells, payloads = of_window.cells, of_window.payloads
        counted = bool(numbers[0, _COUNTED])
        return Partial(
            _ONE_SLOT,
            numbers,
            sum_rows(cells, k) if cells is not None and counted else None,
            {0: reduce(add, of_window.senders.values())} if of_window.senders else {},
            payloads=sum_rows(payloads, k) if payloads is not None and counted else None,
        )

    @property
    def received(self) -> Counts:
        """Shape (k,): the reports that were received of each slice."""
        return np.asarray(self.numbers[:, _RECEIVED])

    @property
    def missing(self) -> Counts:
        """Shape (k,): the messages that are missing in each slice."""
        return np.asarray(self.numbers[:, _MISSING])

    def slices(self) -> Iterator[tuple[int, "Partial"]]:
        """Yield the slot of each slice, and its part with slot 0. One whose reports were not counted has no cells."""
        cells, payloads = (
            None if each is None else unstack_cells(each, len(self)) for each in (self.cells, self.payloads)
        )
        counted = self.numbers[:, _COUNTED].tolist()
        for row, slot in enumerate(self.slots.tolist()):
            yield (
                slot,
                Partial(
                    _ONE_SLOT,
                    self.numbers[row : row + 1],
                    cells[row] if cells is not None and counted[row] else None,
                    {0: self.senders[slot]} if slot in self.senders else {},
                    {0: self.ends[slot]} if slot in self.ends else {},
                    payloads[row] if payloads is not None and counted[row] else None,
                ),
            )


def stack(parts: Mapping[int, Partial]) -> Partial:
    """Join parts with slot 0 by their slots: the inverse of ``Partial.slices``."""
    if len(parts) == 1:
        return next(part.at(slot) for slot, part in parts.items())
    slots = sorted(parts)
    rows = [parts[slot] for slot in slots]
    return Partial(
        np.array(slots, dtype=np.int64),
        np.concatenate([numbers_of(0), *(row.numbers for row in rows)]),
        _stack([row.cells for row in rows]),
        {slot: row.senders[0] for slot, row in zip(slots, rows, strict=True) if row.senders},
        {slot: row.ends[0] for slot, row in zip(slots, rows, strict=True) if row.ends},
        _stack([row.payloads for row in rows]),
    )


def sum_parts(parts: Iterable[Partial]) -> Partial:
    """Add many parts: two by two, because a sum of two copies all slices of both."""
    sums = list(parts)
    while len(sums) > 1:
        odd = sums[len(sums) - len(sums) % 2 :]
        sums = [one + other for one, other in zip(sums[::2], sums[1::2], strict=False)] + odd
    return sums[0] if sums else Partial()


def _stack(rows: Sequence[Cells | None]) -> Cells | None:
    """Join rows; those that are None are 0, unless all are."""
    given = next((row for row in rows if row is not None), None)
    if given is None:
        return None
    none = SparseCells(given.size, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    return stack_cells([none if row is None else row for row in rows])


#: What slots have: numbers of reports by sender, or of the ends of windows.
_OfSlot = TypeVar("_OfSlot", SenderCounts, Counts)


def _sum_by_slot(one: Mapping[int, _OfSlot], other: Mapping[int, _OfSlot]) -> Mapping[int, _OfSlot]:
    if not one or not other:
        return one or other
    return {**one, **{slot: one[slot] + each if slot in one else each for slot, each in other.items()}}


def _sum(one: Cells | None, other: Cells | None) -> Cells | None:
    """Add cells, either of which may be None."""
    if one is None or other is None:
        return other if one is None else one
    return add_cells(one, other)

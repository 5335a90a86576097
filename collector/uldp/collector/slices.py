"""Parts of the statistics of many time slices, as columns: what a slice costs alone is paid once.

Thousands of windows cost more as objects than as reports. So bounded jobs sum spans of slices, and make a
``PartialStatistic`` of a slice only when they publish its window.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from uldp.collector.partial import PartialStatistic
from uldp.collector.signals import PartialSignals, SenderCounts
from uldp.mechanisms.protocol.cells import Cells, add_cells, spread_rows, stack_cells, unstack_cells
from uldp.schemas.arrays import Counts, Times
from uldp.schemas.pane import SKEW_RANGES, Accounting

#: The columns of ``PartialSlices.numbers``: the fields of the accounting, then the improbable reports, then clock skew.
_RECEIVED, _COUNTED = 0, 1
_IMPROBABLE = 6
_SKEW = 7
NUMBERS = _SKEW + 2 * SKEW_RANGES


def counted_numbers(skews: Counts, improbable: Counts) -> Counts:
    """Return the numbers of slices in which all reports were counted, shape (k, NUMBERS).

    Args:
        skews: Shape (k, 2 SKEW_RANGES): number of reports by clock skew; each report has one.
        improbable: Shape (k,): number of reports with an improbable payload.
    """
    numbers = np.zeros((len(skews), NUMBERS), dtype=np.int64)
    numbers[:, [_RECEIVED, _COUNTED]] = skews.sum(axis=1)[:, np.newaxis]
    numbers[:, _IMPROBABLE] = improbable
    numbers[:, _SKEW:] = skews
    return numbers


@dataclass(frozen=True, slots=True, eq=False)
class PartialSlices:
    """Parts of the statistics of k time slices; a commutative monoid, with no slices as its zero.

    Attributes:
        slots: Shape (k,): which slices, ascending: their starts, or their slots if they are those of several
            collections; see ``uldp.collector.groups``.
        numbers: Shape (k, NUMBERS): accounting, improbable reports and clock skew of each slice.
        cells: The cells of all slices, one slice behind the other; None if no report was counted in any of them. They
            are 0 for a slice in which none was.
        senders: Number of reports by sender for the slices that have it, by slot.
    """

    slots: Times = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    numbers: Counts = field(default_factory=lambda: np.empty((0, NUMBERS), dtype=np.int64))
    cells: Cells | None = None
    senders: Mapping[int, SenderCounts] = field(default_factory=dict)

    @classmethod
    def of(cls, slot: int, partial: PartialStatistic) -> "PartialSlices":
        """Make a span of one slice."""
        a, signals = partial.accounting, partial.signals
        numbers = np.zeros((1, NUMBERS), dtype=np.int64)
        numbers[0, :_SKEW] = a.received, a.counted, a.duplicate, a.late, a.rejected, a.missing, signals.improbable
        if signals.skew is not None:
            numbers[0, _SKEW:] = signals.skew
        senders = {} if signals.senders is None else {slot: signals.senders}
        return cls(np.array([slot], dtype=np.int64), numbers, partial.cells, senders)

    def __len__(self) -> int:
        return len(self.slots)

    def __add__(self, other: "PartialSlices") -> "PartialSlices":
        if not len(self) or not len(other):
            return self if len(self) else other
        if not np.array_equal(self.slots, other.slots):
            at = np.searchsorted(self.slots, other.slots)
            known = at[-1] < len(self) and np.array_equal(self.slots[at], other.slots)
            slots = self.slots if known else np.union1d(self.slots, other.slots)
            self, other = self._spread(slots), other._spread(slots)
        if self.cells is None or other.cells is None:
            cells = other.cells if self.cells is None else self.cells
        else:
            cells = add_cells(self.cells, other.cells)
        senders = dict(self.senders)
        for slot, each in other.senders.items():
            senders[slot] = senders[slot] + each if slot in senders else each
        return PartialSlices(self.slots, self.numbers + other.numbers, cells, senders)

    def _spread(self, slots: Times) -> "PartialSlices":
        """Return the same parts among the same slices or more."""
        if len(slots) == len(self):
            return self
        at = np.searchsorted(slots, self.slots)
        numbers = np.zeros((len(slots), NUMBERS), dtype=np.int64)
        numbers[at] = self.numbers
        cells = None if self.cells is None else spread_rows(self.cells, at, len(slots))
        return PartialSlices(slots, numbers, cells, self.senders)

    def cut(self, size: int) -> Iterator[tuple[int, "PartialSlices"]]:
        """Cut slices of one collection at the multiples of ``size`` milliseconds.

        Yields:
            Each multiple below a slice, and its slices.
        """
        if not len(self):
            return
        origins = self.slots // size * size
        bounds = [0, *(np.flatnonzero(origins[1:] != origins[:-1]) + 1).tolist(), len(self)]
        if len(bounds) == 2:
            yield int(origins[0]), self
            return
        cells = None if self.cells is None else unstack_cells(self.cells, len(self))
        for first, end in pairwise(bounds):
            slots = self.slots[first:end]
            yield (
                int(origins[first]),
                PartialSlices(
                    slots,
                    self.numbers[first:end],
                    None if cells is None else stack_cells(cells[first:end]),
                    {slot: each for slot, each in self.senders.items() if slots[0] <= slot <= slots[-1]},
                ),
            )

    def slices(self) -> Iterator[tuple[int, PartialStatistic]]:
        """Yield the slot and the part of each slice. A part whose reports were not counted has no cells."""
        cells = None if self.cells is None else unstack_cells(self.cells, len(self))
        of_slices = zip(self.slots.tolist(), self.numbers[:, :_SKEW].tolist(), strict=True)
        for row, (slot, numbers) in enumerate(of_slices):
            *accounting, improbable = numbers
            yield (
                slot,
                PartialStatistic(
                    cells[row] if cells is not None and numbers[_COUNTED] else None,
                    Accounting(*accounting),
                    PartialSignals(self.numbers[row, _SKEW:], improbable, self.senders.get(slot)),
                ),
            )

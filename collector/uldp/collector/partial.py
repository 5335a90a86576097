"""A part of the sufficient statistic and accounting of one window, as the stages send it to the sum."""

from dataclasses import dataclass

from uldp.collector.signals import PartialSignals
from uldp.mechanisms.cells import Cells, add_cells
from uldp.schemas.pane import Accounting

_NO_REPORTS = Accounting()
_NO_SIGNALS = PartialSignals()


@dataclass(frozen=True, slots=True, eq=False)
class PartialCounts:
    """A part of the sufficient statistic of one window: support counts over Z, accounting and signals.

    Addition makes these parts a commutative monoid. ``counts`` is None if no report was counted, which keeps a part
    that holds only accounting small.
    """

    counts: Cells | None = None
    accounting: Accounting = _NO_REPORTS
    signals: PartialSignals = _NO_SIGNALS

    def __add__(self, other: "PartialCounts") -> "PartialCounts":
        if self.counts is None or other.counts is None:
            counts = other.counts if self.counts is None else self.counts
        else:
            counts = add_cells(self.counts, other.counts)
        return PartialCounts(counts, self.accounting + other.accounting, self.signals + other.signals)

"""A part of the sufficient statistic and accounting of one window, as the stages send it to the sum."""

from dataclasses import dataclass

from uldp.collector.signals import PartialSignals
from uldp.mechanisms.protocol.cells import Cells, add_cells
from uldp.schemas.pane import Accounting

_NO_REPORTS = Accounting()
_NO_SIGNALS = PartialSignals()


@dataclass(frozen=True, slots=True, eq=False)
class PartialStatistic:
    """A part of the statistic of one window: cells, accounting and signals.

    Addition makes these parts a commutative monoid. ``cells`` is None if no report was counted, which keeps a part
    that holds only accounting small.
    """

    cells: Cells | None = None
    accounting: Accounting = _NO_REPORTS
    signals: PartialSignals = _NO_SIGNALS

    def __add__(self, other: "PartialStatistic") -> "PartialStatistic":
        if self.cells is None or other.cells is None:
            cells = other.cells if self.cells is None else self.cells
        else:
            cells = add_cells(self.cells, other.cells)
        return PartialStatistic(cells, self.accounting + other.accounting, self.signals + other.signals)

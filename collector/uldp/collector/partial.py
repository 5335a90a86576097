"""A part of what is known of one window: what the stages send to the sum."""

from dataclasses import dataclass

from uldp.collector.signals import PartialSignals
from uldp.mechanisms.support import AnyCounts, add_counts
from uldp.schemas.records import Accounting

_NO_REPORTS = Accounting()
_NO_SIGNALS = PartialSignals()


@dataclass(frozen=True, slots=True, eq=False)
class PartialCounts:
    """A part of the sufficient statistic of one window: support counts over Z and where the reports went.

    Sums are a commutative monoid. ``counts`` is None where no report was counted, so that accounting alone is small.
    """

    counts: AnyCounts | None = None
    accounting: Accounting = _NO_REPORTS
    signals: PartialSignals = _NO_SIGNALS

    def __add__(self, other: "PartialCounts") -> "PartialCounts":
        if self.counts is None or other.counts is None:
            counts = other.counts if self.counts is None else self.counts
        else:
            counts = add_counts(self.counts, other.counts)
        return PartialCounts(counts, self.accounting + other.accounting, self.signals + other.signals)

"""From the sum of a window to a pane, with flags that warn about it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from uldp.collector.collections import ServedCollection
from uldp.collector.partial import Partial
from uldp.collector.published import has_few_at_ends
from uldp.collector.repeats import repeats_p_value
from uldp.mechanisms.inference.plausibility import ALARM_LEVEL, excess_p_value
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.mechanisms.protocol.mechanism import IMPROBABLE_TAIL
from uldp.schemas.arrays import Counts
from uldp.schemas.flags import Flag
from uldp.schemas.pane import Accounting, Pane, PaneKind, Signals
from uldp.schemas.statistic import Statistic


class WindowSum(NamedTuple):
    """The sum of a window, as its pane publishes it: all cells, or None if no report was counted."""

    cells: Counts | None
    accounting: Accounting
    signals: Signals
    ends: Counts | None = None
    most_alike: int = 0

    @classmethod
    def of(cls, partial: Partial, start: int) -> "WindowSum":
        """Return the sum of the window that starts at ``start``, in milliseconds."""
        cells = None if partial.cells is None else as_dense(partial.cells)
        most_alike = 0 if partial.payloads is None else int(as_dense(partial.payloads).max())
        return cls(cells, partial.accounting, partial.signals(start), partial.ends.get(0), most_alike)


def p_values_of(decoder: Decoder, sums: Sequence[WindowSum]) -> list[Mapping[Flag, float]]:
    """Test the cells of windows, see ``Decoder.p_values_of_each``; a window without counted reports has no p-values."""
    counted = [(each.cells, each.accounting.counted) for each in sums if each.cells is not None]
    tested = iter(decoder.p_values_of_each(counted))
    return [{} if each.cells is None else next(tested) for each in sums]


def flags_of(served: ServedCollection, total: WindowSum, p_values: Mapping[Flag, float]) -> Iterator[Flag]:
    """Yield the flags that warn about the sum of a window."""
    limits, (cells, accounting, signals, ends, most_alike) = served.spec.limits, total
    reports = (accounting.counted,) if cells is None else served.protocol.decoder.reports(cells, accounting.counted)
    if max(reports) < limits.min_reports:
        yield Flag.FEW_REPORTS
    elif any(0 < each < limits.min_reports for each in reports):  # a variable without reports has no table to withhold
        yield Flag.FEW_OF_VARIABLE
    if has_few_at_ends(ends, reports, limits.min_reports):
        yield Flag.FEW_AT_ENDS
    if _exceeds(limits.max_rejected_ratio, accounting.rejected, accounting.received):
        yield Flag.REJECTED_RATIO
    if _exceeds(limits.max_duplicate_ratio, accounting.duplicate, accounting.received):
        yield Flag.DUPLICATE_RATIO
    if accounting.missing:
        yield Flag.MISSING_REPORTS
    improbable = signals.improbable_reports
    if improbable and excess_p_value(improbable, accounting.counted, IMPROBABLE_TAIL) < ALARM_LEVEL:
        yield Flag.IMPROBABLE_PAYLOADS
    sketched = served.sketched
    if most_alike and sketched and repeats_p_value(most_alike, accounting.counted, sketched.share) < ALARM_LEVEL:
        yield Flag.EQUAL_PAYLOADS
    yield from (flag for flag, p_value in p_values.items() if p_value < ALARM_LEVEL)
    most = limits.max_reports_per_sender
    busiest = signals.busiest_sender
    if most is not None and busiest is not None and busiest.reports > most:
        yield Flag.BUSY_SENDER


def _exceeds(limit: float | None, part: int, received: int) -> bool:
    """Return whether a part of the received reports is a larger share than a limit, if there is one."""
    return limit is not None and part > limit * received


def seal(
    served: ServedCollection, total: WindowSum, start: int, end: int, pane: Pane, p_values: Mapping[Flag, float]
) -> Statistic:
    """Make a pane from a sum; ``start`` and ``end`` are the window's, in milliseconds. See ``p_values_of``.

    If no report was counted, the cells are a single 0 and not one for each symbol: late and rejected reports may name
    any number of windows, and a domain may be large. NumPy adds a single 0 to the cells of any other window.
    """
    partly = (Flag.PARTLY_OPEN,) if start < served.opens or served.closes < end else ()
    return Statistic(
        *served.spec.key,
        device_digest=served.device_digest,
        window_start=start,
        window_end=end,
        pane=pane,
        cells=np.zeros(1, dtype=np.int64) if total.cells is None else total.cells,
        accounting=total.accounting,
        flags=(*flags_of(served, total, p_values), *partly),
        signals=total.signals,
    )


#: The only pane of a window of bounded input.
ONLY = Pane(PaneKind.ON_TIME, 0)
#: The accounting of windows in whose slices nothing came.
NOTHING = Accounting()

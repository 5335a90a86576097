"""Roll-ups: counts of windows are summed, and the sum is estimated anew, which no mean of published rows equals.

The mean of the rows of ``auto`` is wrong: each of them is drawn towards the usual share of its window.
"""

from collections.abc import Iterable, Sequence
from datetime import tzinfo

import numpy as np

from uldp.mechanisms.questions.periods import Every, Period, period_of
from uldp.mechanisms.questions.span import Span, Version
from uldp.schemas.errors import RequestError
from uldp.schemas.records import iso
from uldp.schemas.specs.durations import format_duration, milliseconds
from uldp.schemas.statistic import Statistic


class RollUp:
    """Sums the counts of a version by period; the memory is that of the periods, not of the windows.

    Args:
        version: The version.
        every: The length of the periods; None for the windows themselves.
        zone: The time zone of the periods.
    """

    def __init__(self, version: Version, every: Every | None, zone: tzinfo) -> None:
        self._version, self._every, self._zone = version, every, zone
        self._spans: dict[Period, Span] = {}

    def add(self, statistic: Statistic) -> None:
        """Add the newest statistic of a window. Windows come in the order of their starts.

        Raises:
            RequestError: if devices of another device half made it, or its window lies in two periods.
        """
        spec = self._version.spec
        if statistic.device_digest != spec.device_digest:
            raise RequestError(
                f"{spec.collection} v{spec.version}: the window from {iso(statistic.window_start)} was counted under"
                " another device half than the spec beside it has, so its counts cannot be added"
            )
        period = self._period(statistic)
        if period is None:
            return
        n = statistic.n
        reports = self._version.decoder.reports(statistic.cells, n) if n else (0,)
        one = Span(
            self._version,
            period,
            statistic.cells,
            (n,) if n else (),
            reports if statistic.apart else (0,) * len(reports),
            statistic.accounting,
            statistic.flags,
        )
        before = self._spans.get(period)
        self._spans[period] = one if before is None else _in(period, before + one)

    def spans(self) -> list[Span]:
        """Return the periods that have a report, in order.

        Where a period has few reports, it is joined with neighbours; see ``coarsened``. Sliding windows have reports in
        common, so those of few reports are left out instead.
        """
        spans = [self._spans[period] for period in sorted(self._spans) if self._spans[period].n]
        if self._every is None and self._version.spec.window.period is not None:
            return [span for span in spans if span.passes()]
        return coarsened(spans)

    def _period(self, statistic: Statistic) -> Period | None:
        """Return the period of a window; None for a sliding window whose slices are in other windows of the period."""
        start, end = statistic.window_start, statistic.window_end
        if self._every is None:
            return Period(start, end, iso(start))
        if self._fixed:
            return period_of(start, end, self._every, self._zone)
        period = self._of_sliding(start)
        return None if (start - period.start) % (end - start) else period

    @property
    def _fixed(self) -> bool:
        return self._version.spec.window.period is None

    def _of_sliding(self, start: int) -> Period:
        """Return the period that the first slice of a sliding window lies in, if its windows divide the period."""
        window = self._version.spec.window
        assert self._every is not None
        period = period_of(start, start + milliseconds(window.slice), self._every, self._zone)
        if (period.end - period.start) % milliseconds(window.size):
            raise RequestError(
                f"sliding windows of {format_duration(window.size)} do not divide the period {period.name}, so no set"
                " of them counts each report once; take longer periods, or shorter windows"
            )
        return period


def _in(period: Period, span: Span) -> Span:
    """Return a sum of windows of one period, with the period as its own."""
    return Span(span.version, period, span.cells, span.sizes, span.apart, span.accounting, span.flags)


def coarsened(spans: list[Span]) -> list[Span]:
    """Join neighbours until each sum passes: the finest such partition, so that each report is in one number.

    Of all partitions into runs of neighbours that pass, it is the one with the least sum of squares of the numbers of
    joined spans. The list is empty if even the sum of all does not pass.

    Args:
        spans: Spans in order, which have no report in common.
    """
    if all(span.passes() for span in spans):
        return spans
    least = spans[0].version.spec.limits.min_reports
    totals = np.cumsum([(0, *(0 for _ in spans[0].apart)), *((span.n, *span.apart) for span in spans)], axis=0)
    costs, begins = np.full(len(spans) + 1, np.inf), np.zeros(len(spans) + 1, dtype=np.int64)
    costs[0] = 0
    for end in range(1, len(spans) + 1):
        sums = totals[end] - totals[:end]
        apart = sums[:, 1:]
        passing = (sums[:, 0] >= least) & ((apart == 0) | (apart >= least)).all(axis=1)
        cost = np.where(passing, costs[:end] + np.arange(end, 0, -1) ** 2, np.inf)
        begins[end] = int(np.argmin(cost))
        costs[end] = cost[begins[end]]
    if np.isinf(costs[-1]):
        return []
    joined: list[Span] = []
    end = len(spans)
    while end:
        begin = int(begins[end])
        joined.append(total(spans[begin:end]))
        end = begin
    return joined[::-1]


def total(spans: Sequence[Span]) -> Span:
    """Return the sum of spans of one version, one or more, in order, which have no report in common."""
    first, *others = spans
    for span in others:
        first += span
    return first


def roll_up(version: Version, statistics: Iterable[Statistic], every: Every | None, zone: tzinfo) -> list[Span]:
    """Return the spans of the statistics of a version; see ``RollUp``."""
    rolled = RollUp(version, every, zone)
    for statistic in statistics:
        rolled.add(statistic)
    return rolled.spans()

"""Roll-ups: counts of windows are summed, and the sum is estimated anew, which no mean of published rows equals.

The mean of the rows of ``auto`` is wrong: each of them is drawn towards the usual share of its window.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from itertools import pairwise

import numpy as np

from uldp.mechanisms.pooling.versions import difference
from uldp.mechanisms.questions.periods import Every, Period, period_of
from uldp.mechanisms.questions.span import Span, Version
from uldp.schemas.arrays import Counts
from uldp.schemas.errors import RequestError
from uldp.schemas.pane import Accounting
from uldp.schemas.records import iso
from uldp.schemas.specs.durations import format_duration, milliseconds
from uldp.schemas.statistic import Statistic


class RollUp:
    """The sums of the counts of a version by period; the memory is that of the periods, not of the windows.

    Statistics are the newest of each window, in the order of their starts; ``every`` is the length of the periods, or
    None for the windows themselves. RequestError if devices of another device half made a statistic, or its window lies
    in two periods.
    """

    def __init__(self, version: Version, statistics: Iterable[Statistic], every: Every | None, zone: tzinfo) -> None:
        self.version, self._every, self._zone = version, every, zone
        self._spans: dict[Period, Span] = {}
        for statistic in statistics:
            self._add(statistic)

    def _add(self, statistic: Statistic) -> None:
        spec = self.version.spec
        if statistic.device_digest != spec.device_digest:
            raise RequestError(
                f"{spec.collection} v{spec.version}: the window from {iso(statistic.window_start)} was counted under"
                " another device half than the spec beside it has, so its counts cannot be added"
            )
        period = self._period(statistic)
        if period is None:
            return
        n = statistic.n
        reports = self.version.decoder.reports(statistic.cells, n) if n else (0,)
        one = Span(
            self.version,
            period,
            statistic.cells,
            (n,) if n else (),
            reports if statistic.apart else (0,) * len(reports),
            statistic.accounting,
            statistic.flags,
        )
        before = self._spans.get(period)
        self._spans[period] = one if before is None else replace(before + one, period=period)

    def spans(self) -> list[Span]:
        """Return the periods that have a report, in order.

        Where a period has few reports, it is joined with neighbours; see ``runs``. Sliding windows have reports in
        common, so those of few reports are left out instead.
        """
        spans = self.fine()
        if self.overlapping or not spans:
            return [span for span in spans if span.passes()]
        counts = np.array([span.counts for span in spans])
        least = np.full(counts.shape[1], self.version.spec.limits.min_reports)
        return [total(spans[begin:end]) for begin, end in runs(counts, least)]

    def fine(self) -> list[Span]:
        """Return the periods that have a report, in order, also those of few."""
        return [self._spans[period] for period in sorted(self._spans) if self._spans[period].n]

    @property
    def overlapping(self) -> bool:
        """Whether the spans have reports in common, as sliding windows do."""
        return self._every is None and not self._fixed

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
        return self.version.spec.window.period is None

    def _of_sliding(self, start: int) -> Period:
        """Return the period that the first slice of a sliding window lies in, if its windows divide the period."""
        window = self.version.spec.window
        assert self._every is not None
        period = period_of(start, start + milliseconds(window.slice), self._every, self._zone)
        if (period.end - period.start) % milliseconds(window.size):
            raise RequestError(
                f"sliding windows of {format_duration(window.size)} do not divide the period {period.name}, so no set"
                " of them counts each report once; take longer periods, or shorter windows"
            )
        return period


def runs(counts: Counts, least: Counts) -> list[tuple[int, int]]:
    """Return the first position of each run of neighbours, and the one behind its last: the finest that pass.

    So each report is in one number. Of all partitions into runs of neighbours whose sums pass, it is the one with the
    least sum of squares of the numbers of joined neighbours. The list is empty if even the sum of all does not pass.
    Each of T neighbours has c counts, of which one is positive; a sum passes if each count is 0 or ``least`` or more.
    """
    if ((counts == 0) | (counts >= least)).all():
        return [(at, at + 1) for at in range(len(counts))]
    totals = np.concatenate([np.zeros((1, counts.shape[1]), dtype=np.int64), np.cumsum(counts, axis=0)])
    costs, begins = np.full(len(totals), np.inf), np.zeros(len(totals), dtype=np.int64)
    costs[0] = 0
    for end in range(1, len(totals)):
        sums = totals[end] - totals[:end]
        passing = ((sums == 0) | (sums >= least)).all(axis=1)
        cost = np.where(passing, costs[:end] + np.arange(end, 0, -1) ** 2, np.inf)
        begins[end] = int(np.argmin(cost))
        costs[end] = cost[begins[end]]
    found: list[tuple[int, int]] = []
    end = len(counts) if np.isfinite(costs[-1]) else 0
    while end:
        found.append((int(begins[end]), end))
        end = int(begins[end])
    return found[::-1]


def total(spans: Sequence[Span]) -> Span:
    """Return the sum of spans of one version, one or more, in order, which have no report in common."""
    first, *others = spans
    for span in others:
        first += span
    return first


def roll_up(version: Version, statistics: Iterable[Statistic], every: Every | None, zone: tzinfo) -> list[Span]:
    """Return the spans of the statistics of a version; see ``RollUp``."""
    return RollUp(version, statistics, every, zone).spans()


def pool_up(rolled: Sequence[RollUp]) -> list[Span]:
    """Return the spans of all versions of a collection together, in order.

    As in ``RollUp.spans``, where a period has few reports, or a version few in it, it is joined with neighbours.
    RequestError if the versions estimate different quantities, or if their windows overlap.
    """
    newest = rolled[-1].version.spec
    for each in rolled:
        if why := difference(each.version.spec, newest):
            raise RequestError(
                f"{newest.collection}: version {each.version.spec.version} cannot be pooled with version"
                f" {newest.version}: {why}; leave out --pooled, or ask --since the newest version began"
            )
    of_versions = [{span.period: span for span in each.fine()} for each in rolled]
    of_versions = [spans for spans in of_versions if spans]
    periods = sorted(set[Period]().union(*of_versions))
    if rolled[-1].overlapping:
        return [pool for pool in (_pool(of_versions, [period]) for period in periods) if pool.passes()]
    for one, other in pairwise(periods):
        if other.start < one.end:
            raise RequestError(
                f"{newest.collection}: the windows from {one.name} and from {other.name} are of versions whose windows"
                " have other lengths; add --every"
            )
    counts, least = [], []
    for spans in of_versions:
        some = next(iter(spans.values()))
        nothing = (0,) * len(some.counts)
        counts.append([spans[period].counts if period in spans else nothing for period in periods])
        least += [some.version.spec.limits.min_reports] * len(nothing)
    if not counts:
        return []
    return [_pool(of_versions, periods[begin:end]) for begin, end in runs(np.hstack(counts), np.array(least))]


def _pool(of_versions: Sequence[Mapping[Period, Span]], periods: Sequence[Period]) -> Span:
    """Return the span of neighbouring periods, of each version that has reports in them."""
    found = [[spans[period] for period in periods if period in spans] for spans in of_versions]
    sums = tuple(total(spans) for spans in found if spans)
    first, last = periods[0], periods[-1]
    name = first.name if len(periods) == 1 else f"{first.name} to {last.name}"
    return replace(
        sums[-1],
        period=Period(first.start, last.end, name),
        sizes=tuple(size for span in sums for size in span.sizes),
        accounting=sum((span.accounting for span in sums), Accounting()),
        flags=tuple(dict.fromkeys(flag for span in sums for flag in span.flags)),
        of_versions=sums if len(sums) > 1 else (),
    )

"""The points of lines over time: windows, or sums of windows where there are too many to draw.

The mean of published rows is wrong, so counts are summed and estimated anew; see ``uldp.mechanisms.questions.rollup``.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from operator import attrgetter

import numpy as np

from uldp.mechanisms.questions.periods import EVERY, Every, Period
from uldp.mechanisms.questions.rollup import RollUp, pool_up
from uldp.mechanisms.questions.slices import counts_of, version_of
from uldp.mechanisms.questions.span import Span, Version
from uldp.pipelines.report.over_time import Point, point_of
from uldp.pipelines.results.newest import Current
from uldp.schemas.arrays import Counts
from uldp.schemas.errors import RequestError
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import SKEW_RANGES, PaneHeader, Signals
from uldp.schemas.specs.collection import CollectionSpec

#: So many points are drawn at most, unless the reader asks for more.
MOST = 400
_DAYS = {"1d": 1, "1w": 7, "1mo": 30}
_NAMES = {"1d": "the sum of each day", "1w": "the sum of each ISO week", "1mo": "the sum of each month"}
_DAY = 86_400_000


def points_of(
    estimates: Sequence[Estimate], spec: CollectionSpec, found: Current, every: Every | None
) -> tuple[list[Point], str]:
    """Return ordered estimates' points, and what one is; RequestError if windows cannot be summed by ``every``."""
    if every is None and len(estimates) <= MOST:
        return [point_of(each) for each in estimates], "each window"
    try:
        return _summed(estimates, spec, found, every or _period(estimates))
    except RequestError:
        if every is not None:
            raise
        return [point_of(each) for each in estimates[-MOST:]], f"each of the last {MOST} windows"


def _period(estimates: Sequence[Estimate]) -> Every:
    """Return the shortest period of which there are few enough."""
    days = (estimates[-1].window_end - estimates[0].window_start) / _DAY
    return next((every for every in EVERY if days / _DAYS[every] <= MOST), EVERY[-1])


def _summed(
    estimates: Sequence[Estimate], spec: CollectionSpec, found: Current, every: Every
) -> tuple[list[Point], str]:
    spans, clocks = _rolled(estimates, spec, found, every).spans(), _Clocks(estimates)
    points = [_point(span, clocks, estimates[0].estimator) for span in spans]
    return [point for point in points if point.tables], f"{_NAMES[every]}, in UTC"


def pooled_points_of(
    versions: Sequence[tuple[CollectionSpec, Sequence[Estimate]]], found: Current, every: Every | None
) -> tuple[list[Point], str]:
    """Return the points of several versions, the newest last, together, and what a point is.

    Where one version alone has reports, the point is that of its first estimator. RequestError if windows cannot be
    summed, or have other lengths in each version.
    """
    estimates = sorted((each for _, of in versions for each in of), key=attrgetter("window_start", "window_end"))
    if every is None and len({(each.window_start, each.window_end) for each in estimates}) > MOST:
        every = _period(estimates)
    pools = pool_up([_rolled(of, spec, found, every) for spec, of in versions])
    clocks = _Clocks(estimates)
    estimators = {spec.version: of[-1].estimator for spec, of in versions}
    points = [_point(pool, clocks, estimators[pool.version.spec.version]) for pool in pools]
    return [point for point in points if point.tables], f"{_NAMES[every]}, in UTC" if every else "each window"


def _rolled(estimates: Sequence[Estimate], spec: CollectionSpec, found: Current, every: Every | None) -> RollUp:
    statistics = [statistic for each in estimates if (statistic := found.statistic_of(each)) is not None]
    if len(statistics) < len(estimates):
        raise RequestError(
            f"{spec.collection} v{spec.version}: {len(estimates) - len(statistics):,} windows lack their counts,"
            " from which sums follow; copy the folder counts beside estimates"
        )
    version = Version(spec)
    return RollUp(version_of(version), counts_of(version, statistics), every, UTC)


def _point(span: Span, clocks: "_Clocks", estimator: str) -> Point:
    # Versions are of one stream, which lost each message once.
    accounting = replace(span.accounting, missing=max(each.accounting.missing for each in span.spans))
    period = span.period
    return Point(
        period.start, period.end, span.n, accounting, span.flags, clocks.within(period), span.tables(estimator)
    )


class _Clocks:
    """The clock skew of windows, in the order of their starts, summed over periods."""

    def __init__(self, windows: Sequence[PaneHeader]) -> None:
        self._starts = np.array([each.window_start for each in windows])
        self._past = _running([each.signals.past for each in windows])
        self._early = _running([each.signals.early for each in windows])

    def within(self, period: Period) -> Signals:
        """Return the signals of the windows that start in a period: those about clocks alone."""
        first, last = np.searchsorted(self._starts, [period.start, period.end])
        past, early = (tuple((each[last] - each[first]).tolist()) for each in (self._past, self._early))
        return Signals(early, past)


def _running(counts: Sequence[tuple[int, ...]]) -> Counts:
    """Return the sums of all counts before each window, and of all, of shape (windows + 1, ranges)."""
    sums = np.zeros((len(counts) + 1, SKEW_RANGES), dtype=np.int64)
    for window, each in enumerate(counts):
        sums[window + 1, : len(each)] = each
    return np.cumsum(sums, axis=0)

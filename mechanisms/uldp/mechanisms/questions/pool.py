"""The counts of several versions over one span of time, which give one estimate: that of ``pooled_tables``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from uldp.mechanisms.pooling.versions import difference
from uldp.mechanisms.questions.periods import Period
from uldp.mechanisms.questions.rollup import RollUp, runs, total
from uldp.mechanisms.questions.span import Span
from uldp.schemas.errors import RequestError
from uldp.schemas.pane import Accounting


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

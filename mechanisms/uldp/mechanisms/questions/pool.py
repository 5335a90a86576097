"""The counts of several versions over one span of time, which give one estimate: a ``Pool`` has the place of a span."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from uldp.mechanisms.pooling.pooled_tables import PooledTables, VersionCounts, pooled_tables
from uldp.mechanisms.pooling.versions import difference
from uldp.mechanisms.questions.periods import Period
from uldp.mechanisms.questions.rollup import RollUp, runs, total
from uldp.mechanisms.questions.span import Span, Version, spent_over
from uldp.mechanisms.questions.spent import Spent
from uldp.schemas.errors import RequestError
from uldp.schemas.table import Table


@dataclass(frozen=True, eq=False)
class Pool:
    """Spans of several versions, whose estimates are pooled as ``pooled_tables`` does.

    Attributes:
        spans: A span of each version that has reports, the newest version last.
        period: The time that they are in.
    """

    spans: tuple[Span, ...]
    period: Period

    @property
    def version(self) -> Version:
        """The newest version; its labels, background and limits hold for the pooled estimate."""
        return self.spans[-1].version

    @property
    def versions(self) -> tuple[int, ...]:
        """The numbers of the versions."""
        return tuple(span.version.spec.version for span in self.spans)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of reports of the windows of all versions."""
        return tuple(size for span in self.spans for size in span.sizes)

    @property
    def n(self) -> int:
        """The number of counted reports."""
        return sum(self.sizes)

    @property
    def flags(self) -> tuple[str, ...]:
        """Those of any window."""
        return tuple(dict.fromkeys(flag for span in self.spans for flag in span.flags))

    @cached_property
    def spent(self) -> Spent | None:
        """The most that a user with a report in each window of each version has spent; None without privacy."""
        return spent_over(self.spans)

    @property
    def repeats(self) -> float:
        """The largest of the versions; see ``Span.repeats``."""
        return max(span.repeats for span in self.spans)

    @cached_property
    def assumed(self) -> str:
        """What the errors of an answer take as true besides the specs; one sentence."""
        alone = max((span.assumed for span in self.spans), key=len)
        if len(self.spans) == 1:
            return alone
        number, compared = self._pooled.contradictory, self._pooled.compared
        contradicting = f", though they contradict each other in {number:,} of {compared:,} numbers" if number else ""
        return f"{alone}; the users of versions {names(self.versions)} are of one population{contradicting}"

    @cached_property
    def _pooled(self) -> PooledTables:
        return pooled_tables(
            [VersionCounts(span.version.decoder, span.cells, span.n, span.repeats) for span in self.spans]
        )

    def passes(self) -> bool:
        """Return whether each version's part of the pool may be shown; see ``Span.passes``."""
        return all(span.passes() for span in self.spans)

    def tables(self, estimator: str) -> tuple[Table, ...]:
        """Return the pooled tables of enough reports; of one version, those of an estimator."""
        if len(self.spans) == 1:
            return self.spans[0].tables(estimator)
        least = self.version.spec.limits.min_reports
        return tuple(table for table in self._pooled.tables if table.n >= least)


def names(versions: Sequence[int]) -> str:
    """Write numbers of versions: ``1, 2 and 3``."""
    *others, last = map(str, versions)
    return f"{', '.join(others)} and {last}" if others else last


def pool_up(rolled: Sequence[RollUp]) -> list[Pool]:
    """Return the pools of the versions of a collection, in order.

    As in ``RollUp.spans``, where a period has few reports, or a version few in it, it is joined with neighbours.

    Args:
        rolled: The counts of each version by period, the newest version last.

    Raises:
        RequestError: if the versions estimate different quantities, or if their windows overlap.
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


def _pool(of_versions: Sequence[Mapping[Period, Span]], periods: Sequence[Period]) -> Pool:
    """Return the pool of neighbouring periods."""
    found = [[spans[period] for period in periods if period in spans] for spans in of_versions]
    first, last = periods[0], periods[-1]
    name = first.name if len(periods) == 1 else f"{first.name} to {last.name}"
    return Pool(tuple(total(spans) for spans in found if spans), Period(first.start, last.end, name))

"""From the sufficient statistic of a window to its published tables and estimates."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from uldp.collector.collections import ServedCollection
from uldp.mechanisms.inference.forgery import all_with_forgers
from uldp.mechanisms.inference.shuffle import shuffled
from uldp.mechanisms.protocol.decoder import Cost, Decoder
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import held_back, withheld
from uldp.schemas.pane import PaneKind
from uldp.schemas.shuffled import Shuffled
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.slices import attributes_of, slice_of
from uldp.schemas.statistic import Statistic
from uldp.schemas.table import Table


def estimates_of(served: ServedCollection, statistic: Statistic) -> list[Estimate]:
    """Estimate what the devices hold by each estimator of the spec.

    Leaves out each table below the spec's ``min_reports``, because only the noise of the mechanism would be visible.
    Returns nothing for a window without another table, for one that exceeds a limit at which the spec stops, or for a
    pane that has few reports more than a published one. An early pane has no estimates that cost too much for it.
    """
    (estimates,) = estimates_of_each(served, [statistic])
    return estimates


def estimates_of_each(served: ServedCollection, statistics: Sequence[Statistic]) -> list[list[Estimate]]:
    """Return ``estimates_of`` each pane of a collection; many of few values take little longer than one."""
    found: list[list[Estimate]] = [[] for _ in statistics]
    spec, decoder = served.spec, served.protocol.decoder
    published = {place: _Facts.of(served, each) for place, each in enumerate(statistics) if _is_published(spec, each)}
    for estimator in spec.estimators:
        final = decoder.cost(estimator) is Cost.FINAL
        places = [place for place in published if not (final and statistics[place].pane.kind is PaneKind.EARLY)]
        tables_by_place = tables_of_each(decoder, spec, [statistics[place] for place in places], estimator)
        for place, tables in zip(places, tables_by_place, strict=True):
            if tables:
                found[place].append(published[place].estimate(served, estimator, tables))
    return found


def _is_published(spec: CollectionSpec, statistic: Statistic) -> bool:
    return not held_back(statistic.flags) and not withheld(spec.limits, statistic.flags)


class _Facts(NamedTuple):
    """What all estimates of a pane say."""

    header: Mapping[str, Any]
    shuffle: tuple[Shuffled, ...]

    @classmethod
    def of(cls, served: ServedCollection, statistic: Statistic) -> "_Facts":
        header = statistic.header()
        if statistic.supersedes is not None and statistic.supersedes.n < served.spec.limits.min_reports:
            header["supersedes"] = None  # no estimate of that pane was published
        names = (*served.spec.mechanism.parts, *served.spec.mechanism.user_groups)
        forged = math.ceil((served.spec.assume_forgers or 0.0) * statistic.n)
        slices = () if served.spec.slices is None else served.spec.slices.names
        promises = shuffled(served.mechanism, names, statistic.cells, statistic.n, forged=forged, slices=slices)
        return cls(header, tuple(promises))

    def estimate(self, served: ServedCollection, estimator: str, tables: tuple[Table, ...]) -> Estimate:
        published = {table.of for table in tables}
        return Estimate(
            **self.header,
            mechanism=served.spec.mechanism.name,
            epsilon=served.mechanism.guarantee.epsilon,
            lasting_epsilon=served.mechanism.guarantee.lasting,
            budget=served.spec.budget,
            shuffle=tuple(each for each in self.shuffle if _is_behind(each.of, published)),
            estimator=estimator,
            assume_forgers=served.spec.assume_forgers,
            tables=tables,
        )


def _is_behind(of: tuple[str, ...], published: set[tuple[str, ...]]) -> bool:
    """Return whether reports of an attribute, level or slice are behind a table: of it, or of more users."""
    same = not attributes_of(of) and any(slice_of(each) == of for each in published)
    return same or any(of[:end] in published for end in range(len(of) + 1))


def tables_of(decoder: Decoder, spec: CollectionSpec, statistic: Statistic, estimator: str) -> tuple[Table, ...]:
    """Return the tables that an estimator publishes: of enough reports, and with the forgers that the spec assumes."""
    (tables,) = tables_of_each(decoder, spec, [statistic], estimator)
    return tables


def tables_of_each(
    decoder: Decoder, spec: CollectionSpec, statistics: Sequence[Statistic], estimator: str
) -> Iterator[tuple[Table, ...]]:
    """Yield ``tables_of`` each statistic; the decoder may estimate several together."""
    found = decoder.tables_of_each([(each.cells, each.n) for each in statistics], estimator)
    for statistic, tables in zip(statistics, found, strict=True):
        enough = _of_enough(tables, spec.limits.min_reports)
        if spec.assume_forgers is not None:
            enough = all_with_forgers(enough, decoder, spec.assume_forgers, statistic.cells, statistic.n)
        yield enough


def _of_enough(tables: Sequence[Table], least: int) -> tuple[Table, ...]:
    """Return the tables of enough reports, without a slice that would show another one.

    Who subtracts all slices that are published from the tables of all users sees the sum of those that are not. If
    these have few reports together, the smallest of the others is not published either.
    """
    few: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for about in {attributes_of(table.of) for table in tables}:
        reports = {table.of: table.n for table in tables if attributes_of(table.of) == about and slice_of(table.of)}
        left_out = sum(n for n in reports.values() if n < least)
        if 0 < left_out < least and left_out < sum(reports.values()):
            smallest = min((n for n in reports.values() if n >= least), default=0)
            few[about] = {next(of for of, n in reports.items() if n == smallest)}
    return tuple(table for table in tables if table.n >= least and table.of not in few.get(attributes_of(table.of), ()))

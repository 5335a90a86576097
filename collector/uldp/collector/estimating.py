"""From the sufficient statistic of a window to its published estimates."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from uldp.collector.collections import ServedCollection
from uldp.collector.tables import tables_of_each
from uldp.mechanisms.inference.shuffle import shuffled
from uldp.mechanisms.protocol.decoder import Cost
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
        """Return the estimate of these tables."""
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
    """Return whether reports of an attribute, a level or a slice are behind a table: of it, or of more users.

    If devices report several attributes at once, the same reports are behind the tables of all of them.
    """
    same = not attributes_of(of) and any(slice_of(each) == of for each in published)
    return same or any(of[:end] in published for end in range(len(of) + 1))

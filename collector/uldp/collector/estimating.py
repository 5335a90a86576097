"""From the sufficient statistic of a window to its published estimates."""

import math
from collections.abc import Iterator
from dataclasses import replace

from uldp.collector.collections import ServedCollection
from uldp.collector.tables import tables_of
from uldp.mechanisms.inference.shuffle import shuffled
from uldp.mechanisms.protocol.decoder import Cost
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import held_back, withheld
from uldp.schemas.pane import PaneKind
from uldp.schemas.statistic import Statistic


def estimates_of(served: ServedCollection, statistic: Statistic) -> Iterator[Estimate]:
    """Estimate what the devices hold by each estimator of the spec.

    Leaves out each table below the spec's ``min_reports``, because only the noise of the mechanism would be visible.
    Yields nothing for a window without another table, for one that exceeds a limit at which the spec stops, or for a
    pane that has few reports more than a published one. An early pane has no estimates that cost too much for it.
    """
    if held_back(statistic.flags) or withheld(served.spec.limits, statistic.flags):
        return
    if statistic.supersedes is not None and statistic.supersedes.n < served.spec.limits.min_reports:
        statistic = replace(statistic, supersedes=None)  # no estimate of that pane was published
    names = (*served.spec.mechanism.parts, *served.spec.mechanism.user_groups)
    forged = math.ceil((served.spec.assume_forgers or 0.0) * statistic.n)
    promises = tuple(shuffled(served.mechanism, names, statistic.cells, statistic.n, forged=forged))
    for estimator in served.spec.estimators:
        if statistic.pane.kind is PaneKind.EARLY and served.protocol.decoder.cost(estimator) is Cost.FINAL:
            continue
        if tables := tables_of(served.protocol.decoder, served.spec, statistic, estimator):
            published = {table.of for table in tables}
            yield Estimate(
                **statistic.header(),
                mechanism=served.spec.mechanism.name,
                epsilon=served.mechanism.guarantee.epsilon,
                lasting_epsilon=served.mechanism.guarantee.lasting,
                budget=served.spec.budget,
                shuffle=promises if () in published else tuple(each for each in promises if each.of in published),
                estimator=estimator,
                assume_forgers=served.spec.assume_forgers,
                tables=tables,
            )

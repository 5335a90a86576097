"""The newest panes of windows, of which only the estimates that are published count."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from uldp.pipelines.results.selection import Selection
from uldp.pipelines.results.soundness import PaneRecord
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import held_back, withheld
from uldp.schemas.pane import PaneHeader
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.statistic import Statistic


def estimator_of(pane: PaneHeader) -> str:
    """Return the estimator of an estimate, and nothing of another pane."""
    return pane.estimator if isinstance(pane, Estimate) else ""


def estimate_key(pane: PaneHeader) -> tuple[str | int, ...]:
    """Return what the panes share of which only the newest holds: their key, and the estimator if there is one."""
    return *pane.key, estimator_of(pane)


def newest(panes: Iterable[PaneRecord]) -> list[PaneRecord]:
    """Keep one pane per (collection, version, window, estimator), ordered by that key.

    The newest pane has the largest ``PaneHeader.age``. A local run that is started again writes from revision 0 on,
    and the files of the earlier run stay.
    """
    best: dict[tuple[Any, ...], PaneRecord] = {}
    for fired in panes:
        key = estimate_key(fired)
        if key not in best or fired.age > best[key].age:
            best[key] = fired
    return [best[key] for key in sorted(best)]


def newest_published(panes: Iterable[PaneRecord]) -> list[PaneRecord]:
    """Keep one pane as ``newest`` does, but none that is held back: such a pane replaces no other."""
    return newest(pane for pane in panes if not held_back(pane.flags))


def firing(pane: PaneHeader) -> tuple[Any, ...]:
    """Identify the firing of a window. A job that runs again uses the revisions again, so they alone do not suffice."""
    return *pane.key, pane.pane.revision, pane.device_digest, pane.accounting


def identity(pane: PaneHeader) -> tuple[Any, ...]:
    """Identify a pane among all of its kind: equal panes may be in two files."""
    return *firing(pane), estimator_of(pane)


class Current(NamedTuple):
    """The newest state of the windows in a results directory."""

    estimates: list[Estimate]  # the newest estimate of each window and estimator
    unpublished: list[PaneHeader]  # the header of the newest pane of each window without a published estimate
    #: The statistics that the estimates were computed from, by firing, unless their cells are apart.
    statistics: Mapping[tuple[Any, ...], Statistic]
    #: The header of the newest pane of each window of which some reports are held back, until more have come.
    held: list[PaneHeader]

    @classmethod
    def of(
        cls,
        fired: Sequence[PaneHeader],
        estimates: Iterable[Estimate],
        specs: Mapping[CollectionKey, CollectionSpec],
        selection: Selection,
    ) -> Self:
        """Choose among panes, and among the estimates of them, those that are the newest of the selected windows."""
        counted, estimated = newest_published(fired), newest(estimates)
        chosen = selection.windows({pane.key for pane in (*counted, *estimated)})
        panes = [pane for pane in counted if pane.key in chosen and pane.key[:2] in specs]
        unpublished = [pane for pane in panes if withheld(specs[pane.key[:2]].limits, pane.flags)]
        published = chosen - {pane.key for pane in unpublished}
        return cls(
            [estimate for estimate in estimated if estimate.key in published],
            unpublished,
            {},
            [pane for pane in newest(fired) if pane.key in chosen and held_back(pane.flags)],
        )

    def statistic_of(self, estimate: Estimate) -> Statistic | None:
        """Return the statistic that an estimate was computed from; None if its cells are apart, or its file missing."""
        return self.statistics.get(firing(estimate))

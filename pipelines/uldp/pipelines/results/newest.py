"""The newest panes of windows, what they add up to, and which of them wait for more reports."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

from uldp.pipelines.results.selection import Selection
from uldp.pipelines.results.soundness import PaneRecord
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import Flag, held_back, withheld
from uldp.schemas.pane import Accounting, PaneHeader, PaneKind
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


def total_accounting(panes: Iterable[PaneHeader]) -> Accounting:
    """Return the accounting of the reports in the panes, one a window, of a version, each report once.

    It is the largest sum over windows that do not overlap: never more than the total, and the total of fixed windows,
    and of sliding ones a size apart that have fired. Windows that are open or damaged are passed by where others cover
    their times. Missing messages, which all open windows have, are left out.
    """
    ordered = sorted(panes, key=lambda pane: (pane.window_end, pane.window_start))
    ends = [pane.window_end for pane in ordered]
    largest = [Accounting()]  # of the first k windows
    for k, pane in enumerate(ordered):
        before = largest[bisect_right(ends, pane.window_start, hi=k)]
        with_pane = before + replace(pane.accounting, missing=0)
        largest.append(max(largest[k], with_pane, key=lambda total: total.received))
    return largest[-1]


def waiting(found: Current, specs: Mapping[CollectionKey, CollectionSpec]) -> Iterator[str]:
    """Yield a line for each collection and version with windows that have too few reports to publish more."""
    behind = {key for key, spec in specs.items() if spec.limits.min_reports > 1}
    few = [pane for pane in found.unpublished if not {Flag.FEW_REPORTS, Flag.FEW_AT_ENDS}.isdisjoint(pane.flags)]
    early = [pane for pane in found.estimates if pane.pane.kind is PaneKind.EARLY and pane.key[:2] in behind]
    ways = {
        "without an estimate": _windows(few),
        "open, whose early estimate is a step behind": _windows(early),
        "whose estimate leaves late reports out": _windows(found.held),
    }
    for collection, version in sorted({key for windows in ways.values() for key in windows}):
        counts = {way: windows[collection, version] for way, windows in ways.items()}
        texts = "; ".join(f"{n:,} {way}" for way, n in counts.items() if n)
        yield f"{collection} v{version}, windows that wait for more reports: {texts}"


def _windows(panes: Iterable[PaneHeader]) -> Counter[CollectionKey]:
    """Count the windows of panes by collection and version: several estimators have an estimate each."""
    return Counter(key[:2] for key in {pane.key for pane in panes})

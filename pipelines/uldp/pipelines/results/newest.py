"""The newest panes of windows, of which only the estimates that are published count."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from uldp.pipelines.results.files import ResultsError, read_container
from uldp.pipelines.results.panes import ESTIMATES, PaneRecord
from uldp.pipelines.results.selection import Selection
from uldp.pipelines.results.wanted import Wanted
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import held_back, withheld
from uldp.schemas.pane import PaneHeader
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.statistic import Statistic


def estimate_key(pane: PaneHeader) -> tuple[str | int, ...]:
    """Return what the panes share of which only the newest holds: their key, and the estimator if there is one."""
    return *pane.key, pane.estimator if isinstance(pane, Estimate) else ""


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


class Current(NamedTuple):
    """The newest state of the windows in a results directory.

    Attributes:
        estimates: The newest estimate of each window and estimator.
        unpublished: The newest pane of each window without a published estimate; only its header, if its cells are
            apart.
        statistics: The statistics of all panes whose cells are not apart, by the firing that made them.
        held: The newest pane of each window of which some reports are held back, until more have come.
    """

    estimates: list[Estimate]
    unpublished: list[PaneHeader]
    statistics: Mapping[tuple[Any, ...], Statistic]
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
            {firing(pane): pane for pane in fired if isinstance(pane, Statistic)},
            [pane for pane in newest(fired) if pane.key in chosen and held_back(pane.flags)],
        )

    def statistic_of(self, estimate: Estimate) -> Statistic | None:
        """Return the statistic that an estimate was computed from; None if its cells are apart, or its file missing."""
        return self.statistics.get(firing(estimate))


@dataclass(frozen=True)
class Published:
    """The estimates of ``Current``, which iteration reads from their files one at a time, for a long history.

    Attributes:
        unpublished: The header of the newest pane of each window without a published estimate.
        headers: The estimates without their tables.
    """

    unpublished: list[PaneHeader]
    headers: list[Estimate]
    _files: Mapping[Path, set[tuple[Any, ...]]]

    @classmethod
    def of(cls, current: Current, files: dict[Path, list[Estimate]]) -> Self:
        """Return the estimates whose headers ``current`` has; ``files`` are the headers of each file."""
        paths = {_pane_key(header): path for path in reversed(files) for header in files[path]}
        chosen: dict[Path, set[tuple[Any, ...]]] = {}
        for key in map(_pane_key, current.estimates):
            chosen.setdefault(paths[key], set()).add(key)
        return cls(current.unpublished, current.estimates, chosen)

    def only(self, headers: list[Estimate]) -> Self:
        """Return some of the estimates, given the headers of these."""
        wanted = set(map(_pane_key, headers))
        files = {path: chosen & wanted for path, chosen in self._files.items() if not chosen.isdisjoint(wanted)}
        return replace(self, headers=headers, _files=files)

    def __len__(self) -> int:
        return sum(map(len, self._files.values()))

    def __iter__(self) -> Iterator[Estimate]:
        for path, chosen in self._files.items():
            left = set(chosen)
            collections = {collection for collection, *_ in chosen}
            wanted = Wanted(
                min(collections) if len(collections) == 1 else None,
                min((end, start) for _, _, start, end, *_ in chosen),
            )
            for estimate in read_container(path, ESTIMATES.schema, ESTIMATES.read, wanted):
                if _pane_key(estimate) in left:  # two panes of a file may be equal
                    left.remove(_pane_key(estimate))
                    yield estimate
            if left:
                raise ResultsError(f"{plain(str(path))}: uldp prune removed it meanwhile; run the command again")


def _pane_key(estimate: Estimate) -> tuple[Any, ...]:
    return *estimate_key(estimate), estimate.age

"""Join what folders have of one window into one pane, or say that nothing shows that each report is counted once."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, zip_longest

import numpy as np

from uldp.collector.collections import ServedCollection
from uldp.collector.estimating import estimates_of
from uldp.collector.published import Reports, differs, public
from uldp.collector.sealing import WindowSum, p_values_of, seal
from uldp.pipelines.merge.ids import Ids
from uldp.pipelines.merge.part import Part, Proof, ids_decide, summed_accounting, summed_signals
from uldp.schemas.errors import DataError
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import Flag, withheld
from uldp.schemas.pane import Pane, PaneHeader
from uldp.schemas.statistic import Statistic

#: Flags of parts that a sum keeps, because its counts do not show what they are about.
_KEPT = (Flag.EQUAL_PAYLOADS,)
#: Flags of which a sum is free, unless all parts have them.
_OF_ALL = (Flag.INCOMPLETE, Flag.FEW_AT_ENDS)
#: Says something of two folders, by their parts of a window.
Says = Callable[[Part, Part], bool]


class UnprovedError(DataError):
    """Nothing shows that reports of a window in two folders are counted once; the text says why, and what to do."""

    def __init__(self, text: str, folders: tuple[int, int]) -> None:
        super().__init__(text)
        self.folders = folders


_TOGETHER = "backfill both sources into one directory"


def join(parts: Sequence[Part], served: ServedCollection, *, copies: Says, late: Says, estimating: bool = True) -> Part:
    """Join what folders have of a window, in any order; UnprovedError if it is not known what they have in common.

    ``copies`` says whether equal statistics show equal reports, if ids do not decide, and ``late`` whether the first
    folder counts what was late for the second. A sum is not estimated if it is only asked whether there is one.
    """

    def rank(part: Part) -> tuple[bool, int, bool, int, int]:
        its_late = any(late(other, part) for other in parts)
        accounting = part.newest.accounting
        return not part.has_ids, -accounting.counted, not its_late, -accounting.received, part.folders[0]

    apart: list[Part] = []
    for part in sorted(parts, key=rank):
        if not any(copies(one, part) and not ids_decide(one, part) for one in apart):
            apart.append(part)
    folders = tuple(sorted(number for part in parts for number in part.folders))
    if len(apart) == 1:
        return replace(apart[0], folders=folders, proof=Proof.EQUAL)
    _check_ids(apart)
    ids = Ids.union(part.ids for part in apart)
    summed = apart if sum(len(part.ids) for part in apart) == len(ids) else _cover(apart, ids)
    if summed is None:
        raise _overlapping(apart)
    if len(summed) == 1:
        inside = any(part.newest.n < len(ids) for part in apart)
        return replace(summed[0], folders=folders, proof=Proof.INSIDE if inside else Proof.EQUAL)
    of_late = [part for part in summed if any(late(part, other) for other in summed)]
    panes, estimates = _summed(summed, of_late, served, estimating=estimating)
    proof = Proof.DISJOINT if len(summed) == len(apart) else Proof.COVERED
    return Part(folders, panes, estimates, ids, proof)


def _check_ids(parts: Sequence[Part]) -> None:
    for part in parts:
        if not part.has_ids:
            other = next(each for each in parts if each is not part)
            said = "nothing shows that they have no report in common; "
            if part.lost_ids:
                raise UnprovedError(
                    f"the second keeps {len(part.ids):,} ids of its {part.newest.n:,} reports, so {said}restore the"
                    f" files of ids, or {_TOGETHER}",
                    (other.folders[0], part.folders[0]),
                )
            one, two = sorted((part.folders[0], other.folders[0]))
            raise UnprovedError(f"{said}run their jobs with --keep-ids, or {_TOGETHER}", (one, two))


def _cover(parts: Sequence[Part], ids: Ids) -> list[Part] | None:
    """Return parts, the first preferred, that have all of these ids, each in one; None if there are none."""
    if not len(ids):
        return [part for part in parts if not len(part.ids)]
    for part in parts:
        # A part of these ids alone that has the first of them begins with it.
        if len(part.ids) and part.ids.has_first_of(ids) and part.ids.in_common(ids) == len(part.ids):
            others = _cover(parts, ids.without(part.ids))
            if others is not None:
                return [part, *others]
    return None


def _overlapping(parts: Sequence[Part]) -> UnprovedError:
    """Name two parts with reports in common, each of which has others; without such two, the largest cover all."""
    for one, other in combinations(sorted(parts, key=lambda part: part.folders), 2):
        common = one.ids.in_common(other.ids)
        if 0 < common < min(len(one.ids), len(other.ids)):
            break
    text = f"{common:,} of their reports are the same, and each has others; {_TOGETHER}"
    return UnprovedError(text, (one.folders[0], other.folders[0]))


def _summed(
    parts: Sequence[Part], late: Sequence[Part], served: ServedCollection, *, estimating: bool
) -> tuple[tuple[PaneHeader, ...], tuple[Estimate, ...]]:
    pane = _sealed([(part, part.newest) for part in parts], late, served)
    shown = [(part, part.published) for part in parts]
    before = [(part, each) for part, each in shown if isinstance(each, Statistic) and _is_public(each, served)]
    if _differs([each for _, each in before], pane, served):
        return (pane,), tuple(estimates_of(served, pane)) if estimating else ()
    # Who has the published panes would see the few reports by which the sum differs from them.
    fired = replace(pane.pane, revision=1 + pane.pane.revision)  # after the sum of the published panes
    held = replace(pane, pane=fired, flags=(*pane.flags, Flag.FEW_MORE))
    if len(before) == 1:
        ((part, last),) = before
        return (held, last), part.estimates
    last = _sealed(before, late, served)
    return (held, last), tuple(estimates_of(served, last)) if estimating else ()


def _sealed(panes: Sequence[tuple[Part, PaneHeader]], late: Sequence[Part], served: ServedCollection) -> Statistic:
    """Add panes of parts, some of which are of late reports."""
    counted = [pane for _, pane in panes if isinstance(pane, Statistic) and pane.n]
    cells = np.sum([pane.cells for pane in counted], axis=0) if counted else None
    try:
        total = summed_accounting(
            [pane.accounting for part, pane in panes if part not in late],
            [pane.accounting for part, pane in panes if part in late],
        )
    except ValueError as error:
        raise UnprovedError(f"{error}; {_TOGETHER}", (panes[0][0].folders[0], late[0].folders[0])) from error
    window = WindowSum(cells, total, summed_signals([pane.signals for _, pane in panes]))
    (p_values,) = p_values_of(served.protocol.decoder, [window])
    kind = max((pane.pane.kind for _, pane in panes), key=["early", "on_time", "late"].index)
    fired = Pane(kind, 1 + max(pane.pane.revision for _, pane in panes))
    start, end = panes[0][1].window_start, panes[0][1].window_end
    pane = seal(served, window, start, end, fired, p_values)
    kept = [flag for flag in _KEPT if any(flag in pane.flags for _, pane in panes)]
    kept += [flag for flag in _OF_ALL if all(flag in pane.flags for _, pane in panes)]
    return replace(pane, flags=tuple(dict.fromkeys((*pane.flags, *kept))))


def _is_public(pane: PaneHeader, served: ServedCollection) -> bool:
    return not withheld(served.spec.limits, pane.flags)


def _differs(before: Sequence[Statistic], after: Statistic, served: ServedCollection) -> bool:
    """Return whether tables together grow by enough reports, the least that a reader of some panes sees of a sum."""
    decoder, least = served.protocol.decoder, served.spec.limits.min_reports

    def reports(pane: Statistic) -> Reports:
        return decoder.reports(pane.cells, pane.n) if pane.n else ()

    shown = (public(reports(pane), least) for pane in before)
    summed = tuple(map(sum, zip_longest(*shown, fillvalue=0)))
    return differs(summed, reports(after), least, or_equals=True)

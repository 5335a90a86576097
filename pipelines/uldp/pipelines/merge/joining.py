"""Join what folders have of one window into one pane, or say that nothing shows that each report is counted once."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from uldp.collector.collections import ServedCollection
from uldp.collector.estimating import estimates_of
from uldp.collector.published import differs, public
from uldp.collector.sealing import WindowSum, p_values_of, seal
from uldp.pipelines.merge.part import (
    Ids,
    Part,
    Proof,
    compared,
    equal_statistics,
    summed_accounting,
    summed_signals,
    without_late,
)
from uldp.schemas.errors import DataError
from uldp.schemas.flags import Flag, withheld
from uldp.schemas.pane import Pane, PaneHeader
from uldp.schemas.statistic import Statistic

#: Flags of parts that a sum keeps, because its counts do not show what they are about.
_KEPT = (Flag.EQUAL_PAYLOADS,)
#: Flags of which a sum is free, unless all parts have them.
_OF_ALL = (Flag.INCOMPLETE, Flag.FEW_AT_ENDS)


class UnprovedError(DataError):
    """Nothing shows that each report of a window is counted once; the text says why, and what to do."""


_TOGETHER = "backfill both sources into one directory"


def join(
    one: Part, other: Part, served: ServedCollection, *, copies: bool, late: bool, estimating: bool = True
) -> Part:
    """Join what two folders have of a window.

    Args:
        one: What the first folder has, or those that are joined already.
        other: What a further folder has.
        served: The collection.
        copies: Whether windows with equal statistics are of the same reports; see ``are_copies``.
        late: Whether the further folder counts reports that the first was too late for.
        estimating: Whether to estimate a sum; not if it is only asked whether the two can be joined.

    Raises:
        UnprovedError: if it cannot be shown which reports they have in common.
    """
    found = Proof.EQUAL if copies and equal_statistics(one, other) else compared(one, other)
    if found is None and (one.ids is None or other.ids is None):
        raise UnprovedError(
            f"nothing shows that they have no report in common; run their jobs with --keep-ids, or {_TOGETHER}"
        )
    if found is None:
        assert one.ids is not None
        assert other.ids is not None
        common = len(np.intersect1d(one.ids, other.ids, assume_unique=True))
        raise UnprovedError(f"{common:,} of their reports are the same, and each has others; {_TOGETHER}")
    folders, ids = one.folders + other.folders, _union(one.ids, other.ids)
    if found is Proof.DISJOINT:
        return _summed(one, other, served, folders, ids, late=late, estimating=estimating)
    larger = max(one, other, key=lambda part: (part.newest.n, part.newest.accounting.received))
    return replace(larger, folders=folders, ids=ids, proof=found)


def _union(one: Ids | None, other: Ids | None) -> Ids | None:
    return other if one is None else one if other is None else np.union1d(one, other)


def _summed(
    one: Part,
    other: Part,
    served: ServedCollection,
    folders: tuple[int, ...],
    ids: Ids | None,
    *,
    late: bool,
    estimating: bool,
) -> Part:
    parts = [one.newest, other.newest]
    pane = _sealed(parts, served, late=late)
    before = [each.published for each in (one, other)]
    shown = [each for each in before if each is not None and _is_public(each, served)]
    if all(_differs(each, pane, served) for each in shown):
        return Part(folders, (pane,), tuple(estimates_of(served, pane)) if estimating else (), ids, Proof.DISJOINT)
    # Who has the published pane would see the few reports by which the sum differs from it.
    held = replace(pane, flags=(*pane.flags, Flag.FEW_MORE))
    largest = max(shown, key=lambda each: each.n)
    estimates = next(each.estimates for each in (one, other) if each.published is largest)
    return Part(folders, (held, largest), estimates, ids, Proof.DISJOINT)


def _sealed(parts: Sequence[PaneHeader], served: ServedCollection, *, late: bool) -> Statistic:
    counted = [part for part in parts if isinstance(part, Statistic) and part.n]
    cells = np.sum([part.cells for part in counted], axis=0) if counted else None
    accounting = [part.accounting for part in parts]
    try:
        total = without_late(*accounting) if late else summed_accounting(accounting)
    except ValueError as error:
        raise UnprovedError(f"{error}; {_TOGETHER}") from error
    window = WindowSum(cells, total, summed_signals([part.signals for part in parts]))
    (p_values,) = p_values_of(served.protocol.decoder, [window])
    kind = max((part.pane.kind for part in parts), key=["early", "on_time", "late"].index)
    fired = Pane(kind, 1 + max(part.pane.revision for part in parts))
    pane = seal(served, window, parts[0].window_start, parts[0].window_end, fired, p_values)
    kept = [flag for flag in _KEPT if any(flag in part.flags for part in parts)]
    kept += [flag for flag in _OF_ALL if all(flag in part.flags for part in parts)]
    return replace(pane, flags=tuple(dict.fromkeys((*pane.flags, *kept))))


def _is_public(pane: PaneHeader, served: ServedCollection) -> bool:
    return isinstance(pane, Statistic) and not withheld(served.spec.limits, pane.flags)


def _differs(before: PaneHeader, after: Statistic, served: ServedCollection) -> bool:
    """Return whether each published table of a pane has enough reports more in a later one."""
    assert isinstance(before, Statistic)
    decoder, least = served.protocol.decoder, served.spec.limits.min_reports
    shown, now = (decoder.reports(pane.cells, pane.n) if pane.n else () for pane in (before, after))
    return differs(public(shown, least), now, least, or_equals=True)

"""Totals over windows, with each report once, also where windows overlap."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace

from uldp.schemas.pane import Accounting, PaneHeader


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

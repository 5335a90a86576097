"""Totals over windows, with each report once, also where windows overlap."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace

from uldp.schemas.pane import Accounting, PaneHeader


def total_accounting(panes: Iterable[PaneHeader]) -> Accounting:
    """Return the accounting of the reports in the panes of one collection and version, each report once.

    Fixed windows do not overlap, and the total is the sum of all. Sliding windows do. Panes of windows that do not
    overlap have no report in common, so the sum of them is never more than the total; and windows a size apart cover
    all times, so if these have fired, their sum is the total. The function returns the largest of all sums of windows
    that do not overlap. So a window that has not fired yet, or whose file is damaged, is passed by where others cover
    its times.

    The messages that are missing are left out: windows that were open at the same time all have them.

    Args:
        panes: At most one pane of each window.
    """
    ordered = sorted(panes, key=lambda pane: (pane.window_end, pane.window_start))
    ends = [pane.window_end for pane in ordered]
    largest = [Accounting()]  # of the first k windows
    for k, pane in enumerate(ordered):
        before = largest[bisect_right(ends, pane.window_start, hi=k)]
        with_pane = before + replace(pane.accounting, missing=0)
        largest.append(max(largest[k], with_pane, key=lambda total: total.received))
    return largest[-1]

"""Mark the windows that a job did not finish, when it ends."""

from pathlib import Path

from uldp.pipelines.results.catalog import Catalog
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.panes import PANES
from uldp.schemas.pane import PaneKind
from uldp.transforms.io.local.journal import JOURNAL, LeftOpen, append_entries


def mark_open_windows(out: Path) -> int:
    """Say in the journal which windows have no on-time pane although their job has ended; return their number.

    Readers give the early panes of such a window the flag ``incomplete``, until the job runs again and writes a pane of
    it. Panes that count no report have no estimate, and are left out.
    """
    panes = newest(entry.header for entry in Catalog.read(out, (PANES,), _pass_over).entries(PANES))
    left = [pane for pane in panes if pane.n and pane.pane.kind is PaneKind.EARLY]
    if left:
        append_entries(out / JOURNAL, (LeftOpen(*pane.key, pane.accounting.existed) for pane in left))
    return len(left)


def _pass_over(damage: ResultsError) -> None:
    """Ignore a damaged file: readers of the results report damage, and hide its windows."""

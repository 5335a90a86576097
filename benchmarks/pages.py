"""What a page takes to make, in seconds of the processor, and its bytes.

    python -m benchmarks.pages

The long page is of a year of hours of 10 values, 8,760 windows; the wide one of nine windows of 12,800 values. Counts
are drawn by the law of randomized response. Imports are not in the figures: those of matplotlib take a second. How soon
a browser has the long page is asserted in ``tests/browser``.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.options import read_options
from benchmarks.rows import Row, alone, clock, print_table
from uldp.collector.collections import serve
from uldp.collector.estimating import estimates_of
from uldp.schemas.pane import Accounting, Pane, PaneKind
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.results.pane_files import ESTIMATES, STATISTICS
from uldp.transforms.io.results.panes import PaneFiling

HOUR = 3_600_000
#: 2026-01-01T00:00:00Z in milliseconds.
START = 1_767_225_600_000
#: By page: windows, values, reports of a window, and epsilon.
PAGES = {"a year of hours, 10 values": (8_760, 10, 150, 1.0), "9 windows, 12,800 values": (9, 12_800, 1_000_000, 6.0)}


def write_results(out: Path, windows: int, size: int, n: int, epsilon: float) -> None:
    """Write results of randomized response, in the files of a backfill."""
    text = f"""collection: measured
version: 1
domain: {{size: {size}}}
mechanism: {{name: rr, epsilon: {epsilon}}}
window: {{size: 1h}}
limits: {{min_reports: 20}}
"""
    (out / "specs/measured-v1").mkdir(parents=True)
    (out / "specs/measured-v1/spec.yaml").write_text(text, encoding="utf-8")
    (served,) = serve([CollectionSpec.load(out / "specs/measured-v1/spec.yaml")]).values()
    truth = np.arange(size, 0, -1) / np.arange(1, size + 1).sum()
    p = np.exp(epsilon) / (np.exp(epsilon) + size - 1)
    cells = np.random.default_rng(1).multinomial(n, (1 - p) / (size - 1) * (1 - truth) + p * truth, size=windows)
    counts, estimates = PaneFiling(STATISTICS), PaneFiling(ESTIMATES)
    for window in range(windows):
        start = START + window * HOUR
        accounting, pane = Accounting(n, n), Pane(PaneKind.ON_TIME, 0)
        digest = served.spec.device_digest
        statistic = Statistic("measured", 1, digest, start, start + HOUR, pane, accounting, cells=cells[window])
        files = [*counts.add(statistic)]
        for estimate in estimates_of(served, statistic):
            files += estimates.add(estimate)
        for name, content in files:
            write_file(str(out / name), content)
    for name, content in (*counts.rest(), *estimates.rest()):
        write_file(str(out / name), content)


def make_page(out: Path, target: Path) -> float:
    """Write the page of results; returns the seconds of the processor."""
    import jinja2  # noqa: F401 (its import is not in the figure)
    import matplotlib.figure  # noqa: F401

    from uldp.pipelines.report.page import report_page, write_page
    from uldp.pipelines.results.folder import ResultsFolder

    began = clock()
    write_page(report_page(ResultsFolder(out), made=START), target)
    return clock() - began


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Make each page in a process of its own; ``quick`` makes pages of few windows."""
    for label, (windows, size, n, epsilon) in PAGES.items():
        with tempfile.TemporaryDirectory() as name:
            out, target = Path(name) / "results", Path(name) / "page.html"
            write_results(out, min(windows, 3) if quick else windows, size, n, epsilon)
            seconds, megabytes = alone(make_page, out, target)
            remark = f"{target.stat().st_size / 1e6:.2f} MB"
            yield Row("pages", label, 1, seconds, megabytes=megabytes, remark=remark)


if __name__ == "__main__":
    read_options(__doc__)
    print_table(rows())

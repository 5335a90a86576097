"""The page of a long history: few bytes, all windows in the lines, and sums of counts where windows are too many."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, START

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
from tests.pipelines.report.test_lines_over_time import over_time
from tests.pipelines.report.test_page import ends_of, page
from tests.read_page import Page
from uldp.collector.collections import ServedCollection, serve
from uldp.collector.estimating import estimates_of, tables_of
from uldp.pipelines.report.chapters import NAMED, SHOWN
from uldp.pipelines.report.points import MOST
from uldp.schemas.errors import RequestError
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.results.pane_files import ESTIMATES, STATISTICS
from uldp.transforms.io.results.panes import PaneFiling

LABELS = ["home", "work", "travel", "weather service station", "mail", "maps", "music", "games", "news", "other"]
SPEC = build.MINIMAL | {
    "collection": "hours",
    "domain": {"labels": LABELS},
    "mechanism": {"name": "rr", "epsilon": 1.0},
    "window": {"size": "1h"},
    "limits": {"min_reports": 20},
}
TRUTH = np.arange(10, 0, -1) / 55
N = 150


@cache
def served() -> ServedCollection:
    return next(iter(serve([CollectionSpec.parse(SPEC)]).values()))


def statistics(windows: int) -> Iterator[Statistic]:
    """Counts of windows of an hour, by the formulas of randomized response."""
    rng = np.random.default_rng(3)
    odds = np.exp(1.0)
    p, q = odds / (odds + 9), 1 / (odds + 9)
    for window, cells in enumerate(rng.multinomial(N, q + (p - q) * TRUTH, size=windows)):
        accounting = Accounting(N + 4, N, 1, 2, 1)
        yield build.pane(
            cells,
            start=START + window * HOUR,
            key=("hours", 1),
            accounting=accounting,
            device_digest=served().spec.device_digest,
            flags=("rejected_ratio",) if window % 500 == 7 else (),
        )


def save(out: Path, windows: int) -> list[Estimate]:
    """Write results of so many hours, in the files of a backfill; return its estimates."""
    (out / "specs/hours-v1").mkdir(parents=True)
    (out / "specs/hours-v1/spec.yaml").write_text(json.dumps(SPEC))  # JSON is YAML
    counts, estimates, all_estimates = PaneFiling(STATISTICS), PaneFiling(ESTIMATES), []
    for statistic in statistics(windows):
        files = [*counts.add(statistic)]
        for estimate in estimates_of(served(), statistic):
            all_estimates.append(estimate)
            files += estimates.add(estimate)
        for name, content in files:
            write_file(str(out / name), content)
    for name, content in (*counts.rest(), *estimates.rest()):
        write_file(str(out / name), content)
    return all_estimates


def check(html: Page, windows: int) -> None:
    """Each window has a place in the lines, a line in the table, or a table of values, and the page says which."""
    assert html.count("article") == min(windows, SHOWN)
    assert html.words.count(" on time 150 ") == min(windows, NAMED)
    assert f"{150 * windows:,} in {windows:,} windows" in html.words
    if windows > NAMED:
        assert f"{windows - NAMED:,} earlier windows have no line above, only a place in the charts." in html.words


def test_all_windows_of_a_month_are_on_the_page(tmp_path: Path) -> None:
    out = tmp_path / "results"
    save(out, 30 * 24)
    html = page(out)
    check(html, 30 * 24)
    assert "auto, the sum of each day, in UTC." in html.words
    assert (out.parent / "report.html").stat().st_size < 600_000


def test_a_point_of_a_day_is_estimated_from_the_sum_of_its_counts(tmp_path: Path) -> None:
    """The mean of the rows of ``auto`` is another number."""
    out = tmp_path / "results"
    hours = save(out, MOST + 8)
    day = [
        each
        for each in statistics(MOST + 8)
        if each.window_start // (24 * HOUR) == hours[-1].window_start // (24 * HOUR)
    ]
    total = build.pane(sum(each.cells for each in day), key=("hours", 1), device_digest=day[0].device_digest)
    share = tables_of(served().protocol.decoder, served().spec, total, "auto")[0]
    low, high = ends_of(share)
    expected = f"home {100 * share.values[0]:.1f}, {100 * low[0]:.1f} to {100 * high[0]:.1f} %"
    assert expected in page(out).words
    means = np.mean([build.shares_of(each).values[0] for each in hours[-len(day) :]])
    assert f"{100 * means:.1f}" != f"{100 * share.values[0]:.1f}"


def test_windows_can_be_summed_by_week_if_asked_and_a_chosen_value_has_a_line(tmp_path: Path) -> None:
    out = tmp_path / "results"
    save(out, 200)
    assert "the sum of each ISO week, in UTC" in page(out, every="1w").words
    assert "auto, each window." in page(out).words
    assert "other " not in over_time(page(out))
    assert "other " in over_time(page(out, values=["other"]))


def test_a_value_that_nobody_collects_has_no_line(tmp_path: Path) -> None:
    out = tmp_path / "results"
    save(out, 3)
    with pytest.raises(RequestError, match=r"no collection has a value 'hoem'; did you mean 'home'\?"):
        page(out, values=["hoem"])


def test_sums_need_counts(tmp_path: Path) -> None:
    out = tmp_path / "results"
    save(out, 3)
    for file in out.glob("counts/**/*.avro"):
        file.unlink()
    with pytest.raises(RequestError, match=r"hours v1: 3 windows lack their counts.*; copy the folder counts beside"):
        page(out, every="1d")

"""The lines over time, of a version and of all: what they say about clocks and about what was not counted."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests import build
from tests.pipelines.report.test_page import page, rr_fired, rr_spec, save
from tests.pipelines.results.test_pooled import RR, pooled_in, version
from tests.pipelines.results.test_pooled import save as save_counts
from tests.read_page import Page
from uldp.pipelines.results.tables import decimals, percent
from uldp.schemas.pane import Signals
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import TableName

#: 99 % of 100 reports are 4 to 8 s old, or less than a second, or 34 minutes or more ahead.
LATE, ON_TIME, AHEAD = Signals(past=(98, 0, 0, 2)), Signals(past=(100,)), Signals(early=(0,) * 11 + (1,))


def over_time(html: Page) -> str:
    """The words of the table of lines."""
    return html.words.partition("Quantity")[2].partition("Window, UTC")[0]


def of_windows(out: Path, *signals: Signals, missing: int = 0) -> Page:
    fired = [rr_fired(rr_spec(), window=window).but(signals=each) for window, each in enumerate(signals)]
    lost = replace(fired[0].statistic.accounting, missing=missing)
    save(out, rr_spec(), fired[0].but(accounting=lost), *fired[1:])
    return page(out)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results"


def test_a_line_goes_from_the_start_of_the_first_window_to_the_end_of_the_last(out: Path) -> None:
    html = of_windows(out, ON_TIME, ON_TIME)
    reports = [d for d in html.all("d") if d.startswith("M0 ") and "Z" not in d][-1]
    assert reports == "M0 0L250 0L750 0L1000 0"


@pytest.mark.parametrize(
    ("signals", "line"),
    [
        (LATE, "past, 99 % less than 8s less than 1s to less than 8s "),
        (AHEAD, "early, 99 % less than 35m less than 1s to less than 35m "),
        (ON_TIME, ""),
    ],
)
def test_clocks_have_a_line_of_the_bound_that_99_percent_keep_if_any_is_wrong(
    signals: Signals, line: str, out: Path
) -> None:
    _, *lines = over_time(of_windows(out, ON_TIME, signals)).split("clocks ")
    assert len(lines) == bool(line)
    assert all(each.startswith(line) for each in lines)


def test_each_window_says_how_its_clocks_are(out: Path) -> None:
    assert "Clocks past: 100 reports, half by less than 1s, 99 % by less than 8s." in of_windows(out, LATE).words


def test_clocks_of_a_day_are_those_of_all_its_reports(out: Path) -> None:
    """Two of 500 are old on the first day, and two of 100 on the second."""
    fired = [rr_fired(rr_spec(), window=window).but(signals=ON_TIME) for window in range(4)]
    last = [rr_fired(rr_spec(), window=window).but(signals=LATE) for window in (5, 24)]
    save(out, rr_spec(), *fired, *last)
    html = page(out, every="1d")
    assert "clocks past, 99 % less than 8s less than 1s to less than 8s" in over_time(html)
    assert "M0 100L250 100L750 0L1000 0" in html.all("d")


def test_messages_that_the_source_lost_have_a_line(out: Path) -> None:
    words = over_time(of_windows(out, ON_TIME, ON_TIME, missing=20_060 // 9))
    assert "missing, at most 0.00 % 0.00 to 10.00 %" in words


OLD, NEW = [200, 150, 100], [60, 30, 20]


def with_specs(out: Path, **keys: object) -> tuple[CollectionSpec, CollectionSpec]:
    """Write the specs of two versions, of which the second has further keys."""
    for number, epsilon, more in ((1, 1.0, {}), (2, 3.0, keys)):
        spec = build.MINIMAL | RR | {"version": number, "mechanism": {"name": "rr", "epsilon": epsilon}} | more
        (folder := out / f"specs/c-v{number}").mkdir(parents=True)
        (folder / "spec.yaml").write_text(json.dumps(spec))  # JSON is YAML
    return version(1), version(2, 3.0, **keys)


def test_a_point_of_all_versions_is_their_pooled_estimate(out: Path, tmp_path: Path) -> None:
    """Reports of both versions on one day, and the pooled estimate of one window that has them all."""
    old, new = with_specs(out)
    save_counts(out, old, OLD, window=0)
    save_counts(out, new, NEW, window=1)
    for spec, cells in ((old, OLD), (new, NEW)):
        save_counts(tmp_path / "one", spec, cells)
    (pooled,), _ = pooled_in(tmp_path / "one", old, new)
    share = pooled.estimate.table(TableName.SHARE)
    assert share is not None
    assert share.low is not None
    assert share.high is not None
    places = decimals(share.stderr[:1])
    figures = [percent(float(each[0]), places) for each in (share.values, share.low, share.high)]
    words = page(out, every="1d").words
    assert f"red {figures[0]}, {figures[1]} to {figures[2]} %" in words
    assert "All versions together, pooled where several have reports, the sum of each day, in UTC." in words
    assert words.index("All versions over time") < words.rindex("c version 1")


def test_lines_go_on_from_version_to_version(out: Path) -> None:
    old, new = with_specs(out)
    for window, counted in enumerate([(old,), (old, new), (new,)]):
        for spec in counted:
            save_counts(out, spec, OLD if spec is old else NEW, window=window)
    words = page(out).words
    together = words.partition("All versions over time")[2].partition("This version over time")[0]
    assert "reports 110 0 to 560" in together


def test_messages_that_the_stream_lost_are_not_added_over_versions(out: Path) -> None:
    old, new = with_specs(out)
    save_counts(out, old, OLD, missing=7)
    save_counts(out, new, NEW, missing=9)
    missing = 9 / (sum(OLD) + 3 + sum(NEW) + 3 + 9)
    assert f"missing, at most {percent(missing, 2)} %" in page(out).words


def test_versions_that_cannot_be_pooled_have_lines_of_their_own_alone(out: Path) -> None:
    old, new = with_specs(out, domain={"labels": ["red", "green", "pink"]})
    for window in (0, 1):
        save_counts(out, old, OLD, window=window)
        save_counts(out, new, NEW, window=window)
    words = page(out).words
    assert "All versions" not in words
    assert words.count("Over time") == 2

"""The lines over time: where they begin and end, and what they say about clocks and about what was not counted."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.pipelines.report.test_page import page, rr_fired, rr_spec, save
from tests.read_page import Page
from uldp.schemas.pane import Signals

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

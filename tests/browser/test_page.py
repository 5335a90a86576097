"""The page in a browser: quick, without errors, for every width and every reader, and where each part is.

A picture of the page depends on the fonts of a machine. So the tests compare no pixels: ``places.json`` has the left
edge and the width of each part in percent of the window, which follow from the page's rules.
"""

import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.browser.axe import violations
from tests.browser.chromium import Chromium, texts
from tests.browser.places import KEPT, differences, places

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("browser")]

PAGES = ("year", "manhattan", "kinds")
WIDTHS = (400, 800, 1300)
_OPEN_ALL = "document.querySelectorAll('details').forEach(each => each.open = true)"


@pytest.fixture(params=PAGES)
def shown(request: pytest.FixtureRequest, pages: dict[str, Path]) -> Path:
    return pages[request.param]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_that_keeps_readers_out(browser: Chromium, shown: Path, width: int, dark: bool) -> None:
    browser.open(shown, width, dark=dark)
    browser.run(_OPEN_ALL)
    assert violations(browser) == []
    assert browser.complaints() == []


def test_axe_finds_what_is_wrong(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["kinds"])
    browser.run(f"{_OPEN_ALL}; document.querySelector('figure svg').removeAttribute('aria-label'); document.title = ''")
    assert [each.partition(":")[0] for each in violations(browser)] == ["document-title", "svg-img-alt"]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_document_scrolls_in_one_direction_alone(browser: Chromium, shown: Path, width: int) -> None:
    browser.open(shown, width)
    browser.run(_OPEN_ALL)
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_no_table_is_cut_in_a_narrow_window_but_matrices(browser: Chromium, shown: Path) -> None:
    """What is wider than the window scrolls, and a reader does not see that there is more."""
    browser.open(shown, 400)
    browser.run(_OPEN_ALL)
    assert set(browser.run(_SCROLLED)) <= {"matrix"}


#: The classes of the tables of which a part is out of sight.
_SCROLLED = """Array.from(document.querySelectorAll('.wide'))
  .filter(each => each.scrollWidth > each.clientWidth).map(each => each.firstElementChild.className)"""


def test_a_year_of_hours_is_there_within_a_second(browser: Chromium, pages: dict[str, Path]) -> None:
    """The best of three, because other programs of the machine take its cores too."""
    assert pages["year"].stat().st_size <= 2_000_000
    loads, sorts = [], []
    for _ in range(3):
        browser.open(pages["year"])
        loads.append(browser.run("performance.getEntriesByType('navigation')[0].loadEventEnd"))
        sorts.append(browser.run(_SORTED))
    assert 0 < min(loads) <= 1_000
    assert 0 < min(sorts) <= 1_000


#: Milliseconds from a click on a heading of the table of windows until the page has drawn it.
_SORTED = """new Promise(done => {
  const began = performance.now();
  document.querySelector('table.sortable button').click();
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
})"""


@pytest.mark.parametrize("width", WIDTHS)
def test_each_part_of_the_page_is_where_it_was(browser: Chromium, pages: dict[str, Path], width: int) -> None:
    for name in ("manhattan", "kinds"):
        browser.open(pages[name], width)
        assert differences(places(browser), KEPT[f"{name}-{width}"]) == []


def test_a_reader_with_a_keyboard_sorts_a_table_and_opens_a_window(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["manhattan"])
    seen: dict[str, Any] = {}
    for _ in range(60):
        browser.press("Tab")
        where = browser.run("document.activeElement.closest('button, summary, .wide, a')?.tagName")
        if where == "BUTTON" and "sorted" not in seen:
            browser.press("Enter")
            seen["sorted"] = browser.run("document.activeElement.parentNode.getAttribute('aria-sort')")
        if where == "SUMMARY" and "opened" not in seen:
            before = browser.run("document.activeElement.parentNode.open")
            browser.press("Enter")
            seen["opened"] = browser.run("document.activeElement.parentNode.open") != before
    assert seen == {"sorted": "ascending", "opened": True}


def test_a_link_to_a_window_opens_it(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["manhattan"])
    closed = browser.run("document.querySelector('details:not([open]) h3').id")
    browser.open(pages["manhattan"], fragment=f"#{closed}")
    assert browser.run(f"document.getElementById({closed!r}).closest('details').open")


def test_a_search_leaves_the_values_that_match(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["manhattan"])
    browser.run(_OPEN_ALL)
    search = "document.querySelector('input[type=search]')"
    browser.run(f"{search}.value = '36'; {search}.dispatchEvent(new Event('input'))")
    found = texts(browser, "table.searchable tbody tr:not([hidden]) th")
    assert sorted(found, key=int) == [str(i) for i in range(625) if "36" in str(i)]


def test_a_printed_page_has_no_empty_sheet(browser: Chromium, shown: Path) -> None:
    browser.open(shown)
    sheets = _sheets(browser.printed())
    assert len(sheets) > 1
    assert all(runs > 100 for runs in sheets[:-1]), sheets
    assert sheets[-1] > 0


def _sheets(pdf: bytes) -> list[int]:
    """The number of runs of text on each sheet, by the operators of its content."""
    contents = [int(number) for number in re.findall(rb"/Type /Page\n.*?/Contents (\d+) 0 R", pdf, re.DOTALL)]
    streams = {
        int(number): data
        for number, data in re.findall(rb"\n(\d+) 0 obj\n<<[^>]*>> stream\n(.*?)\nendstream", pdf, re.DOTALL)
    }
    return [len(re.findall(rb"T[jJ]\b", zlib.decompress(streams[number]))) for number in contents]

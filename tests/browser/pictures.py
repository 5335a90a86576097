"""The pictures of docs/estimates/page.md: ``python -m tests.browser.pictures`` writes them from pages of the tests."""

import tempfile
from pathlib import Path

from tests.browser.chromium import Chromium
from tests.browser.pages import every_kind, manhattan, year

_FOLDER = Path(__file__).parents[2] / "docs" / "images"
_MAKERS = {"manhattan": manhattan, "kinds": every_kind, "year": year}
#: By file: the page, and the part of it.
_PICTURES = {
    "collections": ("kinds", "table.sortable"),
    "manhattan": ("manhattan", "figure.maps"),
    "largest": ("manhattan", "table.largest"),
    "over-time": ("year", "table.lines"),
    "curve": ("kinds", "section[aria-labelledby=ages-v1] figure.distribution"),
    "rankings": ("kinds", "table.matrix"),
    "record": ("kinds", "section.card"),
}
_WIDTH, _SCALE = 1000, 0.8


def _write() -> None:
    with tempfile.TemporaryDirectory() as folder, Chromium(Path(folder)) as browser:
        pages = {}
        for name, make in _MAKERS.items():
            (part := Path(folder) / name).mkdir()
            pages[name] = make(part)
        for file, (name, selector) in _PICTURES.items():
            browser.open(pages[name], _WIDTH)
            (_FOLDER / f"{file}.png").write_bytes(browser.picture(selector, _SCALE))


if __name__ == "__main__":
    _write()

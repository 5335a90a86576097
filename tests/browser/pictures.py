"""The pictures of docs/estimates/page.md: ``python -m tests.browser.pictures`` writes them from pages of the tests."""

import tempfile
from pathlib import Path

from tests.browser.chromium import Chromium
from tests.browser.pages import made

_FOLDER = Path(__file__).parents[2] / "docs" / "images"
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
        (Path(folder) / "pages").mkdir()
        pages = made(Path(folder) / "pages")
        for file, (name, selector) in _PICTURES.items():
            browser.open(pages[name], _WIDTH)
            (_FOLDER / f"{file}.png").write_bytes(browser.picture(selector, _SCALE))


if __name__ == "__main__":
    _write()

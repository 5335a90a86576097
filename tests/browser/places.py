"""Where the parts of a page are: ``python -m tests.browser.places`` writes ``places.json``, which the tests compare."""

import json
import tempfile
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from tests.browser.chromium import Chromium

_FILE = Path(__file__).with_name("places.json")
#: A part may be so many percents of the window beside its place: fonts have other widths, and columns follow them.
_NEAR = 3

#: A part: what it is, its left edge and its width.
Place = tuple[str, int, int]
KEPT: dict[str, list[Place]] = {
    name: [(what, left, width) for what, left, width in parts] for name, parts in json.loads(_FILE.read_text()).items()
}

_SCRIPT = """Array.from(document.querySelectorAll('h1, h2, h3, .facts, .guarantee, table, figure, input, nav'))
  .filter(each => each.checkVisibility())
  .map(each => [each, each.getBoundingClientRect()])
  .map(([each, box]) => [[each.tagName.toLowerCase(), ...each.classList].join('.'),
    Math.round(100 * box.left / innerWidth), Math.round(100 * box.width / innerWidth)])"""


def places(browser: Chromium) -> list[Place]:
    """Return the parts of the open page in their order."""
    return [(what, left, width) for what, left, width in browser.run(_SCRIPT)]


def differences(found: Sequence[Place], kept: Sequence[Place]) -> list[tuple[Place | None, Place | None]]:
    """Return the parts that are elsewhere, each with its place before; None for one that is there once only."""
    return [
        (now, before)
        for now, before in zip_longest(found, kept)
        if now is None
        or before is None
        or now[0] != before[0]
        or max(abs(now[1] - before[1]), abs(now[2] - before[2])) > _NEAR
    ]


def _write() -> None:
    from tests.browser.pages import made

    found = {}
    with tempfile.TemporaryDirectory() as folder, Chromium(Path(folder)) as browser:
        (Path(folder) / "pages").mkdir()
        for name, page in made(Path(folder) / "pages", "manhattan", "kinds").items():
            for width in (400, 800, 1300):
                browser.open(page, width)
                found[f"{name}-{width}"] = places(browser)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(parts)}" for name, parts in found.items())
    _FILE.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    _write()

"""One browser, and the pages that it opens. Without Chromium or npm, the tests are left out, and say so."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
from tests.browser.chromium import PROGRAM, Chromium
from tests.browser.pages import made


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    if PROGRAM is None or shutil.which("npm") is None:
        pytest.skip("needs Chromium and npm: apt-get install chromium npm")
    with Chromium(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of a year of hours, that of the demonstration, and one with every kind of domain."""
    return made(tmp_path_factory.mktemp("pages"))

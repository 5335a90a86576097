"""What tests download is kept by what it follows from, whole, and fetched by one of those who want it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from tests import downloads
from tests.downloads import Fill, kept


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "CACHE", tmp_path / "cache")


def write(text: str) -> Fill:
    """Return what adds a text to a folder's content."""

    def fill(folder: Path) -> None:
        with (folder / "content").open("a", encoding="utf-8") as file:
            file.write(text)

    return fill


def content(folder: Path) -> str:
    return (folder / "content").read_text(encoding="utf-8")


def test_the_same_key_is_filled_once() -> None:
    first, again = kept("jars", "pom", write("a")), kept("jars", "pom", write("b"))
    assert first == again
    assert content(again) == "a"


@pytest.mark.parametrize(("name", "key"), [("jars", "newer pom"), ("others", "pom")])
def test_another_key_has_another_folder(name: str, key: str) -> None:
    first, other = kept("jars", "pom", write("a")), kept(name, key, write("b"))
    assert (content(first), content(other)) == ("a", "b")


def test_what_was_not_filled_to_the_end_is_filled_anew() -> None:
    def break_off(folder: Path) -> None:
        write("half")(folder)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        kept("jars", "pom", break_off)
    assert content(kept("jars", "pom", write("a"))) == "a"


def test_one_fills_and_others_wait() -> None:
    together = Barrier(2)

    def want(text: str) -> str:
        together.wait()
        return content(kept("jars", "pom", write(text)))

    with ThreadPoolExecutor() as threads:
        found = set(threads.map(want, "ab"))
    assert found in ({"a"}, {"b"})

"""The demonstration makes its directory anew, and touches no other."""

import _thread
from pathlib import Path

import pytest

from uldp.pipelines.demo import run_demo
from uldp.schemas.errors import RequestError


def demonstrate(out: Path) -> list[str]:
    said: list[str] = []
    run_demo(out, users=1000, speed=1e6, say=said.append, interrupt=_thread.interrupt_main)
    return said


@pytest.mark.parametrize("name", ["results/mine.txt", "stream/mine.txt", "mine.txt"])
def test_what_it_did_not_make_stays(name: str, tmp_path: Path) -> None:
    mine = tmp_path / "demo" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine", encoding="utf-8")
    with pytest.raises(RequestError, match="demo: holds files that uldp demo did not create; choose another --out"):
        demonstrate(tmp_path / "demo")
    assert [path for path in (tmp_path / "demo").rglob("*") if path.is_file()] == [mine]


@pytest.mark.slow
def test_what_it_made_it_makes_anew(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    for _ in range(2):
        last = demonstrate(tmp_path / "demo")[-1]
        assert last == f"report with the estimates and the truth: {tmp_path / 'demo' / 'report.html'}"

"""The nightly changes of lines: the date chooses them, and each has the tests that run its line."""

import ast
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="only `make mutants` installs it")
pytest.importorskip("coverage", reason="only `make mutants` installs it")

from mutants.__main__ import ROOMS
from mutants.changes import chosen, statement
from mutants.explained import FILE, explained
from mutants.runs import Covering, forked

ROOT = Path(__file__).parents[2]
MODULE = """
LIMIT = 5


@cache
def total(numbers: list[int | None]) -> int:
    return sum(
        number
        + 1
        for number in numbers
        if number > LIMIT
    )
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "module.py").write_text(MODULE)
    return tmp_path


def test_changes_are_of_lines_that_do_something(root: Path) -> None:
    changes = chosen(root, ["module.py"], 99, "2026-01-01")
    assert {change.before for change in changes} == {"+ 1", "if number > LIMIT"}
    for change in changes:
        assert change.before in MODULE
        assert change.after in change.source
        ast.parse(change.source)


def test_the_date_decides(root: Path) -> None:
    one, again, other = (chosen(root, ["module.py"], 1, date) for date in ("2026-01-01", "2026-01-01", "2026-01-04"))
    assert one == again
    assert one != other


@pytest.mark.parametrize(("line", "lines"), [(2, range(2, 3)), (6, range(6, 7)), (9, range(7, 13)), (12, range(7, 13))])
def test_a_statement_has_the_lines_above_its_body(line: int, lines: range) -> None:
    assert statement(MODULE, line) == lines


def test_tests_of_the_line_come_first_and_the_quickest_of_them() -> None:
    covering = Covering(
        {"slow": 9.0, "quick": 1.0, "module": 0.5, "other": 0.1},
        {"module.py": {3: ["slow", "quick"], 9: ["module"]}, "other.py": {3: ["other"]}},
    )
    assert covering.tests("module.py", range(3, 4), 99) == ["quick", "slow", "module"]
    assert covering.tests("module.py", range(3, 4), 5) == ["quick"]
    assert covering.tests("constants.py", range(3, 4), 1) == ["other", "module"]


@pytest.mark.parametrize("code", [0, 1])
def test_a_run_has_its_exit_code(tmp_path: Path, code: int) -> None:
    assert forked(lambda: code, tmp_path / "log", 60) == code


def test_a_run_that_does_not_end_is_ended(tmp_path: Path) -> None:
    def endless() -> int:
        while True:
            pass

    assert forked(endless, tmp_path / "log", 0.1) is None


def test_each_explained_change_is_of_a_line_that_is_there() -> None:
    files = {file for room in ROOMS.values() for file in room.files()}
    for (file, before, after), reason in explained(FILE.read_text(encoding="utf-8")).items():
        assert file in files
        assert before != after
        assert before in " ".join((ROOT / file).read_text(encoding="utf-8").split())
        assert reason.endswith(".")

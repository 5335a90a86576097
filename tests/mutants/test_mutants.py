"""The nightly changes of lines: the date chooses them, and each has the tests that run its line."""

import ast
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("cosmic_ray", reason="only `make mutants` installs it")
pytest.importorskip("coverage", reason="only `make mutants` installs it")

from tests.mutants.changes import changes, chosen, places, statement
from tests.mutants.explained import FILE, entry, explained
from tests.mutants.runs import Covering, forked

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
    found = chosen(root, ["module.py"], 99, "2026-01-01")
    assert {change.before for change in found} == {"+ 1", "if number > LIMIT"}
    for change in found:
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


def test_a_run_that_does_not_end_is_ended(tmp_path: Path) -> None:
    def endless() -> int:
        while True:
            pass

    assert forked(endless, tmp_path / "log", 0.1) is None


@pytest.mark.slow
def test_each_explained_change_is_one_that_can_be_made() -> None:
    reasons = explained(FILE.read_text(encoding="utf-8"))
    made = {
        entry(change)
        for file in {file for file, _, _ in reasons}
        for place in places(ROOT / file)
        if any((ROOT / file).read_text(encoding="utf-8").splitlines()[place[0] - 1].strip() in of for of in reasons)
        for change in changes(ROOT, file, place, Random(1))
    }
    assert set(reasons) <= made
    assert all(reason.endswith(".") for reason in reasons.values())

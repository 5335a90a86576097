"""The rules of docs/choosing.md hold for what ``uldp advise`` ranks: at the worst points of a grid, and at others."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks import advice
from benchmarks.advice import Point, expected_errors

PAGE = (Path(__file__).parents[2] / "docs" / "choosing.md").read_text(encoding="utf-8")
RULES = re.findall(r"^\| ((?:all|v of k)[^|]*) \| `([\w-]+)`[^|]*\| (\d+) %", PAGE, re.MULTILINE)
#: Points of the grid where the mechanism of each rule is the farthest from the best, and others: k, v, epsilon, users.
POINTS: Mapping[str, list[tuple[int, int | None, float, int]]] = {
    "v of k values are sensitive, E > 3v": [(400, 40, 5, 10**6), (20, 18, 5, 10**4), (400, 40, 8, 10**4)],
    "v of k values are sensitive, E ≤ 3v, ε ≤ 4": [(20, 10, 2, 10**4), (2000, 200, 3, 10**4), (100, 90, 4, 10**6)],
    "v of k values are sensitive, E ≤ 3v, ε > 4": [(2000, 200, 5, 10**4), (2000, 1800, 8, 10**6)],
    "all are sensitive, E > k/3": [(10, None, 1.5, 10**4), (400, None, 5, 10**6), (3, None, 8, 10**6)],
    "all are sensitive, E ≤ k/3": [(400, None, 0.5, 10**4), (5, None, 0.5, 10**4), (2000, None, 3, 10**6)],
    "all are sensitive, E ≤ k/3, for few bytes": [(5, None, 0.5, 10**4), (10, None, 1, 10**6), (400, None, 3, 10**6)],
    "all are sensitive, k above 100,000": [(100_001, None, 2, 10**6), (200_000, None, 6, 10**4)],
}


@cache
def errors(*point: Any) -> Mapping[str, float]:
    return expected_errors(Point(*point))


def above_the_least(mechanism: str, *point: Any) -> float:
    found = errors(*point)
    return found[mechanism] / min(found.values()) - 1


def test_each_rule_has_points() -> None:
    assert [where for where, _, _ in RULES] == [*POINTS]


@pytest.mark.parametrize(("where", "mechanism", "percent"), RULES, ids=lambda part: part)
def test_a_rule_is_within_its_distance_of_the_best(where: str, mechanism: str, percent: str) -> None:
    for point in POINTS[where]:
        assert above_the_least(mechanism, *point) < int(percent) / 100, point


def test_what_the_page_says_of_other_mechanisms() -> None:
    assert above_the_least("urr", 10_000, 1000, 5, 10**4) == pytest.approx(0.66, abs=0.05)
    assert above_the_least("oue", 10, None, 1, 10**4) == pytest.approx(0.14, abs=0.05)
    assert above_the_least("oue", 5, None, 0.5, 10**4) == pytest.approx(0.26, abs=0.05)
    assert above_the_least("oue", 100, None, 0.5, 10**4) < 0.08
    assert above_the_least("ubd", 2000, 1800, 6, 10**6) == pytest.approx(0.24, abs=0.03)
    assert errors(2000, 200, 3, 10**4)["ubd"] / errors(2000, 200, 3, 10**4)["uhr"] == pytest.approx(1.19, abs=0.03)


def test_the_rules_are_those_of_the_page() -> None:
    written = {(where.removesuffix(", for few bytes"), mechanism) for where, mechanism, _ in RULES}
    named = [rule for point in advice.points() for rule in advice.rules(point)]
    measured = {(where.split(", for few bytes")[0], mechanism) for where, mechanism in named}
    # The page names the mechanism for few bytes in the same row.
    assert measured == written | {("v of k values are sensitive, E ≤ 3v, ε > 4", "ubd")}


def test_the_page_says_how_many_questions_there_are() -> None:
    assert len(list(advice.points())) == 352


def test_each_rule_has_a_row(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [advice.Point(5, None, 0.5, 10_000), advice.Point(20, 18, 5.0, 10_000)]
    monkeypatch.setattr(advice, "points", lambda: asked)
    monkeypatch.setattr("sys.argv", ["advice"])
    advice.main()
    count, _, *table = capsys.readouterr().out.splitlines()
    assert count == "2 questions"
    assert [row.split(" | ")[1] for row in table[2:]] == ["ss", "pgr", "urr"]  # e^5 is above 3 times 18

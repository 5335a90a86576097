"""The rules for choosing a mechanism, on two questions of the grid."""

import pytest

from benchmarks import advice
from tests.pipelines.test_advice_before_a_simulation import RULES


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

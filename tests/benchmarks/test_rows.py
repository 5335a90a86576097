"""Rows of measurements, and the ratios among them."""

import numpy as np
import pytest

from benchmarks.rows import Row, alone, in_turn, markdown, peak_megabytes


def test_a_table_has_a_line_for_each_row_and_nothing_where_nothing_was_measured() -> None:
    rows = [
        Row("graphs", "fast, |X| = 2", 3_000_000, 1.5, naive=20.04, keyed=5.01, limit=0.251, megabytes=200.4),
        Row("estimators", "em", 1, 3.0),
        Row("peers", "theirs", 10, None, remark="not installed"),
    ]
    _, rule, fast, slow, missing = markdown(rows)
    assert fast == r"| graphs | fast, \|X\| = 2 | 3,000,000 | 1.5 | 2,000,000 | 20x | 5.01x | 0.251x | 200 |  |"
    assert slow == "| estimators | em | 1 | 3 | 0.333 |  |  |  |  |  |"
    assert missing == "| peers | theirs | 10 |  |  |  |  |  |  | not installed |"
    assert rule.count("|") == missing.count("|")


def test_calls_alternate_and_the_median_counts() -> None:
    order: list[str] = []
    seconds = {"a": iter([1.0, 9.0, 2.0]), "b": iter([4.0, 3.0, 5.0])}

    def call(name: str) -> float:
        order.append(name)
        return next(seconds[name])

    assert in_turn({"a": lambda: call("a"), "b": lambda: call("b")}, 3) == {"a": 2.0, "b": 4.0}
    assert order == ["a", "b"] * 3


def touch(megabytes: int) -> int:
    return int(np.ones(megabytes * 125_000).sum())


def test_the_peak_of_a_process_is_that_of_its_own_call() -> None:
    held = np.ones(50_000_000)  # 400 MB of this process, which a new one must not begin with
    ones, large = alone(touch, 200)
    _, small = alone(touch, 1)
    assert ones == 200 * 125_000
    assert 180 < large - small < 220
    assert peak_megabytes() > held.nbytes / 1e6 > small


def test_what_a_call_raises_arrives() -> None:
    with pytest.raises(ValueError, match="negative dimensions"):
        alone(touch, -1)

"""What is said of a spec by uldp check, and of all reports of one user together by results and specs."""

from itertools import takewhile
from typing import Any

import pytest

from tests import build
from uldp.collector.collections import serve
from uldp.collector.estimating import estimates_of
from uldp.pipelines.results.json_lines import to_json
from uldp.pipelines.results.text import estimate_text, spec_text
from uldp.schemas.estimate import Estimate
from uldp.schemas.rows import rows

LASTING: dict[str, Any] = {"mechanism": {"name": "urr", "epsilon": 1.0, "lasting_epsilon": 3.0}}
BUDGET: dict[str, Any] = {"budget": {"epsilon": 4, "every": "30d"}}
ADD_UP = "reports of one user add up: t reports spend t times epsilon"
OF_A_VALUE = "one report of a value spends at most epsilon 1, two or more together at most 3; values of one user add up"
OF_A_USER = "devices refuse reports with which a user would spend more than epsilon 4 every 30d, over all collections"


def estimate(**keys: Any) -> Estimate:
    spec = build.spec(limits={"min_reports": 1}, **keys)
    (found,) = estimates_of(serve([spec])[spec.key], build.pane([3, 2, 1, 0, 0]))
    return found


@pytest.mark.parametrize(
    ("keys", "lasting", "budget", "lines"),
    [
        ({}, None, None, {ADD_UP}),
        (LASTING, 3.0, None, {OF_A_VALUE}),
        (BUDGET, None, {"epsilon": 4.0, "every_ms": 30 * 24 * build.HOUR}, {OF_A_USER}),
        (LASTING | BUDGET, 3.0, {"epsilon": 4.0, "every_ms": 30 * 24 * build.HOUR}, {OF_A_VALUE, OF_A_USER}),
        ({"mechanism": {"name": "identity"}}, None, None, set()),
    ],
)
def test_an_estimate_states_the_guarantee_over_time(
    keys: dict[str, Any], lasting: float | None, budget: dict[str, float] | None, lines: set[str]
) -> None:
    found = estimate(**keys)
    line = to_json(found, None, build.spec(**keys))
    assert (line["lasting_epsilon"], line["budget"]) == (lasting, budget)
    assert Estimate.from_avro(found.to_avro()) == found
    text = {each.strip() for each in estimate_text(found, build.spec(**keys)).splitlines()}
    assert text & {ADD_UP, OF_A_VALUE, OF_A_USER} == lines


# Against those who see only the tables.

ONLY = (
    "  whoever sees only these tables, with ids, times and senders dropped by a trusted party, is given, in this window"
)
CELLS = [300, 200, 100, 250, 150]
RECORD: dict[str, Any] = {
    "domain": {"record": {"app": {"size": 2}, "hour": {"size": 3}}},
    "mechanism": {"name": "sample-one", "epsilon": 1.0, "of": {"app": {"name": "rr"}, "hour": {"name": "rr"}}},
}
ONE_PROTECTED: dict[str, Any] = {
    "domain": {"record": {"app": {"size": 2, "sensitive": [0]}, "hour": {"size": 3}}},
    "mechanism": RECORD["mechanism"] | {"of": {"app": {"name": "mangat"}, "hour": {"name": "rr"}}},
}
LEVELS = {"a": {"epsilon": 0.5}, "b": {"epsilon": 1.0}}
OF_LEVELS = {"domain": {"size": 2}, "mechanism": {"name": "levels", "of": {"name": "rr"}, "levels": LEVELS}}
OF_HALF = "epsilon 0.216 (delta 1e-06) by one of 500 protected reports"
OF_FEW = "b: epsilon 1 (delta 1e-06) by one of 5 protected reports"


def given(keys: dict[str, Any], cells: list[int]) -> tuple[Estimate, list[str]]:
    """An estimate of these cells, and what its text says of those who see only the tables."""
    spec = build.spec(limits={"min_reports": 1}, **keys)
    (found,) = estimates_of(serve([spec])[spec.key], build.pane(cells))
    lines = estimate_text(found, spec).splitlines()
    start = lines.index(ONLY) + 1 if ONLY in lines else len(lines)
    return found, list(takewhile(lambda line: line.startswith("    "), lines[start:]))


@pytest.mark.parametrize(
    ("keys", "cells", "lines"),
    [
        ({}, CELLS, ["epsilon 0.149 (delta 1e-06) by one of 1,000 protected reports"]),
        (LASTING | {"sensitive": [0, 1]}, CELLS, [OF_HALF]),
        ({"mechanism": {"name": "identity"}}, CELLS, []),
        (RECORD, CELLS, [f"app: {OF_HALF}", f"hour: {OF_HALF}"]),
        (OF_LEVELS, [600, 400, 3, 2], ["a: epsilon 0.0627 (delta 1e-06) by one of 1,000 protected reports", OF_FEW]),
        # No two protected values can be told apart, and of the other value nothing is promised.
        (ONE_PROTECTED, CELLS, ["app: as much as its epsilon", f"hour: {OF_HALF}"]),
    ],
)
def test_an_estimate_says_what_its_tables_alone_give_away(
    keys: dict[str, Any], cells: list[int], lines: list[str]
) -> None:
    found, text = given(keys, cells)
    assert [line.strip() for line in text] == lines
    assert Estimate.from_avro(found.to_avro()) == found
    assert to_json(found, None, None)["shuffle"] == [each.to_avro() for each in found.shuffle]


def test_where_the_theorem_says_nothing_no_promise_is_given() -> None:
    keys = {"mechanism": {"name": "metric", "epsilon": 1.0}}
    found, _ = given(keys, CELLS)
    line = (
        "whoever sees only these tables may be given as much as epsilon: the theorem of shuffling does not cover metric"
    )
    assert line in [each.strip() for each in estimate_text(found, build.spec(**keys)).splitlines()]
    assert found.shuffle == ()
    assert {row["shuffle_epsilon"] for row in rows(found, build.spec(**keys))} == {None}


def test_each_row_has_the_promise_of_its_attribute_or_level() -> None:
    found, _ = given(OF_LEVELS, [600, 400, 3, 2])
    shown = {(row["attribute"], row["shuffle_epsilon"]) for row in rows(found, build.spec(**OF_LEVELS))}
    assert shown == {(None, 1.0), ("a", 0.0627), ("b", 1.0)}


GRIDS: dict[str, Any] = {
    "domain": {"record": {"place": {"size": 6, "columns": 3}, "app": {"labels": ["a", "b"]}}},
    "mechanism": {"name": "sample-one", "epsilon": 1.0, "of": {"place": {"name": "oue"}, "app": {"name": "rr"}}},
}
STOPS: dict[str, Any] = {"max_rejected_ratio": 0.1, "when_exceeded": "stop", "max_duplicate_ratio": 0.05}


@pytest.mark.parametrize(
    ("keys", "heading", "line"),
    [
        ({"domain": {"size": 6}}, "grid", None),
        ({"domain": {"size": 6, "columns": 2}}, "grid", "3 rows of 2, row 0 at the bottom; for maps alone"),
        (GRIDS, "grid", "place: 2 rows of 3, row 0 at the bottom; for maps alone"),
        ({}, "limits", "1 reports or more, clocks"),
        ({"limits": STOPS}, "limits", "1 reports or more, stop above 0.1 rejected, flag above 0.05 duplicate, clocks"),
        ({}, "memory", None),
        ({}, "mechanism", "urr, epsilon 1 nats a report, over"),
        (LASTING, "mechanism", "urr, epsilon 1 nats a report and 3 for two or more of one value, over 5 values"),
        (LASTING, "memory", ""),
        (
            {"budget": {"epsilon": 4, "every": "30d"}},
            "budget",
            "epsilon 4 every 30d for each user, over all collections, up to 52 in 365d; honest devices refuse more",
        ),
        ({"event_time": "exact"}, "windows", "1h, 0d for late ones, with exact event times"),
        ({"window": {"size": "1d"}}, "windows", "1d from 00:00 UTC, 0d for late ones"),
        ({"window": {"size": "14d", "period": "7d"}}, "windows", "14d every 7d from Thursday 00:00 UTC, "),
        ({"window": {"size": "36h"}}, "windows", "36h, "),
        ({"window": {"size": "7d", "offset": "95h"}}, "windows", "7d from Sunday 23:00 UTC, "),
        (
            {"window": {"size": "1d", "period": "6h", "offset": "30m"}},
            "windows",
            "1d every 6h from 30m after multiples of 6h, ",
        ),
    ],
)
def test_a_part_of_a_spec_has_a_line_or_none(keys: dict[str, Any], heading: str, line: str | None) -> None:
    found = [row for row in spec_text(build.spec(**keys), 1000).splitlines() if row.startswith(f"  {heading} ")]
    assert len(found) == (line is not None)
    assert all(row.split(maxsplit=1)[1].startswith(line or "") for row in found)

"""Tables of any quantity as lines of text: shares as shares, others with their error and their interval."""

from dataclasses import replace
from typing import Any

import pytest

from tests import build
from uldp.pipelines.results.tables import tables_text
from uldp.schemas.table import Basis, Table

SPEC = build.spec(domain={"labels": ["red", "blue"]})
ESTIMATE = build.estimate(build.pane([60, 40]), [0.6, 0.4], [0.05, 0.05])
INTERVALS: dict[str, Any] = {"low": build.floats(6.9), "high": build.floats(7.6), "basis": Basis.NORMAL}


def lines(*tables: Table, top: int = 10) -> list[str]:
    return list(tables_text(replace(ESTIMATE, tables=tables), SPEC, top=top))


@pytest.mark.parametrize(
    ("table", "line"),
    [
        (build.table("mean", [7.25], [0.123]), "  mean: 7.25 ± 0.12"),
        (build.table("mean", [7.25], [0.123], of=("hours",)), "  mean of hours: 7.25 ± 0.12"),
        (build.table("mean", [7.25], [0.123], n=90), "  mean, n 90: 7.25 ± 0.12"),
        (build.table("mean", [7.25], [0.123], **INTERVALS), "  mean: 7.25 ± 0.12, 95 % interval 6.90 to 7.60"),
        (
            build.table("mean", [7.25], [0.123], level=0.9, **INTERVALS),
            "  mean: 7.25 ± 0.12, 90 % interval 6.90 to 7.60",
        ),
    ],
)
def test_a_number_is_a_line(table: Table, line: str) -> None:
    assert lines(table) == [line]


def test_intervals_that_allow_for_forgers_are_in_brackets() -> None:
    (share,) = ESTIMATE.tables
    ends: dict[str, Any] = {"low": build.floats(0.5, 0.3), "high": build.floats(0.7, 0.5), "basis": Basis.EXACT}
    ends |= {"low_forged": build.floats(0.0, 0.1), "high_forged": build.floats(1.0, 0.75)}
    mean = build.table("mean", [7.25], [0.123], low_forged=build.floats(1), high_forged=build.floats(9), **INTERVALS)
    estimate = replace(ESTIMATE, assume_forgers=0.01, tables=(replace(share, **ends), mean))
    said = ", and [those if up to 1 % of all reports are forged]"
    assert list(tables_text(estimate, SPEC, top=2)) == [
        f"  the 2 largest of 2 values, in % with 95 % intervals{said}",
        "     red   60.0  50.0 to 70.0 [0.0 to 100.0]",
        "    blue   40.0  30.0 to 50.0 [10.0 to 75.0]",
        f"  mean: 7.25 ± 0.12, 95 % interval 6.90 to 7.60 [1.00 to 9.00]{said}",
    ]


def test_each_attribute_of_a_record_has_its_shares_and_its_tags() -> None:
    apps = build.tables([0.2, 0.3, 0.5], [0.01] * 3, {"home": (0.1, 0.01)}, of=("app",), n=70)
    both = build.tables([0.25] * 4, [0.01] * 4, of=("app", "day"), n=30)
    assert lines(*apps, *both, top=1) == [
        "  the 1 largest of 3 values of app, n 70, in % ± standard error",
        "       2   50.0  ± 1.0",
        "  behind tags of app, in % ± standard error",
        "    home   10.0  ± 1.0",
        "    wrong background knowledge costs at most 0.2 in l1 (Theorem 1)",
        "  the 1 largest of 4 values of app x day, n 30, in % ± standard error",
        "    0   25.0  ± 1.0",
    ]


def test_the_largest_zones_are_behind_their_tags() -> None:
    shares = build.tables([0.6, 0.4], [0.01, 0.01], {"home": (0.1, 0.01)})
    zones = build.table("zone", [0.02, 0.01, 0.07], [0.01] * 3, keys=("home/a", "home/b", "home/c"))
    assert lines(*shares, zones, top=2)[-6:] == [
        "  behind tags, in % ± standard error",
        "      home   10.0  ± 1.0",
        "  the 2 largest of 3 zones behind tags, in % ± standard error",
        "    home/c    7.0  ± 1.0",
        "    home/a    2.0  ± 1.0",
        "    wrong background knowledge costs at most 0.2 in l1 (Theorem 1)",
    ]

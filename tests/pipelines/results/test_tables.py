"""Tables of any quantity as lines of text, with their errors or intervals, and with what may be hidden behind tags."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests import build
from uldp.pipelines.results.soundness import sound_estimate
from uldp.pipelines.results.tables import headlines, tables_text
from uldp.schemas.table import Basis, Table

SPEC = build.spec(domain={"labels": ["red", "green", "blue"]})
ESTIMATE = build.estimate(build.pane([100]), [1.0], [0.0])


def table(name: str, values: list[float], low: list[float], high: list[float], **fields: Any) -> Table:
    ends = {"low": build.floats(*low), "high": build.floats(*high), "basis": Basis.EXACT}
    return build.table(name, values, [0.01] * len(values), **(ends | fields))


SHARE = table("share", [0.25, 0.6, 0.15], [0.2, 0.5, 0.1], [0.3, 0.7, 0.2])
VISIBLE = table("visible", [0.0, 0.55, 0.1], [0.0, 0.4, 0.05], [0.04, 0.6, 0.15])
BAND = table("band", [0.4, 0.9, 0.5], [0.0, 0.4, 0.05], [0.176, 1.0, 0.6])
HIDDEN = table("hidden", [0.05, 0.35], [0.04, 0.3], [0.06, 0.4], keys=("home", "workplace"))
ZONE = build.table("zone", [0.02, 0.01, 0.07], [0.01] * 3, of=("app",), keys=("home/a", "home/b", "home/c"))
MEAN = table("mean", [7.25], [6.9], [7.6])


def lines(*tables: Table, top: int = 2) -> list[str]:
    return list(tables_text(replace(ESTIMATE, tables=tables), SPEC, top=top))


@pytest.mark.parametrize(
    ("table", "line"),
    [
        (build.table("mean", [7.25], [0.123], of=("hours",)), "  mean of hours: 7.25 ± 0.12"),
        (build.table("mean", [7.25], [0.123], n=90), "  mean, n 90: 7.25 ± 0.12"),
        (MEAN, "  mean: 7.250 ± 0.010, 95 % interval 6.900 to 7.600"),
        (replace(MEAN, level=0.9), "  mean: 7.250 ± 0.010, 90 % interval 6.900 to 7.600"),
        (replace(SHARE, level=0.9), "  the 2 largest of 3 values, in % with 90 % intervals"),
        (replace(SHARE, simultaneous=True), "  the 2 largest of 3 values, in % with 95 % intervals that hold at once"),
    ],
)
def test_a_table_begins_with_its_quantity_and_its_error(table: Table, line: str) -> None:
    assert lines(table)[0] == line


@pytest.mark.parametrize(
    ("tables", "shown"),
    [
        (
            (SHARE, VISIBLE, BAND, HIDDEN),
            [
                "  the 2 largest of 3 values, in % with 95 % intervals",
                "  (where background puts more than a tenth of a share, with the interval of any background)",
                "        green   60.0  50.0 to 70.0  55.0 visible, up to 100.0 if hidden",
                "          red   25.0   0.0 to 17.6   0.0 visible, 20.0 to 30.0 if the background holds",
                "  behind tags, in % with 95 % intervals",
                "         home    5.0   4.0 to  6.0",
                "    workplace   35.0  30.0 to 40.0",
            ],
        ),
        ((VISIBLE, BAND), []),
        (
            (*build.tables([0.2, 0.3, 0.5], [0.01] * 3, {"home": (0.1, 0.01)}, of=("app",), n=70), ZONE),
            [
                "  the 2 largest of 3 values of app, n 70, in % ± standard error",
                "         2   50.0  ± 1.0",
                "         1   30.0  ± 1.0",
                "  behind tags of app, in % ± standard error",
                "      home   10.0  ± 1.0",
                "  the 2 largest of 3 zones behind tags of app, in % ± standard error",
                "    home/c    7.0  ± 1.0",
                "    home/a    2.0  ± 1.0",
                "    wrong background knowledge costs at most 0.2 in l1 (Theorem 1)",
            ],
        ),
        (
            build.tables([0.4, 0.1, 0.2, 0.3], [0.01] * 4, of=("app", "day"), n=30),
            [
                "  the 2 largest of 4 values of app x day, n 30, in % ± standard error",
                "    0   40.0  ± 1.0",
                "    3   30.0  ± 1.0",
            ],
        ),
    ],
    ids=["hidden", "none of its own", "tags and zones of an attribute", "two attributes"],
)
def test_shares_are_named_and_say_what_is_behind_tags(tables: Sequence[Table], shown: list[str]) -> None:
    assert lines(*tables) == shown


def test_intervals_that_allow_for_forgers_are_in_brackets() -> None:
    share = replace(SHARE, low_forged=build.floats(0, 0.1, 0), high_forged=build.floats(1, 0.75, 1))
    mean = replace(MEAN, low_forged=build.floats(1), high_forged=build.floats(9))
    said = ", and [those if up to 1 % of all reports are forged]"
    assert list(tables_text(replace(ESTIMATE, assume_forgers=0.01, tables=(share, mean)), SPEC, top=2)) == [
        f"  the 2 largest of 3 values, in % with 95 % intervals{said}",
        "    green   60.0  50.0 to 70.0 [10.0 to 75.0]",
        "      red   25.0  20.0 to 30.0 [0.0 to 100.0]",
        f"  mean: 7.250 ± 0.010, 95 % interval 6.900 to 7.600 [1.000 to 9.000]{said}",
    ]


def test_a_number_has_its_figures_before_its_most_frequent_bins_in_the_order_of_the_range() -> None:
    hours = {"number": {"low": 0, "high": 24}}
    of = {"place": {"name": "rr"}, "hours": {"name": "block", "bins": 4}}
    spec = build.spec(
        domain={"record": {"place": {"size": 2}, "hours": hours}},
        mechanism={"name": "sample-one", "epsilon": 1.0, "of": of},
    )
    bins = build.table("share", [0.1, 0.3, 0.2, 0.4], [0.01] * 4, of=("hours",))
    mean = build.table("mean", [14.5], [0.2], of=("hours",))
    median = build.table("quantile", [15.0], [0.3], of=("hours",), keys=("0.5",))
    places = build.tables([0.2, 0.8], [0.1, 0.1], of=("place",))
    estimate = replace(ESTIMATE, tables=(bins, mean, median, *places))
    assert list(tables_text(estimate, spec, top=3)) == [
        "  the 2 largest of 2 values of place, in % ± standard error",
        "    1    80  ± 10",
        "    0    20  ± 10",
        "  mean of hours: 14.50 ± 0.20",
        "  quantile of hours, ± standard error",
        "    0.5  15.00 ± 0.30",
        "  the 3 largest of 4 bins of hours, in % ± standard error",
        "     6 to 12   30.0  ± 1.0",
        "    12 to 18   20.0  ± 1.0",
        "    18 to 24   40.0  ± 1.0",
    ]
    assert list(headlines(estimate, spec)) == ["hours mean 14.50±0.20", "place 1 80.00±10.00 %"]


@pytest.mark.parametrize("name", ["visible", "band"])
@pytest.mark.parametrize("shares", [(), (SHARE,), (replace(SHARE, of=("colour",)),)], ids=["none", "more", "others"])
def test_visible_shares_and_bands_without_shares_of_the_same_values_are_damage(
    name: str, shares: tuple[Table, ...]
) -> None:
    forged = replace(ESTIMATE, tables=(*shares, table(name, [0.5, 0.5], [0.0, 0.0], [1.0, 1.0])))
    with pytest.raises(ValueError, match="a table is about other values than the shares"):
        sound_estimate(forged.to_avro())

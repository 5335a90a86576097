"""The text of a number's tables: its figures first, and then bins of its range, in their order."""

from dataclasses import replace

from tests import build
from uldp.pipelines.results.tables import headlines, tables_text
from uldp.schemas.table import Table

BLOCK = {"name": "block", "epsilon": 1.0, "bins": 4}
HOURS = {"number": {"low": 0, "high": 24}}
SPEC = build.spec(domain=HOURS, mechanism=BLOCK)


def of_a_number(*of: str) -> tuple[Table, ...]:
    share = build.table("share", [0.1, 0.3, 0.2, 0.4], [0.01] * 4, of=of)
    return (
        build.table("mean", [14.5], [0.2], of=of),
        share,
        build.table("quantile", [15.0], [0.3], of=of, keys=("0.5",)),
    )


def test_the_most_frequent_bins_are_listed_in_the_order_of_the_range_after_the_figures() -> None:
    estimate = replace(build.estimate(build.pane([100]), [1.0], [0.0]), tables=of_a_number())
    assert list(tables_text(estimate, SPEC, top=3)) == [
        "  mean: 14.50 ± 0.20",
        "  quantile, ± standard error",
        "    0.5  15.00 ± 0.30",
        "  the 3 largest of 4 bins, in % ± standard error",
        "     6 to 12   30.0  ± 1.0",
        "    12 to 18   20.0  ± 1.0",
        "    18 to 24   40.0  ± 1.0",
    ]
    assert list(headlines(estimate, SPEC)) == ["mean 14.50±0.20"]


def test_values_of_a_record_come_before_its_figures_and_bins() -> None:
    record = {"record": {"place": {"size": 2}, "hours": HOURS}}
    of = {"place": {"name": "rr"}, "hours": {"name": "block", "bins": 4}}
    spec = build.spec(domain=record, mechanism={"name": "sample-one", "epsilon": 1.0, "of": of})
    tables = (*of_a_number("hours"), *build.tables([0.2, 0.8], [0.1, 0.1], of=("place",)))
    estimate = replace(build.estimate(build.pane([100]), [1.0], [0.0]), tables=tables)
    assert [line for line in tables_text(estimate, spec, top=1) if " of " in line] == [
        "  the 1 largest of 2 values of place, in % ± standard error",
        "  mean of hours: 14.50 ± 0.20",
        "  quantile of hours, ± standard error",
        "  the 1 largest of 4 bins of hours, in % ± standard error",
    ]
    assert list(headlines(estimate, spec)) == ["hours mean 14.50±0.20", "place 1 80.00±10.00 %"]

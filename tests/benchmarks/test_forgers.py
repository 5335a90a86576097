"""The benchmarks of forgers: they move the weight of a report, and equal or contradicting payloads are found."""

from pathlib import Path

import pytest

from benchmarks import forged_strings
from benchmarks.forgers import false_alarms, rows
from uldp.schemas.specs.families import mechanism_names

THREATS = Path(__file__).parents[2] / "docs" / "threats.md"


def test_forgers_move_a_share_by_their_weight_and_are_flagged_if_they_are_all_alike() -> None:
    found = {row[0]: row[1:] for row in rows(2000, ["rr", "ss"])}
    assert found["rr"][0] == pytest.approx(59.2, rel=0.05)
    alike, flagged, noisy, then = found["ss"]
    assert alike == pytest.approx(noisy, abs=0.2)
    assert flagged.endswith("`equal_payloads`")
    assert then == "never" or then.endswith("0 %, `improbable_counts`")


@pytest.mark.parametrize("name", ["set-ss", "set-ss, sizes"])
def test_equal_payloads_of_sets_are_flagged_and_honest_ones_are_not(name: str) -> None:
    ((_, moves, flagged, _, _),) = rows(5000, [name])
    assert moves > 9
    assert flagged in ("0.5 %, `equal_payloads`", "1 %, `equal_payloads`")
    assert list(false_alarms(2000, 10, [name])) == [(name, 0)]


def test_the_page_of_threats_has_a_row_for_each_mechanism() -> None:
    rows_of = [
        line.split("|")[1] for line in THREATS.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]
    assert {name for name in mechanism_names() if not any(f"`{name}`" in row for row in rows_of)} == set()


@pytest.mark.parametrize(
    ("kind", "reports", "found", "flags"),
    [
        ("whole strings", (45, 265), False, "none"),
        ("of a candidate", (0, 120), True, "`improbable_counts` 1 of 1"),  # which is in the tables in any case
        ("one payload", (41, 41), False, "`improbable_counts` 1 of 1"),
        ("honest holders", (700,), True, "none"),
        ("even", (90, 90), True, "none"),  # who draw as honest devices do
    ],
)
def test_strings_of_forgers_are_published_only_if_their_prefixes_agree(
    kind: str, reports: tuple[int, ...], found: bool, flags: str
) -> None:
    row = forged_strings.row(kind, forged_strings.USERS, *reports, windows=1)
    assert (row.found, row.flags) == (found, flags)
    assert row.found_if_assumed == 0  # 2 % of reports may be a weight of 2.08 times 4 for 1 % of all


def test_honest_windows_have_no_flag_and_no_string_is_left_out() -> None:
    assert forged_strings.false_alarms(forged_strings.USERS, 5) == (0, 0)

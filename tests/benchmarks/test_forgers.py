"""The benchmark of forgers: what they move is the weight of a report, and equal payloads are flagged."""

from pathlib import Path

import pytest

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

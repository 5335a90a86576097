"""The benchmark of forgers: what they move is the weight of a report, and equal payloads are flagged."""

import pytest

from benchmarks.forgers import rows


def test_forgers_move_a_share_by_their_weight_and_are_flagged_if_they_are_all_alike() -> None:
    found = {row[0]: row[1:] for row in rows(2000, ["rr", "ss"])}
    assert found["rr"][0] == pytest.approx(59.2, rel=0.05)
    alike, flagged, noisy, then = found["ss"]
    assert alike == pytest.approx(noisy, abs=0.2)
    assert flagged.endswith("`equal_payloads`")
    assert then == "never" or then.endswith("0 %, `improbable_counts`")

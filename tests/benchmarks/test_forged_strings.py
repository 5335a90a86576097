"""The benchmark of forged strings: what their own prefixes contradict is not published, and honest strings are."""

import pytest

from benchmarks.forged_strings import USERS, false_alarms, row


@pytest.mark.parametrize(("kind", "reports", "flag"), [
    ("whole strings", (45, 265), "none"),
    ("of a candidate", (0, 120), "`improbable_counts` 1 of 1"),
    ("one payload", (41, 41), "`improbable_counts` 1 of 1"),
])  # fmt: skip
def test_forgers_of_whole_strings_alone_are_found_out(kind: str, reports: tuple[int, int], flag: str) -> None:
    found = row(kind, USERS, *reports, windows=1)
    assert found.flags == flag
    assert found.found == (kind == "of a candidate")  # a candidate is in the tables in any case
    assert found.found_if_assumed == 0


@pytest.mark.parametrize(("kind", "reports"), [("honest holders", (700,)), ("even", (90, 90))])
def test_forgers_who_draw_as_honest_devices_do_are_found_as_honest_holders_are(
    kind: str, reports: tuple[int, ...]
) -> None:
    found = row(kind, USERS, *reports, windows=1)
    assert (found.found, found.flags) == (1, "none")
    assert found.found_if_assumed == 0  # 2 % of reports may be a weight of 2.08 times 4 for 1 % of all


def test_honest_windows_have_no_flag_and_no_string_is_left_out() -> None:
    assert false_alarms(USERS, 5) == (0, 0)

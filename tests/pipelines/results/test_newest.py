"""The newest pane of each window, and the windows of which no estimate is published."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import HOUR, START
from tests.pane_files import save_panes
from tests.pipelines.results.samples import COUNTS, fired, folder_of, write_estimate
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.text import UNPUBLISHED, unpublished_text
from uldp.schemas.pane import Pane, PaneKind


class TestNewest:
    def test_after_a_restart_is_what_received_the_most(self) -> None:
        before, after = [fired(10, 0), fired(20, 1), fired(30, 2)], [fired(30, 0), fired(40, 1)]
        assert newest(before + after) == [fired(40, 1)]

    def test_an_early_pane_of_a_killed_run_does_not_stand_for_the_on_time_one(self) -> None:
        on_time = fired(30, 1, kind="on_time")
        assert newest([on_time, fired(30, 7)]) == [on_time]

    def test_one_for_each_window_version_and_estimator_in_their_order(self) -> None:
        panes = [
            fired(1, 0),
            fired(1, 0, estimator="threshold"),
            fired(1, 0, start=START + HOUR),
            fired(1, 0, version=2),
        ]
        assert newest(panes[::-1]) == panes

    @given(st.permutations([(10, 0), (20, 1), (20, 0), (30, 0), (30, 2), (30, 1)]))
    def test_the_order_of_reading_does_not_matter(self, panes: list[tuple[int, int]]) -> None:
        (pane,) = newest([fired(*pane) for pane in panes])
        assert (pane.accounting.received, pane.pane.revision) == (30, 2)

    def test_an_incomplete_pane_gives_way_to_one_that_holds_as_much(self) -> None:
        stopped = replace(fired(30, 7), flags=("incomplete",))
        assert newest([stopped, fired(30, 0)]) == [fired(30, 0)]
        assert newest([stopped, fired(29, 8)]) == [stopped]


class TestCurrent:
    """Windows of which no estimate is published have none, whatever was published of them before."""

    @pytest.mark.parametrize(
        ("flags", "unpublished"), [((), False), (("improbable_payloads",), False), (("rejected_ratio",), True)]
    )
    def test_a_stopped_window(self, flags: tuple[str, ...], unpublished: bool, tmp_path: Path) -> None:
        write_estimate(tmp_path)
        later = replace(COUNTS, pane=Pane(PaneKind.LATE, 3), flags=flags)
        save_panes(tmp_path, "counts", [later])
        estimates, panes, *_ = folder_of(tmp_path).current()
        assert (len(estimates), len(panes)) == ((0, 1) if unpublished else (1, 0))

    def test_counts_alone(self, tmp_path: Path) -> None:
        few = replace(COUNTS, flags=("few_reports",))
        save_panes(tmp_path, "counts", [few])
        estimates, (pane,), *_ = folder_of(tmp_path).current()
        assert estimates == []
        assert unpublished_text(pane, UNPUBLISHED).splitlines()[:4] == [
            "c v1  2026-01-01 09:00 to 10:00 UTC  no estimate is published",
            "  n 100  pane on_time, revision 2",
            "  107 received = 100 counted + 4 duplicate + 2 late + 1 rejected",
            "  flags: few_reports",
        ]

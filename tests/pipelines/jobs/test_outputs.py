"""What a job that was stopped leaves behind."""

from dataclasses import replace
from pathlib import Path

from tests import build
from tests.build import HOUR
from uldp.pipelines.jobs.outputs import mark_open_windows
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.results import estimate_file, statistic_file


def pane(hour: int, kind: str, revision: int, n: int) -> Statistic:
    return build.pane([n, 0], kind, revision, start=hour * HOUR)


def save(out: Path, support: Statistic) -> None:
    estimate = build.estimate(support, [1.0, 0.0], [0.1, 0.1])
    for name, content in (statistic_file(support), estimate_file(estimate)):
        write_file(str(out / name), content)


def test_windows_that_did_not_fire_on_time_are_incomplete(tmp_path: Path) -> None:
    ended = [pane(0, "early", 0, 5), pane(0, "on_time", 1, 8)]
    still_open = [pane(1, "early", 0, 3), replace(pane(1, "early", 1, 4), flags=("busy_sender",))]
    for support in (*ended, *still_open):
        save(tmp_path, support)
    for _ in range(2):  # to do it twice is to do it once
        assert mark_open_windows(tmp_path) == 1
    flags = [(), ("busy_sender", "incomplete")]
    assert [support.flags for support in newest(ResultsFolder(tmp_path).statistics())] == flags
    assert [estimate.flags for estimate in newest(ResultsFolder(tmp_path).estimates())] == flags
    assert len(ResultsFolder(tmp_path).statistics()) == len(ResultsFolder(tmp_path).estimates()) == 4


def test_where_nothing_has_fired_there_is_nothing_to_mark(tmp_path: Path) -> None:
    assert mark_open_windows(tmp_path) == 0


def test_a_damaged_file_keeps_no_other_window_from_being_marked(tmp_path: Path) -> None:
    for support in (pane(0, "early", 0, 5), pane(1, "early", 0, 3)):
        save(tmp_path, support)
    (tmp_path / statistic_file(pane(0, "early", 0, 5))[0]).write_bytes(b"damaged")
    assert mark_open_windows(tmp_path) == 1
    (counts,) = ResultsFolder(tmp_path, lambda _: None).statistics()
    assert (counts.window_start, counts.flags) == (HOUR, ("incomplete",))

"""What a job that was stopped leaves behind."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from tests import build
from tests.build import HOUR
from tests.pane_files import estimate_file, statistic_file
from uldp.pipelines.jobs.written import mark_open_windows
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.local.journal import JOURNAL, append_entries, decode_entry
from uldp.transforms.io.results.signing import line_of_pane
from uldp.transforms.io.results.write import write_estimates, write_statistics


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


def bundle(out: Path, panes: list[Statistic]) -> list[Path]:
    """Write the panes of a bundle and their estimates as a job does; returns the files that are new or changed."""
    before = {path: path.read_bytes() for path in out.rglob("*.avro")}
    estimates = [build.estimate(each, [1.0, 0.0], [0.1, 0.1]) for each in panes]
    for fn, elements in ((write_statistics(str(out), str(out)), panes), (write_estimates(str(out)), estimates)):
        fn.start_bundle()
        for element in elements:
            fn.process(element)
        fn.finish_bundle()
    return sorted(path for path in out.rglob("*.avro") if before.get(path) != path.read_bytes())


def flags(out: Path) -> dict[str, set[tuple[str, ...]]]:
    """The flags of the newest panes and estimates, by collection."""
    found: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    folder = ResultsFolder(out)
    for each in (*newest(folder.statistics()), *newest(folder.estimates())):
        found[each.collection].add(each.flags)
    return found


def of_each(collections: int, kind: str, revision: int, n: int) -> list[Statistic]:
    return [build.pane([n, 0], kind, revision, start=HOUR, key=(f"c-{number}", 1)) for number in range(collections)]


def test_panes_that_share_a_file_are_incomplete_too(tmp_path: Path) -> None:
    bundle(tmp_path, of_each(40, "early", 0, 3))
    bundle(tmp_path, of_each(40, "early", 1, 5))
    bundle(tmp_path, of_each(35, "on_time", 2, 8))
    for _ in range(2):  # to do it twice is to do it once
        assert mark_open_windows(tmp_path) == 5
    ended = {f"c-{number}": {()} for number in range(35)}
    assert flags(tmp_path) == ended | {f"c-{number}": {("incomplete",)} for number in range(35, 40)}
    assert len(ResultsFolder(tmp_path).statistics()) == len(ResultsFolder(tmp_path).estimates()) == 115
    # The job runs again, and the same panes come again.
    append_entries(tmp_path / JOURNAL, map(decode_entry, map(line_of_pane, of_each(40, "early", 1, 5))))
    assert {each for found in flags(tmp_path).values() for each in found} == {()}


def test_a_pane_with_more_reports_is_not_incomplete(tmp_path: Path) -> None:
    save(tmp_path, pane(0, "early", 0, 5))
    assert mark_open_windows(tmp_path) == 1
    save(tmp_path, pane(0, "early", 1, 6))
    assert [each.flags for each in newest(ResultsFolder(tmp_path).statistics())] == [()]


def test_no_pane_is_marked_beside_a_damaged_file_of_its_window(tmp_path: Path) -> None:
    """The damaged file may be the pane on time."""
    bundle(tmp_path, of_each(40, "early", 0, 3))
    files = bundle(tmp_path, [build.pane([8, 0], "on_time", 1, start=HOUR, key=("c-0", 1))])
    for path in files:
        path.write_bytes(path.read_bytes()[:-4])
    assert mark_open_windows(tmp_path) == 39

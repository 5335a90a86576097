"""What is removed of files of panes of several collections, and what moves to its collection."""

import threading
from pathlib import Path

import pytest

from tests.pipelines.results.files_of_all import NAMES, everything, pane, results, save_of_all, save_own
from uldp.pipelines.results.compact import compact
from uldp.pipelines.results.files import ListedFile, ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.prune import prune
from uldp.schemas.flags import Flag
from uldp.transforms.io.folders import COUNTS, FEW

pytestmark = pytest.mark.usefixtures("small_blocks")


def test_a_file_is_removed_when_all_its_panes_are_replaced(tmp_path: Path) -> None:
    results(tmp_path)
    early = save_of_all(tmp_path, [pane(name, 0, 0, "early") for name in NAMES])
    save_of_all(tmp_path, [pane(name, 0) for name in ("c", "d")])
    assert prune(tmp_path, before=0).panes == 0
    save_own(tmp_path, [pane("e-2", 0)])
    assert prune(tmp_path, before=0).panes == len(early)
    assert not any(path.exists() for path in early.values())
    assert len(ResultsFolder(tmp_path).panes()) == 3


def history(out: Path) -> Path:
    """Three days of early panes and panes on time; those of an hour in a file, but some of one collection."""
    results(out)
    for hour in range(0, 72, 6):
        names = NAMES if hour % 5 else NAMES[1:]
        few = (Flag.FEW_REPORTS.value,) if hour % 18 == 0 else ()
        save_of_all(out, [pane(name, hour, 0, "early", flags=few) for name in names])
        save_of_all(out, [pane(name, hour, flags=few) for name in names])
        if names != NAMES:
            save_own(out, [pane("c", hour, 0, "early"), pane("c", hour)])
    return out


def days_left(out: Path) -> set[str]:
    """The days of files of several collections, but not of those of few reports, whose last windows are older."""
    return {path.name[4:12] for kind in (COUNTS, "estimates") for path in out.glob(f"{kind}/all.*.avro")}


def test_compact_moves_panes_to_their_collections(tmp_path: Path) -> None:
    before = everything(history(tmp_path))
    planned = compact(tmp_path, dry_run=True)
    assert everything(tmp_path) == before
    assert compact(tmp_path) == planned
    assert everything(tmp_path) == before
    kinds = {path.parent.name for path in tmp_path.glob("*/c-v1.*")}
    assert kinds == {COUNTS, FEW, "estimates"}
    assert days_left(tmp_path) == {"20260103", "20260104"}
    assert all(not path.stat().st_mode & 0o077 for path in tmp_path.glob("few/*"))
    left = {path: path.read_bytes() for path in tmp_path.rglob("*.avro")}
    assert compact(tmp_path).sources == 0
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.avro")} == left


@pytest.mark.parametrize("max_bytes", [1, 3_000])
def test_compact_moves_in_bounded_parts(max_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = everything(history(tmp_path))
    monkeypatch.setattr("uldp.pipelines.results.compact.MAX_BYTES", max_bytes)
    for _ in range(2):  # a file of early panes may come before that of the panes on time
        compact(tmp_path)
        assert everything(tmp_path) == before
    assert days_left(tmp_path) == {"20260103", "20260104"}


@pytest.mark.parametrize("killed", [0, 1, 5, 20, 35])
def test_a_killed_compact_loses_nothing(killed: int, tmp_path: Path) -> None:
    before = everything(history(tmp_path))
    left, remove = iter(range(killed)), ListedFile.remove

    def remove_or_die(file: ListedFile) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        remove(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ListedFile, "remove", remove_or_die)
        with pytest.raises(KeyboardInterrupt):
            compact(tmp_path)
    assert set(everything(tmp_path)) == set(before)
    compact(tmp_path)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("moment", range(6))
def test_prune_waits_for_compact(moment: int, tmp_path: Path) -> None:
    """Together they would remove the last copy of a pane: each its own of two files with equal panes."""
    before = {repr(each) for each in newest(ResultsFolder(history(tmp_path)).panes())}
    pruning = threading.Thread(target=prune, args=(tmp_path,), kwargs={"before": 0})
    remove, removed = ListedFile.remove, list[object]()

    def prune_and_remove(file: ListedFile) -> None:
        removed.append(None)
        if len(removed) == 1 + 5 * moment:
            pruning.start()
        remove(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ListedFile, "remove", prune_and_remove)
        compact(tmp_path)
    pruning.join()
    assert {repr(each) for each in newest(ResultsFolder(tmp_path).panes())} == before


def test_windows_without_a_pane_on_time_are_not_moved(tmp_path: Path) -> None:
    results(tmp_path)
    early = save_of_all(tmp_path, [pane("c", 0, 0, "early"), pane("d", 0)])
    save_of_all(tmp_path, [pane(name, 60) for name in NAMES])
    compact(tmp_path)
    assert all(path.exists() for path in early.values())


def test_an_early_estimate_moves_if_its_window_has_ended_without_another(tmp_path: Path) -> None:
    results(tmp_path)
    save_of_all(tmp_path, [pane(name, 0, 0, "early") for name in NAMES])
    save_of_all(tmp_path, [pane(name, 0, flags=(Flag.FEW_REPORTS.value,)) for name in NAMES])
    save_of_all(tmp_path, [pane(name, 60) for name in NAMES])
    before = everything(tmp_path)
    compact(tmp_path)
    assert everything(tmp_path) == before
    assert days_left(tmp_path) == {"20260103"}


def test_a_damaged_file_is_not_moved_and_is_named(tmp_path: Path) -> None:
    paths = save_of_all(results(tmp_path), [pane(name, 0) for name in NAMES])
    save_of_all(tmp_path, [pane(name, 60) for name in NAMES])
    paths[COUNTS].write_bytes(paths[COUNTS].read_bytes()[:-9])
    damaged: list[ResultsError] = []
    compact(tmp_path, damaged=damaged.append)
    assert all(path.exists() for path in paths.values())  # the estimates of its windows stay, too
    assert len(damaged) == 1

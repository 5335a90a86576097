"""The files of closed windows become one a day: readers find the same panes, also after a killed or a repeated run."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.pane_files import estimate_file, statistic_file
from uldp.pipelines.cli import main
from uldp.pipelines.results import compact as module
from uldp.pipelines.results.compact import Compacted, compact
from uldp.pipelines.results.files import ListedFile, ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.prune import prune
from uldp.schemas.pane import PaneHeader
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.listing import paths_below

HOUR = 3_600_000
DAYS = 4


def pane(hour: int, revision: int = 0, kind: str = "on_time") -> Statistic:
    return build.pane([hour + 1, revision], kind, revision, start=hour * HOUR)


def save(out: Path, support: Statistic) -> None:
    write_file(str(out / (named := statistic_file(support))[0]), named[1])
    for estimator in ("mle", "em"):
        estimate = build.estimate(support, [1.0, 0.0], [0.1, 0.1], estimator=estimator)
        write_file(str(out / (named := estimate_file(estimate))[0]), named[1])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "job.json").write_text("{}")
    for hour in range(24 * DAYS):
        save(tmp_path, pane(hour, 0, "early"))
        save(tmp_path, pane(hour, 1))
    return tmp_path


def files(out: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in out.rglob("*.avro")}


def panes(out: Path) -> list[str]:
    return sorted(
        map(
            repr,
            (
                *ResultsFolder(out).panes(),
                *ResultsFolder(out).estimates(),
                *ResultsFolder(out, private=out).statistics(),
            ),
        )
    )


def test_readers_find_the_same_panes(out: Path) -> None:
    before = panes(out)
    compacted = compact(out)
    assert panes(out) == before
    # Of each of the three kinds of files: the days whose windows ended a day before the last window began, at 23:00.
    ended = 24 * (DAYS - 1) - 1
    assert (compacted.sources, compacted.joined) == (3 * 2 * ended, 3 * DAYS - 3)
    assert len(files(out)) == 3 * (2 * (24 * DAYS - ended) + DAYS - 1)
    assert compacted.nbytes > 0


def test_to_compact_twice_is_to_compact_once(out: Path) -> None:
    compact(out)
    left = files(out)
    assert compact(out) == Compacted()
    assert files(out) == left


def test_a_dry_run_says_the_same_and_changes_nothing(out: Path) -> None:
    before = files(out)
    planned = compact(out, dry_run=True)
    assert files(out) == before
    assert compact(out) == planned


def test_a_later_pane_joins_its_day(out: Path) -> None:
    compact(out)
    joined = len(files(out))
    save(out, pane(3, 2, "late"))
    before = panes(out)
    assert compact(out).sources == 3 * 2  # its own file, and that of the day, for counts and two estimators
    assert (panes(out), len(files(out))) == (before, joined)


def test_a_window_without_a_pane_on_time_keeps_its_files(out: Path) -> None:
    (out / statistic_file(pane(2, 1))[0]).unlink()
    early, joined = (out / statistic_file(pane(hour, 0, "early"))[0] for hour in (2, 3))
    compact(out)
    assert (early.exists(), joined.exists()) == (True, False)


@pytest.mark.parametrize("moment", range(8))
@pytest.mark.parametrize(
    "read", [lambda out: ResultsFolder(out).panes(), lambda out: ResultsFolder(out).current().estimates]
)
def test_a_reader_misses_no_pane_while_it_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int, read: Callable[[Path], list[PaneHeader]]
) -> None:
    """A run of ``compact`` begins and ends between any two looks of a reader into a folder."""
    (tmp_path / "job.json").write_text("{}")
    (tmp_path / "specs" / "c-v1").mkdir(parents=True)
    (tmp_path / "specs" / "c-v1" / "spec.yaml").write_text(yaml.safe_dump(build.spec().model_dump(mode="json")))
    for hour in range(0, 33, 3):
        save(tmp_path, pane(hour))
    wanted = {repr(each) for each in read(tmp_path)}
    looks = iter(range(moment + 1))
    listing = paths_below

    def looking(folder: Path, pattern: str) -> list[Path]:
        if next(looks, None) == moment:
            monkeypatch.setattr("uldp.pipelines.results.files.paths_below", listing)
            assert compact(tmp_path).joined
        return listing(folder, pattern)

    monkeypatch.setattr("uldp.pipelines.results.files.paths_below", looking)
    assert {repr(each) for each in read(tmp_path)} == wanted


@given(killed=st.integers(0, 40))
def test_a_run_that_is_killed_loses_nothing(tmp_path_factory: pytest.TempPathFactory, killed: int) -> None:
    out = tmp_path_factory.mktemp("out")
    (out / "job.json").write_text("{}")
    for hour in range(28):
        save(out, pane(hour))
    before = panes(out)
    left = iter(range(killed))

    remove = ListedFile.remove

    def remove_or_die(file: ListedFile) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        remove(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ListedFile, "remove", remove_or_die)
        try:
            compact(out)
        except KeyboardInterrupt:
            assert killed < 12
    assert set(panes(out)) == set(before)
    compact(out)
    assert panes(out) == before


def test_a_damaged_file_keeps_its_window_and_is_named(out: Path) -> None:
    name, content = statistic_file(pane(5, 1))
    (out / name).write_bytes(content[:-5])
    damaged: list[ResultsError] = []
    compact(out, damaged=damaged.append)
    assert [name in str(error) for error in damaged] == [True]
    assert (out / name).exists()
    assert (out / statistic_file(pane(5, 0, "early"))[0]).exists()


def test_a_day_of_large_panes_has_several_files(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = panes(out)
    monkeypatch.setattr(module, "MAX_BYTES", 1000)
    assert compact(out).joined > 3 * DAYS
    assert panes(out) == before


def test_cells_that_are_apart_stay_private(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text("{}")
    for hour in (0, 1, 30):
        few = replace(pane(hour), flags=("few_reports",))
        write_file(str(tmp_path / (named := statistic_file(few, "few"))[0]), named[1], private=True)
        write_file(str(tmp_path / (named := statistic_file(PaneHeader(**few.header())))[0]), named[1])
    before = panes(tmp_path)
    compact(tmp_path)
    assert panes(tmp_path) == before
    assert {oct(path.stat().st_mode & 0o777) for path in (tmp_path / "few").rglob("*.avro")} == {"0o600"}
    assert {path.stat().st_mode & 0o044 for path in (tmp_path / "counts").rglob("*.avro")} == {0o044}


def test_old_panes_that_are_pruned_before_are_gone(out: Path) -> None:
    found = newest(ResultsFolder(out).panes())
    prune(out, before=0.0)
    compact(out)
    assert newest(ResultsFolder(out).panes()) == found
    assert len(ResultsFolder(out).panes()) == len(found)


@pytest.fixture
def argv(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    arguments = ["uldp"]
    monkeypatch.setattr(sys, "argv", arguments)
    return arguments


def test_the_command_says_what_it_did(out: Path, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    argv += ["compact", str(out)]
    main()
    assert f"{out}: joined 426 files of panes into 9; " in capsys.readouterr().out

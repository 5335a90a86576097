"""The files of closed windows become one a day: readers find the same panes, also after a killed or a repeated run."""

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from sys import modules
from typing import Any

import pytest
import yaml

from tests import build
from tests.pane_files import estimate_file, save_panes, statistic_file
from tests.pipelines.command import Run
from tests.pipelines.results.files_of_all import everything
from uldp.pipelines.results import compact as module
from uldp.pipelines.results.compact import compact
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.pane import PaneHeader
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.listing import entries

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


def test_readers_find_the_same_panes(out: Path) -> None:
    before = everything(out)
    compacted = compact(out)
    assert everything(out) == before
    # Of each of the three kinds of files: the days whose windows ended a day before the last window began, at 23:00.
    ended = 24 * (DAYS - 1) - 1
    assert (compacted.sources, compacted.joined) == (3 * 2 * ended, 3 * DAYS - 3)
    assert len(files(out)) == 3 * (2 * (24 * DAYS - ended) + DAYS - 1)
    assert compacted.nbytes > 0


def test_a_later_pane_joins_its_day(out: Path) -> None:
    compact(out)
    joined = len(files(out))
    save(out, pane(3, 2, "late"))
    before = everything(out)
    assert compact(out).sources == 3 * 2  # its own file, and that of the day, for counts and two estimators
    assert (everything(out), len(files(out))) == (before, joined)


#: Between any two of these steps of a reader, a run of ``compact`` may begin and end.
STEPS = ("panes.entries", "catalog.read_header", "catalog.read_panes")


@pytest.mark.parametrize("moment", [*range(6), *range(6, 60, 5)])
@pytest.mark.parametrize(
    "read", [lambda out: ResultsFolder(out).panes(), lambda out: ResultsFolder(out).current().estimates]
)
def test_a_reader_misses_no_pane_while_it_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int, read: Callable[[Path], list[PaneHeader]]
) -> None:
    (tmp_path / "job.json").write_text("{}")
    (tmp_path / "specs" / "c-v1").mkdir(parents=True)
    (tmp_path / "specs" / "c-v1" / "spec.yaml").write_text(yaml.safe_dump(build.spec().model_dump(mode="json")))
    for hour in range(0, 33, 3):
        save(tmp_path, pane(hour))
    wanted = [repr(each) for each in read(tmp_path)]
    steps = 0

    def moving(step: Callable[..., Any]) -> Callable[..., Any]:
        def moved(*arguments: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == moment + 1:
                with pytest.MonkeyPatch.context() as own:
                    for name, original in originals.items():
                        own.setattr(f"uldp.pipelines.results.{name}", original)
                    assert compact(tmp_path).joined
            return step(*arguments)

        return moved

    originals = {
        name: getattr(modules[f"uldp.pipelines.results.{name.split('.')[0]}"], name.split(".")[1]) for name in STEPS
    }
    for name, original in originals.items():
        monkeypatch.setattr(f"uldp.pipelines.results.{name}", moving(original))
    assert [repr(each) for each in read(tmp_path)] == wanted
    assert steps > moment or moment > 20


@pytest.mark.parametrize("moment", range(3))
def test_a_listing_that_misses_moving_panes_in_both_files_does_not_count(
    out: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """A folder is not listed at one moment: of what moves meanwhile, a listing may have neither place."""
    before, listings = everything(out), count()

    def listed(folder: Path) -> list[os.DirEntry[str]]:
        found = entries(folder)
        if next(listings) == moment:
            monkeypatch.setattr("uldp.pipelines.results.panes.entries", entries)
            compact(out)
            return [entry for entry in found if Path(entry.path).exists()]
        return found

    monkeypatch.setattr("uldp.pipelines.results.panes.entries", listed)
    assert everything(out) == before


def test_a_file_that_a_job_writes_meanwhile_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that ran again counts its revisions anew; a pane of several collections moves into a file of its own."""
    (tmp_path / "job.json").write_text("{}")
    other = replace(pane(0), collection="d")
    save_panes(tmp_path, "counts", [pane(0), other])
    save_panes(tmp_path, "counts", [pane(60), replace(pane(60), collection="d")])
    newer = build.pane([77, 0], "on_time", 0, start=0)

    def write_beside(path: str, content: bytes, *, private: bool) -> None:
        save_panes(tmp_path, "counts", [newer])
        write_file(path, content, private=private)

    monkeypatch.setattr(module, "write_file", write_beside)
    assert compact(tmp_path).joined == 2
    assert {repr(newer), repr(pane(0)), repr(other)} <= {repr(each) for each in ResultsFolder(tmp_path).panes()}


def test_the_command_says_what_it_did(out: Path, uldp: Run) -> None:
    code, said, _ = uldp("compact", out)
    assert (code, f"{out}: joined 426 files of panes into 9; " in said) == (0, True)

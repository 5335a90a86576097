"""Older panes and old late and rejected reports are removed: readers find the same results, and all else stays."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests import build
from tests.pane_files import estimate_file, statistic_file
from tests.pipelines.command import Run
from uldp.pipelines.results.catalog import Catalog
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.prune import prune
from uldp.schemas.pane import Accounting, Superseded
from uldp.schemas.records import Message
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.durable_files import encode_record, write_file
from uldp.transforms.io.results.names import stored_file

HOUR, DAY = 3_600_000, 86_400
NOW = 1_800_000_000.0


def pane(hour: int, revision: int, n: int, *, late: int = 0) -> Statistic:
    before = Superseded(revision - 1, n - 1) if revision and n else None
    accounting = Accounting(n + late, n, 0, late)
    return build.pane([n, 0], "late", revision, start=hour * HOUR, accounting=accounting, supersedes=before)


def save(out: Path, name: str, content: bytes, *, days: float = 0) -> Path:
    path = out / name
    write_file(str(path), content)
    os.utime(path, (NOW - days * DAY,) * 2)
    return path


def save_pane(out: Path, support: Statistic) -> None:
    save(out, *statistic_file(support))
    for estimator in ("mle", "em"):
        save(out, *estimate_file(build.estimate(support, [1.0, 0.0], [0.1, 0.1], estimator=estimator)))


def save_late(out: Path, number: int, *, days: float, folder: str = "late") -> Path:
    encoded = [encode_record("message", Message(b"%d" % number, 1).to_avro())]
    return save(out, *stored_file(folder, encoded, "message"), days=days)


def files(out: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in out.rglob("*") if path.suffix == ".avro"}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A directory of two windows: one with four panes, the newest of a restarted job; and one with a single pane."""
    (tmp_path / "job.json").write_text("{}")
    for support in (pane(0, 0, 3), pane(0, 1, 9), pane(0, 2, 5), pane(0, 3, 7), pane(1, 0, 4)):
        save_pane(tmp_path, support)
    return tmp_path


def test_the_newest_pane_of_each_window_and_estimator_stays(out: Path) -> None:
    counts, estimates = newest(ResultsFolder(out).statistics()), newest(ResultsFolder(out).estimates())
    pruned = prune(out, before=NOW)
    assert (pruned.panes, pruned.late, pruned.rejected) == (9, 0, 0)
    assert ResultsFolder(out).statistics() == counts
    assert newest(ResultsFolder(out).estimates()) == estimates
    assert [(each.pane.revision, each.n) for each in counts] == [(1, 9), (0, 4)]
    assert counts[0].supersedes == pane(0, 1, 9).supersedes


def test_a_dry_run_says_the_same_and_removes_nothing(out: Path) -> None:
    save_late(out, 1, days=31)
    before = files(out)
    planned = prune(out, before=NOW - 30 * DAY, dry_run=True)
    assert files(out) == before
    assert prune(out, before=NOW - 30 * DAY) == planned
    assert planned.nbytes == sum(map(len, before.values())) - sum(map(len, files(out).values())) > 0


def test_late_and_rejected_reports_go_by_age(out: Path) -> None:
    old = [save_late(out, 1, days=31), save_late(out, 1, days=31, folder="rejected")]
    old.append(save_late(out, 2, days=31).rename(out / "late" / f".{'a' * 32}.avro.{'0' * 16}.tmp"))  # a killed job's
    young = save_late(out, 3, days=29)
    foreign = save(out, "late/notes.avro", b"of somebody else", days=99)
    pruned = prune(out, before=NOW - 30 * DAY)
    assert (pruned.late, pruned.rejected) == (2, 1)
    assert [path.exists() for path in (*old, young, foreign)] == [False, False, False, True, True]


def test_a_damaged_file_keeps_its_window(out: Path) -> None:
    (damage := out / statistic_file(pane(0, 2, 5))[0]).write_bytes(b"damaged")
    damaged: list[ResultsError] = []
    assert prune(out, before=NOW, damaged=damaged.append).panes == 0
    assert len(list(damage.parent.glob("*T000000Z--*"))) == 4
    assert len(damaged) == 1


def test_a_file_that_a_job_has_replaced_meanwhile_stays(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, content = statistic_file(pane(0, 0, 99))
    read = Catalog.read

    def read_and_replace(*args: Any, **kwargs: Any) -> Catalog:
        catalog = read(*args, **kwargs)
        write_file(str(out / name), content)
        return catalog

    monkeypatch.setattr(Catalog, "read", read_and_replace)
    prune(out, before=NOW)
    monkeypatch.undo()
    assert [each.n for each in newest(ResultsFolder(out).statistics())] == [99, 4]


def test_panes_stay_whose_newer_pane_cannot_be_read(out: Path) -> None:
    """Its header is whole, and the damage inside of a block is found by who reads the block."""
    path = out / statistic_file(pane(0, 1, 9))[0]
    content = bytearray(path.read_bytes())
    content[-20] ^= 0xFF
    path.write_bytes(content)
    damaged: list[ResultsError] = []
    before = {file for file in files(out) if file.parent.name == "counts"}
    prune(out, before=NOW, damaged=damaged.append)
    assert len(damaged) == 1
    assert before <= files(out).keys()


@pytest.mark.parametrize("name", ["stream.json", "notes.txt", "late/0.avro"])
def test_another_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("{}")
    with pytest.raises(ResultsError, match=r"holds .*; give a directory that holds results"):
        prune(tmp_path, before=NOW)
    assert (tmp_path / name).exists()


NOTHING = "0 files of older panes, 0 of late reports, 0 of rejected reports, 0 of windows of few reports"


def test_the_command_says_what_it_removes(out: Path, uldp: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)
    save_late(out, 1, days=8)
    for options, said in (
        (["--dry-run"], "would remove 9 files of older panes, 0 of late"),
        (["--keep", "7d"], "removed 9 files of older panes, 1 of late reports, 0 of rejected reports"),
        (["--keep", "7d"], f"removed {NOTHING}; 0 bytes\n"),
    ):
        assert uldp("prune", out, *options)[1].startswith(f"{out}: {said}")

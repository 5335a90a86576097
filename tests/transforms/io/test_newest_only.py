"""A job that keeps the newest panes only: readers find the same newest panes, and each has one file."""

from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.io.filesystems import FileSystems

import tests.fakes.memory  # noqa: F401 (registers a file system)
from tests import build
from tests.pane_files import statistic_file
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import Superseded
from uldp.schemas.records import Message, Missing
from uldp.schemas.rejected import Rejected
from uldp.schemas.statistic import Statistic
from uldp.transforms.aggregated import Aggregated
from uldp.transforms.io.durable_files import remove_file, write_file
from uldp.transforms.io.results.write import WriteResults

HOUR = 3_600_000


def pane(revision: int, n: int, *, flags: tuple[str, ...] = (), hour: int = 0) -> Statistic:
    before = Superseded(revision - 1, n - 1) if revision else None
    kind = "early" if revision < 3 else "on_time"
    fired = build.pane([n, 1], kind, revision, start=hour * HOUR, supersedes=before)
    return replace(fired, flags=flags)


def write(out: Path, panes: list[Statistic], *, newest_only: bool) -> None:
    """Write each pane in a bundle of its own, as a stream does."""
    for each in panes:
        estimates = [] if each.apart else [build.estimate(each, [1.0, 0.0], [0.1, 0.1])]
        with beam.Pipeline("FnApiRunner") as pipeline:
            aggregated = Aggregated(
                pipeline | "E" >> beam.Create(estimates).with_output_types(Estimate),
                pipeline | "C" >> beam.Create([each]).with_output_types(Statistic),
                pipeline | "L" >> beam.Create([]).with_output_types(Message),
                pipeline | "R" >> beam.Create([]).with_output_types(Rejected),
                pipeline | "M" >> beam.Create([]).with_output_types(Missing),
            )
            _ = aggregated | WriteResults(str(out), newest_only=newest_only)


def files(out: Path) -> list[str]:
    return sorted(str(path.relative_to(out)) for path in out.rglob("*.avro"))


PANES = [pane(0, 2, flags=("few_reports",)), pane(1, 3, flags=("few_reports",)), pane(2, 8), pane(3, 9)]


def test_the_newest_pane_of_each_window_is_the_same_and_has_one_file(tmp_path: Path) -> None:
    every, newer = tmp_path / "all", tmp_path / "newest"
    write(every, PANES, newest_only=False)
    write(newer, PANES, newest_only=True)
    assert len(ResultsFolder(every).panes()) == len(PANES)
    assert ResultsFolder(newer).panes() == newest(ResultsFolder(every).panes())
    assert ResultsFolder(newer).estimates() == newest(ResultsFolder(every).estimates())
    name = "c-v1.19700101T000000Z--19700101T010000Z.000003"
    assert files(newer) == [f"counts/{name}.avro", f"estimates/{name}.mle.avro"]


def test_cells_that_are_apart_go_with_their_pane(tmp_path: Path) -> None:
    write(tmp_path, PANES[:2], newest_only=True)
    assert [each.n for each in ResultsFolder(tmp_path, private=tmp_path).statistics()] == [PANES[1].n]
    write(tmp_path, PANES[2:3], newest_only=True)
    assert files(tmp_path / "few") == []


def test_a_newer_pane_of_an_earlier_run_stays(tmp_path: Path) -> None:
    """A run that is started again counts its revisions from 0, and its first panes have received fewer reports."""
    earlier = pane(5, 100)
    write_file(str(tmp_path / (named := statistic_file(earlier))[0]), named[1])
    write(tmp_path, PANES[2:], newest_only=True)
    assert [(each.pane.revision, each.n) for each in newest(ResultsFolder(tmp_path).panes())] == [(5, earlier.n)]


@pytest.mark.parametrize("scheme", ["", "mem://"])
def test_a_file_that_is_gone_is_removed_again(tmp_path: Path, scheme: str) -> None:
    path = f"{scheme}{tmp_path}/pane.avro"
    write_file(path, b"pane")
    assert FileSystems.exists(path)
    for _ in range(2):
        remove_file(path)
        assert not FileSystems.exists(path)

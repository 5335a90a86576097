"""Estimates that are read one at a time; ``test_files_of_all`` holds that they are those that are read at once."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.pane_files import save_panes
from tests.pipelines.results.files_of_all import estimate, pane, results
from tests.pipelines.results.samples import COUNTS, ESTIMATE, at, folder_of, save
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.flags import Flag
from uldp.schemas.pane import Accounting, Pane, PaneHeader, PaneKind


def test_a_window_that_is_withheld_is_not_published_and_its_cells_are_not_held(tmp_path: Path) -> None:
    save(tmp_path, ESTIMATE, at(1))
    stopped = replace(COUNTS, accounting=Accounting(200, 100, 0, 0, 100), flags=(Flag.REJECTED_RATIO.value,))
    save_panes(tmp_path, "counts", [replace(stopped, pane=Pane(PaneKind.LATE, 9))])
    found = folder_of(tmp_path).published()
    assert [each.key for each in found] == [at(1).key]
    assert [(each.key, type(each)) for each in found.unpublished] == [(ESTIMATE.key, PaneHeader)]


def test_of_equal_panes_one_is_published(tmp_path: Path) -> None:
    """A job that ran again wrote the same pane with another one."""
    panes = [pane("c", hour) for hour in range(2)]
    one, other = map(estimate, panes)
    save_panes(results(tmp_path), "counts", panes)
    save_panes(tmp_path, "estimates", [one])
    save_panes(tmp_path, "estimates", [one, other])
    assert list(ResultsFolder(tmp_path).published()) == ResultsFolder(tmp_path).current().estimates == [one, other]


def test_a_pane_that_prune_removes_meanwhile_is_named(tmp_path: Path) -> None:
    save(tmp_path, at(0), at(1))
    found = folder_of(tmp_path).published()
    first, second = sorted((tmp_path / "estimates").rglob("*.avro"))
    second.unlink()
    assert len(found) == 2
    with pytest.raises(ResultsError, match="uldp prune removed it meanwhile; run the command again") as error:
        list(found)
    assert str(second) in str(error.value)
    assert first.exists()

"""The estimates that are read one at a time are those that are read at once."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests import build
from tests.build import HOUR, START
from tests.pane_files import save_panes
from tests.pipelines.results.samples import COUNTS, ESTIMATE, at, fired, folder_of, save
from tests.pipelines.results.test_shared_panes import pane, results
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.selection import ALL, Selection
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import Flag
from uldp.schemas.pane import Accounting, Pane, PaneHeader, PaneKind


def keys(estimates: list[Estimate]) -> list[tuple[object, ...]]:
    return sorted((*each.key, each.estimator, each.age) for each in estimates)


def many(out: Path) -> None:
    """Several panes of several windows by two estimators, one of which has only an early pane."""
    save(out, fired(150, 0), fired(160, 1), fired(170, 2, kind="late"), fired(160, 1, estimator="em"))
    save(out, *(at(hour, name) for hour in range(1, 4) for name in ("mle", "em")), fired(109, 0, version=2))


@pytest.mark.parametrize("make", [many, results])
@pytest.mark.parametrize(
    "selection",
    [ALL, Selection(last=2), Selection(estimator="em"), Selection(since=START + 2 * HOUR), Selection(collection="d")],
)
def test_the_same_estimates_are_chosen(make: Callable[[Path], object], selection: Selection, tmp_path: Path) -> None:
    make(tmp_path)
    at_once = folder_of(tmp_path).current(selection).estimates
    one_at_a_time = folder_of(tmp_path).published(selection)
    found = list(one_at_a_time)
    assert keys(found) == keys(at_once)
    assert len(one_at_a_time) == len(found)
    assert {repr(each.tables) for each in found} == {repr(each.tables) for each in at_once}


def test_a_window_that_is_withheld_is_not_published_and_its_cells_are_not_held(tmp_path: Path) -> None:
    save(tmp_path, ESTIMATE, at(1))
    stopped = replace(COUNTS, accounting=Accounting(200, 100, 0, 0, 100), flags=(Flag.REJECTED_RATIO.value,))
    save_panes(tmp_path, "counts", [replace(stopped, pane=Pane(PaneKind.LATE, 9))])
    found = folder_of(tmp_path).published()
    assert [each.key for each in found] == [at(1).key]
    assert [(each.key, type(each)) for each in found.unpublished] == [(ESTIMATE.key, PaneHeader)]


def test_a_damaged_file_hides_its_window(tmp_path: Path) -> None:
    save(tmp_path, at(0), at(1), at(2))
    path = sorted((tmp_path / "estimates").rglob("*.avro"))[1]
    path.write_bytes(path.read_bytes()[:-9])
    damaged: list[ResultsError] = []
    assert [each.key for each in folder_of(tmp_path, damaged.append).published()] == [at(0).key, at(2).key]
    assert len(damaged) == 1


def test_of_equal_panes_one_is_published(tmp_path: Path) -> None:
    """A job that ran again wrote the same pane with another one."""
    one, other = (build.estimate(pane(hour), [1, 0], [0.1, 0.1]) for hour in range(2))
    save_panes(tmp_path, "counts", [pane(0), pane(1)])
    save_panes(tmp_path, "estimates", [one])
    save_panes(tmp_path, "estimates", [one, other])
    assert list(folder_of(tmp_path).published()) == folder_of(tmp_path).current().estimates == [one, other]


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

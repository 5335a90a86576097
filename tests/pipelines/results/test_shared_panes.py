"""Files with panes of several windows: estimators and windows are selected, and old panes are removed."""

from pathlib import Path

from tests import build
from tests.build import HOUR, START
from tests.pane_files import save_panes
from tests.pipelines.results.samples import folder_of
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.prune import prune
from uldp.pipelines.results.selection import Selection
from uldp.schemas.statistic import Statistic


def pane(hour: int, n: int = 3, revision: int = 0) -> Statistic:
    return build.pane([n, 0], start=START + hour * HOUR, revision=revision)


def results(out: Path) -> dict[str, Path]:
    """A directory with three windows, the counts and the estimates of each estimator in a shared file."""
    (out / "specs" / "c-v1").mkdir(parents=True)
    (out / "specs" / "c-v1" / "spec.yaml").touch()
    panes = [pane(hour) for hour in range(3)]
    return {"": save_panes(out, "counts", panes)} | {
        name: save_panes(out, "estimates", [build.estimate(each, [1, 0], [0.1, 0.1], estimator=name) for each in panes])
        for name in ("mle", "em")
    }


def test_windows_and_estimators_of_shared_files_are_selected(tmp_path: Path) -> None:
    results(tmp_path)
    chosen = folder_of(tmp_path).current(Selection(last=2, estimator="em")).estimates
    assert [(each.window_start, each.estimator) for each in chosen] == [
        (START + HOUR, "em"),
        (START + 2 * HOUR, "em"),
    ]


def test_a_file_of_an_estimator_that_is_not_selected_is_not_opened(tmp_path: Path) -> None:
    results(tmp_path)["mle"].write_bytes(b"damaged")
    chosen = folder_of(tmp_path).current(Selection(estimator="em")).estimates
    assert len(chosen) == 3


def test_a_shared_file_is_removed_when_all_its_panes_are_replaced(tmp_path: Path) -> None:
    shared = results(tmp_path)[""]
    for hour in range(3):
        assert prune(tmp_path, before=0).panes == 0
        save_panes(tmp_path, "counts", [pane(hour, 4, 1)])
    assert prune(tmp_path, before=0).panes == 1
    assert not shared.exists()
    assert [each.n for each in newest(ResultsFolder(tmp_path).statistics())] == [4, 4, 4]

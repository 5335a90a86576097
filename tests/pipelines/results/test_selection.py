"""What a reader of results chooses, by the names of files."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.build import HOUR, START
from tests.pane_files import statistic_file
from tests.pipelines.results.samples import at, folder_of, hours, save, statistic_of
from uldp.pipelines.results.selection import ALL, Selection
from uldp.schemas.errors import RequestError
from uldp.transforms.io.durable_files import write_file

#: One hour of ``old``, three of ``new`` in two versions that overlap.
WINDOWS = [("old", 1, 0, HOUR), ("new", 1, 0, HOUR), ("new", 1, HOUR, 2 * HOUR), ("new", 2, HOUR, 2 * HOUR)]
WINDOWS += [("new", 2, 2 * HOUR, 3 * HOUR)]


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        (ALL, [0, 1, 2, 3, 4]),
        (Selection(collection="old"), [0]),
        (Selection(collection="nobody"), []),
        (Selection(since=HOUR - 1), [0, 1, 2, 3, 4]),
        (Selection(since=HOUR), [2, 3, 4]),
        (Selection(until=HOUR), [0, 1]),
        (Selection(until=HOUR + 1), [0, 1, 2, 3]),
        (Selection(until=HOUR, last=1), [0, 1]),
        (Selection(last=1), [0, 4]),
        (Selection(last=2), [0, 2, 3, 4]),
        (Selection(last=9), [0, 1, 2, 3, 4]),
        (Selection(collection="new", since=HOUR, last=1), [4]),
        (Selection(estimator="mle"), [0, 1, 2, 3, 4]),
    ],
)
def test_windows(selection: Selection, chosen: list[int]) -> None:
    assert selection.windows(WINDOWS) == {WINDOWS[index] for index in chosen}


class TestSelection:
    @pytest.mark.parametrize(
        ("selection", "found"),
        [
            (Selection(), [0, 0, 1, 1, 2, 2]),
            (Selection(since=START + 2 * HOUR), [2, 2]),
            (Selection(until=START + 2 * HOUR, last=1), [1, 1]),
            (Selection(last=1, estimator="mle", collection="c"), [2]),
        ],
    )
    def test_chooses(self, tmp_path: Path, selection: Selection, found: list[int]) -> None:
        save(tmp_path, *(at(hour, estimator) for hour in range(3) for estimator in ("mle", "em")))
        estimates, *_ = folder_of(tmp_path).current(selection)
        assert hours(estimates) == found

    def test_files_of_others_are_not_opened(self, tmp_path: Path) -> None:
        save(tmp_path, *(at(hour, estimator) for hour in range(3) for estimator in ("mle", "em")))
        for path in tmp_path.rglob("*.avro"):
            if ".20260101T110000Z" not in path.name or path.name.endswith(".em.avro"):
                path.write_bytes(b"opened")
        estimates, *_ = folder_of(tmp_path).current(Selection(last=1, estimator="mle"))
        assert hours(estimates) == [2]

    def test_a_window_without_an_estimate_is_one_of_the_last(self, tmp_path: Path) -> None:
        save(tmp_path, at(0))
        name, content = statistic_file(replace(statistic_of(at(1)), flags=("few_reports",)))
        write_file(str(tmp_path / name), content)
        estimates, (pane,), *_ = folder_of(tmp_path).current(Selection(last=1))
        assert (estimates, pane.window_start) == ([], START + HOUR)

    def test_names_are_checked_against_specs_and_files(self, tmp_path: Path) -> None:
        save(tmp_path, at(0, "em"))
        folder = folder_of(tmp_path)
        assert folder.select() == ALL
        chosen = folder.select(collection="c", since=START, until=START + HOUR, last=2)
        assert chosen == Selection(collection="c", since=START, until=START + HOUR, last=2)
        assert [folder.select(estimator=name).estimator for name in ("em", "auto")] == ["em", "auto"]
        with pytest.raises(
            RequestError, match=r"the results have no estimator 'emm'; did you mean 'em'[?] choose one of: auto, em"
        ):
            folder.select(estimator="emm")
        with pytest.raises(RequestError, match=r"the results have no collection 'd'; choose one of: c$"):
            folder.select(collection="d")


@pytest.mark.parametrize(("most", "last"), [(9, None), (5, None), (4, 2), (3, 1), (2, 1), (1, 1)])
def test_the_newest_windows_of_each_collection_that_fit(most: int, last: int | None) -> None:
    """Windows of two versions that end together are one of ``last``."""
    assert ALL.at_most(WINDOWS, most) == Selection(last=last)

"""Directories of results as readers find them, and what they choose there."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from tests import build
from tests.build import HOUR, START
from tests.pane_files import statistic_file
from tests.pipelines.results.samples import (
    ESTIMATE,
    REJECTED,
    SPEC,
    at,
    fired,
    folder_of,
    hours,
    save,
    statistic_of,
    write,
    write_estimate,
)
from uldp.pipelines.jobs.kept_specs import keep_specs, kept_specs
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.selection import ALL, Selection
from uldp.pipelines.results.specs import KeptSpecs, spec_of
from uldp.schemas.errors import RequestError
from uldp.schemas.framing import load_schema, parse_schema
from uldp.transforms.io.durable_files import write_file


class TestReading:
    def test_rejected(self, tmp_path: Path) -> None:
        write(tmp_path / "rejected/a.avro", load_schema("rejected"), REJECTED.to_avro(), REJECTED.to_avro())
        assert list(ResultsFolder(tmp_path).rejected()) == [REJECTED]

    def test_a_file_that_is_still_written_is_left_out(self, tmp_path: Path) -> None:
        write_estimate(tmp_path)
        for directory in ("estimates", "rejected"):
            (tmp_path / directory).mkdir(parents=True, exist_ok=True)
            (tmp_path / directory / ".tmp-1.avro").write_bytes(b"half")
        assert len(ResultsFolder(tmp_path).estimates()) == 1
        assert list(ResultsFolder(tmp_path).rejected()) == []

    @pytest.mark.parametrize(("path", "private"), [("nowhere", None), ("nowhere", "."), (".", "nowhere")])
    def test_no_directory(self, tmp_path: Path, path: str, private: str | None) -> None:
        with pytest.raises(ResultsError, match="nowhere: no such file or directory; give a directory that holds"):
            ResultsFolder(tmp_path / path, private=None if private is None else tmp_path / private)

    def test_results_of_an_earlier_version_are_named(self, tmp_path: Path) -> None:
        (tmp_path / "counts/c-v1/20260101T090000Z--20260101T100000Z").mkdir(parents=True)
        with pytest.raises(ResultsError, match=f"{tmp_path}/counts: has folders, as results of an earlier version"):
            ResultsFolder(tmp_path).panes()

    def test_no_results(self, tmp_path: Path) -> None:
        with pytest.raises(ResultsError, match=f"{tmp_path}: holds nothing; give a directory that holds results"):
            _ = ResultsFolder(tmp_path).specs

    @pytest.mark.parametrize("end", [0, 40, -30], ids=["empty", "cut in the header", "cut in a block"])
    def test_a_damaged_file_is_named(self, tmp_path: Path, end: int) -> None:
        path = write_estimate(tmp_path)
        path.write_bytes(path.read_bytes()[:end])
        with pytest.raises(
            ResultsError, match=f"{path}: damaged, or not an Avro file of schema estimate .*; remove it and"
        ):
            ResultsFolder(tmp_path).estimates()

    @pytest.mark.parametrize("name", ["Estimate", "SupportCounts"])
    def test_a_file_of_an_unknown_schema_is_named(self, name: str, tmp_path: Path) -> None:
        schema = parse_schema({"type": "record", "name": f"uldp.{name}", "fields": [{"name": "n", "type": "long"}]})
        path = write(write_estimate(tmp_path), schema, {"n": 1})
        with pytest.raises(
            ResultsError, match=rf"{path}: damaged, .* that uldp does not know, named 'uldp.{name}'\); remove it and"
        ):
            ResultsFolder(tmp_path).estimates()

    def test_a_path_that_cannot_be_opened_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "rejected/a.avro"
        path.mkdir(parents=True)
        with pytest.raises(ResultsError, match=f"{path}: Is a directory; check the path and its permissions"):
            list(ResultsFolder(tmp_path).rejected())


class TestSpecs:
    @pytest.fixture
    def out(self, tmp_path: Path) -> Path:
        (tmp_path / "specs/c-v1").mkdir(parents=True)
        (tmp_path / "specs/c-v1/spec.yaml").write_text(SPEC)
        return tmp_path

    def test_of_an_estimate(self, out: Path) -> None:
        assert spec_of(ESTIMATE, ResultsFolder(out).specs).labels == ["red", "green", "blue"]

    def test_missing(self, out: Path) -> None:
        with pytest.raises(ResultsError, match=r"specs/c-v2/spec\.yaml is missing .* copy the spec there"):
            spec_of(fired(1, 0, version=2), ResultsFolder(out).specs)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("[red, green, blue]", "[red, green, blue, black]"),
            ("[{name: home}]", "[{name: home}, {name: others}]"),
            ("epsilon: 1.5", "epsilon: 1.6"),
            ("urr", "urap"),
        ],
    )
    def test_of_another_device_half(self, out: Path, old: str, new: str) -> None:
        (out / "specs/c-v1/spec.yaml").write_text(SPEC.replace(old, new))
        with pytest.raises(
            ResultsError, match=r"specs/c-v1/spec\.yaml is not the spec .* restore the spec of that job"
        ):
            spec_of(ESTIMATE, ResultsFolder(out).specs)


def test_the_name_of_a_folder_is_as_good_as_its_path(tmp_path: Path) -> None:
    folder = ResultsFolder(cast(Path, str(tmp_path)), private=cast(Path, str(tmp_path)))
    assert (folder.path, folder.private) == (tmp_path, tmp_path)
    with pytest.raises(ResultsError, match=r"^nowhere: no such file or directory; give a dir"):
        ResultsFolder(cast(Path, "nowhere"))


def test_two_kept_specs_of_one_version_are_refused(tmp_path: Path) -> None:
    keep_specs(str(tmp_path), [build.spec()])
    assert KeptSpecs(tmp_path).keys() == kept_specs(str(tmp_path)).keys() == {("c", 1)}
    (kept,) = (tmp_path / "specs").iterdir()
    shutil.copytree(kept, copy := kept.with_name("a-copy"))
    for read in (KeptSpecs, lambda out: kept_specs(str(out)), lambda out: ResultsFolder(out).specs):
        with pytest.raises(ResultsError, match=rf"^{copy}: a job gives the folder of this spec another name; remove"):
            read(tmp_path)
    copy.rename(copy := kept.with_name("c-v2"))
    with pytest.raises(ResultsError, match=rf"^{copy}: a job gives the folder of this spec another name; remove"):
        dict(KeptSpecs(tmp_path))


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


@pytest.mark.parametrize(("most", "last"), [(9, None), (5, None), (4, 2), (3, 1), (2, 1), (1, 1)])
def test_the_newest_windows_of_each_collection_that_fit(most: int, last: int | None) -> None:
    """Windows of two versions that end together are one of ``last``."""
    assert ALL.at_most(WINDOWS, most) == Selection(last=last)


class TestSelection:
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

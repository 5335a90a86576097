"""Directories of results as readers find them."""

from pathlib import Path
from typing import cast

import pytest

from tests.pipelines.results.samples import ESTIMATE, REJECTED, SPEC, fired, write, write_estimate
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.specs import spec_of
from uldp.schemas.framing import load_schema, parse_schema


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

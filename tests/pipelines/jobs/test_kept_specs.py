"""The specs beside results need no file, and a job that starts again reads and writes only those that have changed."""

import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pydantic import BaseModel

from tests import build
from uldp.pipelines.jobs import kept_specs as module
from uldp.pipelines.jobs import outputs
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.kept_specs import is_kept, keep_specs, kept_specs
from uldp.pipelines.jobs.outputs import claimed
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.specs import kept_text
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.kinds import OWN
from uldp.schemas.specs.specfile import SpecError

LABELS = {"labels_file": "labels.csv"}
OF_ATTRIBUTE = {"sensitive": ["gym"], "tags": [{"name": "home", "background": "home.csv"}]}
SPELLED = {"longest": 8, "pieces_file": "pieces.csv", "alphabet": "a-z"}
PREFIXES = {"name": "prefixes", "epsilon": 1.0, "cohorts": 8, "depth": 2}
DOMAINS: dict[str, dict[str, Any]] = {
    "values": {
        "domain": LABELS,
        "sensitive": ["home"],
        "tags": [{"name": "in", "zones": "zones.csv", "zone_epsilon": 0.5}, {"name": "out", "background": "home.csv"}],
    },
    "set": {"domain": {"set": {"of": LABELS, "at_most": 2}}, "mechanism": {"name": "set-ss", "epsilon": 1.0}},
    "pairs": {
        "domain": {"pairs": {"of": LABELS, "at_most": 2, "low": 0, "high": 1}},
        "mechanism": {"name": "set-ss", "epsilon": 1.0},
    },
    "strings": {"domain": {"strings": SPELLED}, "mechanism": PREFIXES},
    "string-set": {"domain": {"set": {"of": {"strings": SPELLED}, "at_most": 2}}, "mechanism": PREFIXES},
    "record": {
        "domain": {"record": {"app": LABELS | OF_ATTRIBUTE, "new": {"size": 2}}},
        "mechanism": {"name": "sample-one", "epsilon": 1.0, "of": {"app": {"name": "urr"}, "new": {"name": "rr"}}},
    },
}
FILES = {
    "labels.csv": "value\nhome\nwork\ngym\n",
    "pieces.csv": "piece\nho\nme\n",
    "home.csv": "home,1\nwork,3\n",
    "zones.csv": "value,zone\ngym,south\nhome,north\nwork,south\n",
}


def test_each_kind_that_names_a_file_is_tried() -> None:
    models = {name: kind for name, kind in OWN.items() if issubclass(kind, BaseModel)}
    naming = {name for name, model in models.items() if "_file" in json.dumps(model.model_json_schema())}
    assert naming == DOMAINS.keys() - {"values", "record"}


@pytest.mark.parametrize("kind", DOMAINS)
def test_a_kept_spec_has_what_its_files_list(kind: str, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    spec = CollectionSpec.parse(build.MINIMAL | DOMAINS[kind], base=tmp_path)
    keep_specs(str(tmp_path / "out"), [spec])
    for path in tmp_path.glob("*.csv"):
        path.unlink()
    (kept,) = kept_specs(str(tmp_path / "out")).values()
    assert kept.device_digest == spec.device_digest
    for name, variable in spec.variables.items():
        read = kept.variables[name]
        assert (read.labels, read.background.tobytes()) == (variable.labels, variable.background.tobytes())
        assert [each and each.labels for each in read.zones] == [each and each.labels for each in variable.zones]


#: YAML has a rule of its own for each: breaks of lines, words and numbers, marks, spaces at the ends, long lines.
OF_YAML = ["\x85", "\u2028", "no", "~", "1e3", "a: b", "- a", " a ", "#", "'", '"\\', "word " * 40, "é", "\U0001f600"]


def test_a_kept_spec_has_any_label_as_it_was(tmp_path: Path) -> None:
    spec = build.spec(domain={"labels": OF_YAML})
    keep_specs(str(tmp_path), [spec])
    (kept,) = kept_specs(str(tmp_path)).values()
    assert list(kept.labels) == OF_YAML
    assert kept.device_digest == spec.device_digest


def records(tmp_path: Path, **changes: object) -> list[CollectionSpec]:
    """Two specs; one has files beside it."""
    (tmp_path / "home.csv").write_text("0,1\n1,3\n", encoding="utf-8")
    tagged = build.MINIMAL | {"sensitive": [0], "tags": [{"name": "home", "background": "home.csv"}]} | changes
    return [CollectionSpec.parse(tagged, base=tmp_path), build.spec(collection="other")]


def claim(out: Path, specs: list[CollectionSpec]) -> list[str]:
    """Begin and end a job; returns the collections whose specs it has written, and asserts how often it printed any."""
    job = JobIdentity.of("stream", "s", "", specs)
    with (
        mock.patch.object(outputs, "keep_specs", side_effect=keep_specs) as kept,
        mock.patch.object(module, "kept_text", side_effect=kept_text) as printed,
        claimed(str(out), specs, job),
    ):
        pass
    (written,) = kept.call_args_list
    names = [spec.collection for spec in written.args[1]]
    assert printed.call_count <= len(specs) + len(names)
    return names


def test_a_job_that_starts_again_writes_the_specs_that_have_changed(tmp_path: Path) -> None:
    out, specs = tmp_path / "out", records(tmp_path)
    names = [spec.collection for spec in specs]
    assert claim(out, specs) == names
    files = {path: path.stat().st_ino for path in out.glob("specs/*/*")}
    assert len(files) == 3
    assert claim(out, specs) == []
    assert {path: path.stat().st_ino for path in out.glob("specs/*/*")} == files
    later = records(tmp_path, limits={"min_reports": 7})
    assert claim(out, later) == names[:1]
    assert kept_specs(str(out))[later[0].key].limits.min_reports == 7


def test_a_kept_spec_that_somebody_has_changed_is_read_and_written_again(tmp_path: Path) -> None:
    out, specs = tmp_path / "out", records(tmp_path)
    claim(out, specs)
    (out / "late").mkdir()
    (out / "late" / "one.avro").touch()  # else nothing is lost if another job takes the directory
    folder = out / "specs" / f"{specs[0].collection}-v1"
    (folder / "home.csv").write_text("value,weight\n0,1\n", encoding="utf-8")
    assert not is_kept(specs[0], out)
    assert is_kept(specs[1], out)
    assert claim(out, specs) == [specs[0].collection]
    text = (folder / "spec.yaml").read_text(encoding="utf-8")
    (folder / "spec.yaml").write_text(text.replace("epsilon: 1.0", "epsilon: 2.0"), encoding="utf-8")
    with pytest.raises(ResultsError, match=r"holds results of .* version 1 with another mechanism\.epsilon"):
        claim(out, specs)
    (folder / "spec.yaml").write_text(text[:-4], encoding="utf-8")
    with pytest.raises(SpecError, match="its end is missing"):
        claim(out, specs)

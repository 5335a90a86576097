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
from uldp.pipelines.jobs.kept_specs import KeptSpec, is_kept, keep_specs, kept_specs
from uldp.pipelines.jobs.outputs import claimed
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.specs import kept_text
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.kinds import OWN
from uldp.schemas.specs.specfile import SpecError

LABELS = {"labels_file": "labels.csv"}
SPELLED = {"longest": 8, "pieces_file": "pieces.csv", "alphabet": "a-z"}
DOMAINS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "values": (LABELS, {"name": "rr", "epsilon": 1.0}),
    "set": ({"set": {"of": LABELS, "at_most": 2}}, {"name": "set-ss", "epsilon": 1.0}),
    "pairs": ({"pairs": {"of": LABELS, "at_most": 2, "low": 0, "high": 1}}, {"name": "set-ss", "epsilon": 1.0}),
    "strings": ({"strings": SPELLED}, {"name": "prefixes", "epsilon": 1.0, "cohorts": 8, "depth": 2}),
    "string-set": (
        {"set": {"of": {"strings": SPELLED}, "at_most": 2}},
        {"name": "prefixes", "epsilon": 1.0, "cohorts": 8, "depth": 2},
    ),
    "record": (
        {"record": {"app": LABELS, "new": {"size": 2}}},
        {"name": "sample-one", "epsilon": 1.0, "of": {"app": {"name": "rr"}, "new": {"name": "rr"}}},
    ),
}


def test_each_kind_that_names_a_file_is_tried() -> None:
    models = {name: kind for name, kind in OWN.items() if issubclass(kind, BaseModel)}
    naming = {name for name, model in models.items() if "_file" in json.dumps(model.model_json_schema())}
    assert naming == DOMAINS.keys() - {"values", "record"}


@pytest.mark.parametrize("kind", DOMAINS)
def test_a_kept_spec_has_what_its_files_list(kind: str, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("value\nhome\nwork\ngym\n", encoding="utf-8")
    (tmp_path / "pieces.csv").write_text("piece\nho\nme\n", encoding="utf-8")
    domain, mechanism = DOMAINS[kind]
    spec = CollectionSpec.parse(build.MINIMAL | {"domain": domain, "mechanism": mechanism}, base=tmp_path)
    keep_specs(str(tmp_path / "out"), [spec])
    for path in tmp_path.glob("*.csv"):
        path.unlink()
    (kept,) = kept_specs(str(tmp_path / "out")).values()
    assert kept.device_digest == spec.device_digest
    assert [each.labels for each in kept.variables.values()] == [each.labels for each in spec.variables.values()]


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


def test_what_is_kept_of_a_spec_tells_it_from_others_in_any_order_of_keys(tmp_path: Path) -> None:
    one, other = records(tmp_path)
    (again,) = (spec for spec in records(tmp_path) if spec.key == one.key)
    assert KeptSpec.of(one) == KeptSpec.of(again)
    assert KeptSpec.of(one).digest == KeptSpec.of(again).digest
    (tmp_path / "home.csv").write_text("0,1\n1,1\n", encoding="utf-8")
    changed = CollectionSpec.parse(json.loads(one.model_dump_json()), base=tmp_path)
    assert len({KeptSpec.of(spec).digest for spec in (one, other, changed)}) == 3
    assert KeptSpec.of(one) != KeptSpec.of(changed)

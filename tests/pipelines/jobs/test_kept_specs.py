"""The specs beside results need no file: what files list is in them, whatever kind of domain names the file."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests import build
from uldp.pipelines.jobs.kept_specs import keep_specs, kept_specs
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.kinds import OWN

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

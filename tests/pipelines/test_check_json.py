"""uldp check --json and uldp schema: what programs and editors read."""

import json
from pathlib import Path

from tests.pipelines.command import SPEC, Run
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.json_schema import spec_schema


def test_a_valid_spec_has_its_facts(uldp: Run) -> None:
    code, out, _ = uldp("check", SPEC, "--json", "--users", "5000", "--days", "2")
    found = json.loads(out)
    spec = CollectionSpec.load(SPEC)
    assert code == 0
    assert (found["spec"], found["valid"], found["users"]) == (SPEC, True, 5000)
    assert (found["collection"], found["version"]) == spec.key
    assert (found["device_digest"], found["epsilon"]) == (spec.device_digest, spec.mechanism.epsilon)
    said = uldp("check", SPEC, "--users", "5000", "--days", "2")[1]
    for line in (*found["text"], *found["exposure"]["lines"], *found["warnings"]):
        assert line in said


def test_an_invalid_spec_does_not_hide_the_others(uldp: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("collection: c\nversion: 1\nwindow: {}\n")
    code, out, err = uldp("check", bad, SPEC, tmp_path / "nowhere.yaml", "--json")
    first, second, third = map(json.loads, out.splitlines())
    assert (code, err) == (1, "error: 2 of 3 specs are invalid\n")
    assert (first["valid"], second["valid"], third["valid"]) == (False, True, False)
    assert len(first["errors"]) == 3
    assert all(error.startswith(f"{bad}: ") for error in first["errors"])


def test_the_schema_is_printed(uldp: Run) -> None:
    code, out, _ = uldp("schema")
    assert (code, json.loads(out)) == (0, spec_schema())

"""The JSON Schema of specs takes every spec that is one, and refuses what no key can hold."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("jsonschema")
from jsonschema import Draft202012Validator

from tests import build
from tests.mechanisms.protocols import specs
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.families import mechanism_names
from uldp.schemas.specs.json_schema import spec_schema
from uldp.schemas.specs.specfile import SpecError

ROOT = Path(__file__).parents[2]
SCHEMA = spec_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


def mistakes(spec: object) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(spec)]


def shown() -> Iterator[Any]:
    """Every whole spec that a page shows or a folder of examples has, but for that of a package, which needs this."""
    paths = [path for path in sorted(ROOT.glob("examples/*/*.yaml")) if not path.with_name("pyproject.toml").exists()]
    texts = [(path, path.read_text(encoding="utf-8")) for path in paths]
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]:
        blocks = re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        texts += [(page, block) for block in blocks]
    for number, (path, text) in enumerate(texts):
        spec = yaml.safe_load(text)
        if isinstance(spec, dict) and {"collection", "version", "window"} <= spec.keys():
            yield pytest.param(spec, id=f"{path.name}-{number}")


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    references = set(re.findall(r"'\$ref': '#/\$defs/([^']+)'", str(SCHEMA)))
    assert references <= SCHEMA["$defs"].keys()
    assert "x-uldp" not in str(SCHEMA)


@pytest.mark.parametrize("spec", list(shown()))
def test_every_spec_that_is_shown_fits(spec: object) -> None:
    assert mistakes(spec) == []


@pytest.mark.parametrize("name", list(specs()))
def test_a_spec_of_each_mechanism_fits(name: str) -> None:
    given = build.MINIMAL | specs()[name]
    assert mistakes(given) == []
    assert mistakes(CollectionSpec.parse(given).model_dump(mode="json", exclude_none=True)) == []


@pytest.mark.parametrize("keys", [{"name": "urap", "theta": "auto"}, {"name": "uss", "w": "auto"}], ids=str)
def test_words_beside_numbers_fit(keys: dict[str, Any]) -> None:
    mechanism = keys | {"epsilon": 1.0}
    CollectionSpec.parse(build.MINIMAL | {"mechanism": mechanism})
    assert mistakes(build.MINIMAL | {"mechanism": mechanism}) == []
    other = {key: "best" for key in keys if key != "name"}
    assert mistakes(build.MINIMAL | {"mechanism": mechanism | other}) != []


def test_every_mechanism_is_offered() -> None:
    offered = [each["$ref"].rpartition("mechanism-")[2] for each in SCHEMA["$defs"]["mechanism"]["oneOf"]]
    assert offered == [*mechanism_names()]


@pytest.mark.parametrize(
    "keys",
    [
        {"colection": "c"},
        {"version": "1"},
        {"domain": {"size": 5, "labels": ["a", "b"]}},
        {"mechanism": {"name": "DE", "epsilon": 1.0}},
        {"mechanism": {"name": "urr"}},
        {"mechanism": {"name": "sample-one", "epsilon": 1.0, "of": {"a": {"name": "sample-one"}}}},
        {
            "domain": {"record": {"os": {"size": 2}, "crash": {"size": 2}}},
            "mechanism": {"name": "marginals", "epsilon": 1.0, "views": "paris"},
        },
        {"window": {"size": "1h", "lateness": "1h"}},
        {"by": {"An OS": ["one", "two"]}},
        {"limits": {"when_exceeded": "panic"}},
        {"retired": "yes"},
    ],
    ids=str,
)
def test_a_bad_spec_does_not(keys: dict[str, Any]) -> None:
    bad = build.MINIMAL | keys
    with pytest.raises(SpecError):
        CollectionSpec.parse(bad)
    assert mistakes(bad) != []


def test_keys_are_described_as_in_the_source() -> None:
    assert SCHEMA["properties"]["dedup"]["description"].startswith("What a job remembers of a report's id")
    assert SCHEMA["$defs"]["Tag"]["properties"]["strength"]["description"].startswith("The number of draws")
    assert SCHEMA["$defs"]["mechanism-prefixes"]["properties"]["step"]["description"].startswith("By how many pieces")

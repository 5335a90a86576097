"""The specs of the page about specs are valid, and it explains each mechanism."""

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mechanism_names import MechanismName

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "spec.md").read_text(encoding="utf-8")
LITERATURE = (DOCS / "mechanisms.md").read_text(encoding="utf-8")
SPECS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", SPECS, ids=lambda text: text.splitlines()[0])
def test_each_spec_is_valid(text: str) -> None:
    CollectionSpec.parse(yaml.safe_load(text))


def test_each_kind_of_domain_has_a_spec() -> None:
    kinds = {CollectionSpec.parse(yaml.safe_load(text)).domain.kind for text in SPECS}
    assert kinds == {"values", "number", "strings", "record"}


@pytest.mark.parametrize("name", get_args(MechanismName))
def test_each_mechanism_is_named(name: str) -> None:
    assert f"`{name}`" in PAGE or f"name: {name}" in PAGE


@pytest.mark.parametrize("name", sorted({*get_args(MechanismName)} - {"identity"}))
def test_each_mechanism_has_a_place_in_the_literature(name: str) -> None:
    assert any(f"`{name}`" in row.split("|")[2] for row in LITERATURE.splitlines() if row.startswith("|"))

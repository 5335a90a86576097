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


#: The systems of the survey that this project will not have.
REFUSED = """
BLENDER, THRESH, A-RAPPOR, Fanti, personalized itemsets, LoPub, LoCop, copulas, Lasso, PrivKVM, PrivKVM+, LDPMiner,
TreeHist, LDPart, PrivTrie, Bun et al., S-Hist, O-RR, O-RAPPOR, CMS, additive mechanism, SAFARI, k-means, SVR,
gradient descent, LATENT, FedSel, FedLDA, bandits, graphs
"""


@pytest.mark.parametrize("system", [name.strip() for name in REFUSED.split(",")])
def test_a_system_that_is_left_out_has_its_reason(system: str) -> None:
    rows = [row.split("|") for row in LITERATURE.splitlines() if row.startswith("|")]
    assert any(re.search(rf"(?<![\w-]){re.escape(system)}(?![\w+-])", row[1]) and row[-2].strip() for row in rows)


@pytest.mark.parametrize("name", sorted({*get_args(MechanismName)} - {"identity"}))
def test_each_mechanism_has_a_place_in_the_literature(name: str) -> None:
    assert any(f"`{name}`" in row.split("|")[2] for row in LITERATURE.splitlines() if row.startswith("|"))

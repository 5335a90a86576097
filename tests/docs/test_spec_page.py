"""The specs of the pages about specs are valid, and these explain each mechanism."""

import re
from pathlib import Path

import pytest
import yaml

from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.families import mechanism_names
from uldp.schemas.specs.mistakes import LEFT_OUT, folded, in_place, in_place_of

NAMES = mechanism_names()
DOCS = Path(__file__).parents[2] / "docs"
PAGES = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "spec.md", *sorted((DOCS / "spec").glob("*.md"))))
LITERATURE = (DOCS / "mechanisms.md").read_text(encoding="utf-8")
SPECS = re.findall(r"^```yaml\n(.*?)^```$", PAGES, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", SPECS, ids=lambda text: text.splitlines()[0])
def test_each_spec_is_valid(text: str) -> None:
    CollectionSpec.parse(yaml.safe_load(text))


def test_each_kind_of_domain_has_a_spec() -> None:
    kinds = {CollectionSpec.parse(yaml.safe_load(text)).domain.kind for text in SPECS}
    assert kinds == {"values", "number", "strings", "set", "string-set", "pairs", "ranking", "record"}


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


FOLDED = {folded(name) for name in NAMES}
ROWS = [row.split("|")[1:-1] for row in LITERATURE.splitlines() if row.startswith("|")]
#: The rows whose first column has a name of one word, with a capital letter.
NAMED = [(name, row) for row in ROWS for name in row[0].strip().split(", ") if re.fullmatch(r"(?=.*[A-Z])[\w-]+", name)]


@pytest.mark.parametrize(("name", "row"), [(name, row) for name, row in NAMED if name not in {"System", "Definition"}])
def test_a_spec_with_a_name_of_the_literature_is_told_what_to_write(name: str, row: list[str]) -> None:
    here = {word for quoted in re.findall("`([^`]+)`", " ".join(row[1:])) for word in quoted.split() if word in NAMES}
    remedy = in_place_of(name, NAMES)
    first = next((word for word in re.findall(r"[\w-]+", remedy) if word in NAMES), None)
    assert remedy or name.lower() in NAMES, f"{name}: name it in literature, in spec.py of the mechanism in its place"
    assert first in {None, *here} or not here


def test_a_spec_with_a_word_of_a_longer_name_is_told_what_to_write() -> None:
    longer = [row for row in ROWS if "`" in row[1] and row not in [row for _, row in NAMED]]
    untold = [
        f"{row[0].strip()}: name a word of it in literature, in spec.py of the mechanism in its place"
        for row in longer
        if not any(in_place_of(word, NAMES) or folded(word) in FOLDED for word in re.findall(r"[\w-]+", row[0]))
    ]
    assert not untold, "\n".join(untold)


def test_each_name_that_a_spec_is_told_about_is_on_the_page() -> None:
    words = {folded(word) for word in re.findall(r"[\w+-]+", LITERATURE)}
    assert {folded(name) for names in [*in_place().values(), LEFT_OUT] for name in names.split()} <= words


@pytest.mark.parametrize("write", in_place())
def test_what_to_write_begins_with_a_mechanism(write: str) -> None:
    assert re.findall(r"[\w-]+", write)[0] in NAMES

"""The table of variances in docs/research.md: formulas of papers, and the law by which errors are published."""

import math
import re

import numpy as np
import pytest

import uldp
from tests.docs.test_documents import ROOT
from uldp.mechanisms.protocol.decoder import SharesDecoder
from uldp.schemas.specs.families import mechanism_names

PAGE = (ROOT / "docs" / "research.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([a-z]+)` \| [^|]+ \| (`[^|]+`) \| ([\d.]+) \|$", PAGE, flags=re.MULTILINE)
REFERENCES = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
K, SENSITIVE, EPSILON = 100, 10, 1.0


def value_of(formula: str) -> float:
    """The formula as Python, with what it says of its names: a number or name before a parenthesis is a factor."""
    text, *named = re.findall(
        "`([^`]+)`", re.sub(r"(?<=\d) ?(?=[E(])|(?<=[a-z]) (?=\()", " * ", formula.replace("^", "**"))
    )
    names: dict[str, float] = {"k": K, "s": SENSITIVE, "E": math.exp(EPSILON)}
    for each in named:
        exec(each, {"__builtins__": {}}, names)
    return float(eval(text, {"__builtins__": {}}, names))


def test_the_table_has_rows() -> None:
    assert len(ROWS) == 11


@pytest.mark.parametrize(("name", "formula", "shown"), ROWS)
def test_a_formula_is_the_variance_of_the_law(name: str, formula: str, shown: str) -> None:
    sensitive = list(range(SENSITIVE)) if name.startswith("u") else "all"
    decoder = uldp.protocol(name, size=K, epsilon=EPSILON, sensitive=sensitive).steps.decoder
    assert isinstance(decoder, SharesDecoder)
    held_by_others = np.zeros(K)
    held_by_others[-1] = 1
    variance = decoder.stderr(held_by_others, 1)[0] ** 2
    assert value_of(formula) == pytest.approx(variance, rel=1e-9)
    assert f"{variance:.3f}" == shown


#: Mechanisms of this project's own, and the comparison without privacy.
OURS = {"identity"}


def test_each_mechanism_is_cited() -> None:
    cited = {name.strip() for names in re.findall(r"keywords = {([^}]*)}", REFERENCES) for name in names.split(",")}
    not_cited = sorted(set(mechanism_names()) - OURS - cited)
    assert not not_cited, f"name {not_cited} in keywords of its paper in docs/references.bib, or in OURS of this test"

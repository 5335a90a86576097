"""The table of variances in docs/research.md: formulas of papers, and the law by which errors are published."""

import math
import re

import numpy as np
import pytest

import uldp
from tests.docs.test_documents import ROOT
from uldp.mechanisms.protocol.decoder import SharesDecoder

PAGE = (ROOT / "docs" / "research.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([a-z]+)` \| [^|]+ \| `([^`]+)` \| ([\d.]+) \|$", PAGE, flags=re.MULTILINE)
K, SENSITIVE, EPSILON = 100, 10, 1.0


def value_of(formula: str) -> float:
    """The formula as Python: a number before a name or a parenthesis is a factor."""
    text = re.sub(r"(?<=\d) ?(?=[E(])", " * ", formula.replace("^", "**"))
    return float(eval(text, {"__builtins__": {}}, {"k": K, "s": SENSITIVE, "E": math.exp(EPSILON)}))


def test_the_table_has_rows() -> None:
    assert len(ROWS) == 9


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

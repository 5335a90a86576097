"""What a mechanism of this project has beside its folder: each missing piece is one sentence of one test."""

import re
from functools import cache
from importlib.metadata import EntryPoint
from itertools import chain
from pathlib import Path

import pytest

from benchmarks.coverage_of_reports import SPECS
from tests import importing
from tests.conformance.client import NAMES
from tests.conformance.responses import RESPONSES, SYMBOLS
from tests.conformance.vectors import FOLDER, names
from tests.docs.tables import COMMAND, PAGES, written
from tests.importing import not_imported, not_registered
from tests.mechanisms.protocols import examples
from tests.mechanisms.test_exact_guarantee import SPECS as REPLAYED
from uldp.schemas.specs.families import mechanism_names, registered
from uldp.schemas.specs.mechanism_family import family

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
EXAMPLES = cache(examples)


def page(name: str) -> str:
    """A page with the rows of all folders, whether or not they have been written to it."""
    return written((DOCS / name).read_text(encoding="utf-8"))


def cells(name: str, column: int, heading: str = "") -> str:
    """A column of the rows of tables of a page; of the table with this first heading, if there is one."""
    text = page(name)
    if heading:
        text = re.split(r"\n\n", text[text.index(f"| {heading} |") :], maxsplit=1)[0]
    return "\n".join(row.split("|")[column] for row in text.splitlines() if row.startswith("|"))


def missing() -> list[str]:
    """Say which pieces of which mechanisms are not there."""
    tried_by = EXAMPLES().values()
    specs = [example.spec for example in tried_by]
    parts = chain.from_iterable(spec.variables.values() for spec in specs)
    tried = {spec.mechanism.name for spec in specs} | {part.mechanism.name for part in parts}
    of_symbols = {each.spec.mechanism.name for each in tried_by if each.protocol.mechanism.form.symbols is not None}
    spec = "".join(page(f"spec/{each.name}") for each in sorted((DOCS / "spec").glob("*.md")))
    client, literature = cells("client/obfuscate.md", 1, "Mechanism"), cells("mechanisms.md", 2)
    replayed = {keys["mechanism"]["name"] for keys in REPLAYED.values()}
    measured = {keys["mechanism"]["name"] for keys in SPECS.values()}
    return [
        f"{name}: {piece}"
        for name in mechanism_names()
        for piece, there in (
            ("say in its spec.py what it is called on a page: title", bool(getattr(family(name), "title", ""))),
            ("add an example to _SPECS of tests/mechanisms/protocols.py", name in tried),
            (
                "say in docs/spec what its specs say, by a row in the tables.toml of its folder or in the text",
                f"`{name}`" in spec or f"name: {name}" in spec,
            ),
            (
                "add a row of reports, from which a device can be written, to the tables.toml of its folder",
                f"`{name}`" in client,
            ),
            (
                "add a row with the system of the literature that it is from to the tables.toml of its folder",
                f"`{name}`" in literature or name == "identity",
            ),
            (
                "write its vectors: python -m tests.conformance.vectors, after its example is there",
                (FOLDER / f"{name}.json").exists(),
            ),
            (
                "write a client of its row of docs/client/obfuscate.md in RESPONSES of tests/conformance/responses.py",
                name in NAMES,
            ),
            (
                "write the number of its payloads in SYMBOLS of tests/conformance/responses.py",
                name in SYMBOLS or name not in of_symbols or name not in RESPONSES,
            ),
            (
                "add a spec whose reports have few draws to SPECS of tests/mechanisms/test_exact_guarantee.py",
                name in replayed,
            ),
            ("add a spec to SPECS of benchmarks/coverage_of_reports.py", name in measured),
        )
        if not there
    ]


def test_each_mechanism_has_its_pieces() -> None:
    assert not not_imported(), "\n".join(not_imported())
    assert not not_registered(), "\n".join(not_registered())
    strays = {path.name for path in FOLDER.iterdir()} - names()
    assert not strays, f"remove from {FOLDER.relative_to(ROOT)}, or register the mechanism: {', '.join(strays)}"
    assert not missing(), "\n".join([*missing(), f"{COMMAND} writes rows of tables.toml to the pages"])
    unlike = [path.name for path in PAGES if path.read_text(encoding="utf-8") != page(str(path.relative_to(DOCS)))]
    assert not unlike, f"{COMMAND} writes the rows of each tables.toml to {', '.join(unlike)}"


# Each piece is noticed. What is missing already is a matter of the test above.


@pytest.mark.parametrize(
    ("document", "heading", "piece"),
    [
        ("client/obfuscate.md", "Mechanism", "add a row of reports"),
        ("mechanisms.md", "", "add a row with the system of the literature"),
    ],
)
def test_a_missing_row_is_named(document: str, heading: str, piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cells

    def without(name: str, column: int, of: str = "") -> str:
        text = whole(name, column, of)
        return text.replace("`geometric`", "") if (name, of) == (document, heading) else text

    before = missing()
    monkeypatch.setitem(globals(), "cells", without)
    (line,) = {*missing()} - {*before}
    assert line.startswith(f"geometric: {piece}")


def test_a_mechanism_that_cannot_be_imported_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("new", "uldp.mechanisms.families.new.spec:NewSpec", "uldp.families")
    monkeypatch.setattr(importing, "registered", lambda: {**registered(), "new": point})
    spec = "uldp.mechanisms.families.new.spec:NewSpec"
    line = f"new: its spec, {spec}, cannot be imported: No module named 'uldp.mechanisms.families.new'"
    assert line in not_imported()

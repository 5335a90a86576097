"""What a mechanism of this project has beside its folder: each missing piece is one sentence of one test."""

import re
from itertools import chain
from pathlib import Path

from benchmarks.coverage_of_reports import SPECS
from tests.conformance.client import NAMES
from tests.conformance.responses import RESPONSES, SYMBOLS
from tests.docs.tables import COMMAND
from tests.mechanisms.protocols import examples
from uldp.schemas.specs.families import mechanism_names
from uldp.schemas.specs.mechanism_family import family

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
VECTORS = ROOT / "schemas" / "uldp" / "schemas" / "vectors"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def cells(name: str, column: int, heading: str = "") -> str:
    """A column of the rows of tables of a page; of the table with this first heading, if there is one."""
    text = page(name)
    if heading:
        text = re.split(r"\n\n", text[text.index(f"| {heading} |") :], maxsplit=1)[0]
    return "\n".join(row.split("|")[column] for row in text.splitlines() if row.startswith("|"))


def test_each_mechanism_has_its_pieces() -> None:
    tried_by = examples()
    specs = [example.spec for example in tried_by.values()]
    parts = chain.from_iterable(spec.variables.values() for spec in specs)
    tried = {spec.mechanism.name for spec in specs} | {part.mechanism.name for part in parts}
    of_symbols = {
        each.spec.mechanism.name for each in tried_by.values() if each.protocol.mechanism.form.symbols is not None
    }
    spec, client, literature = page("spec.md"), cells("client.md", 1, "Mechanism"), cells("mechanisms.md", 2)
    draws = cells("client.md", 1, "Mechanism of a vector")
    measured = {keys["mechanism"]["name"] for keys in SPECS.values()}
    missing = [
        f"{name}: {piece}"
        for name in mechanism_names()
        for piece, there in (
            ("say in its spec.py what it is called on a page: title", bool(getattr(family(name), "title", ""))),
            ("add an example to _SPECS of tests/mechanisms/protocols.py", name in tried),
            (
                "add a row for docs/spec.md to the tables.toml of its folder",
                f"`{name}`" in spec or f"name: {name}" in spec,
            ),
            (
                "add a row of reports, from which a device can be written, to the tables.toml of its folder",
                f"`{name}`" in client,
            ),
            (
                "add a row of draws, by which a client is tested in order, to the tables.toml of its folder",
                f"`{name}`" in draws or name == "identity",
            ),
            (
                "add a row with the system of the literature that it is from to the tables.toml of its folder",
                f"`{name}`" in literature or name == "identity",
            ),
            (
                "write its vectors: python -m tests.conformance.vectors, after its example is there",
                (VECTORS / f"{name}.json").exists(),
            ),
            (
                "write a client of its row of docs/client.md in RESPONSES of tests/conformance/responses.py",
                name in NAMES,
            ),
            (
                "write the number of its payloads in SYMBOLS of tests/conformance/responses.py",
                name in SYMBOLS or name not in of_symbols or name not in RESPONSES,
            ),
            ("add a spec to SPECS of benchmarks/coverage_of_reports.py", name in measured),
        )
        if not there
    ]
    assert not missing, "\n".join([*missing, f"{COMMAND} writes rows of tables.toml to the pages"])

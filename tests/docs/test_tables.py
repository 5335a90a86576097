"""The tables of pages are those of the folders of mechanisms; ``tests/test_pieces_of_a_mechanism.py`` has the rows.

What no folder can write, because a row is about several families or about the keys of all specs, is compared with them.
"""

import re

from tests.docs.tables import PAGES, ROOT, TABLE, rows_of_files
from tests.docs.test_documents import table
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.families import mechanism_names
from uldp.schemas.specs.mechanism_family import family

TEXTS = {path.name: path.read_text(encoding="utf-8") for path in PAGES}


def named(cell: str) -> set[str]:
    """Return what a cell has between back-ticks."""
    return set(re.findall("`([^`]+)`", cell))


def test_each_table_of_a_folder_is_on_a_page_with_as_many_columns() -> None:
    on_pages = {
        found[1]: found[2].splitlines()[-1].count("|") - 1 for text in TEXTS.values() for found in TABLE.finditer(text)
    }
    of_rows = {table: {len(row) for row in rows} for table, rows in rows_of_files().items()}
    assert of_rows == {table: {columns} for table, columns in on_pages.items()}


def test_the_page_of_specs_has_a_row_of_each_key() -> None:
    keys = {key for cell in table("spec.md", "Key") for key in re.findall(r"\w+", cell)}
    faults = [f"docs/spec.md has no row of the key {key}" for key in CollectionSpec.model_fields.keys() - keys]
    faults += [
        f"docs/spec.md has a row of {key}, which is no key of a spec"
        for key in keys - CollectionSpec.model_fields.keys()
    ]
    assert not faults, "; ".join(faults)


def test_the_page_of_guarantees_names_the_mechanisms_that_protect_sensitive_values_alone() -> None:
    page = (ROOT / "docs" / "client" / "guarantee.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| (.*) \| ε-ULDP: ", page, flags=re.MULTILINE)
    alone = {name for name in mechanism_names() if getattr(family(name), "utility_optimized", False)}
    faults = [f"docs/client/guarantee.md does not say that {name} promises ε-ULDP" for name in alone - named(row)]
    faults += [
        f"docs/client/guarantee.md says that {name} promises ε-ULDP, its family does not" for name in named(row) - alone
    ]
    assert not faults, "; ".join(faults)


def test_the_table_of_values_says_of_each_family_what_it_protects_and_whether_it_takes_tags() -> None:
    for cell, _, sensitive, tags in rows_of_files()["values"]:
        for name in named(cell) - {"levels"}:  # as the mechanism of its `of`
            of = family(name)
            listed, taken = sensitive != "`all`", tags == "yes"
            assert listed == of.utility_optimized, f"{name}: docs/spec/values.md says {sensitive} under `sensitive`"
            assert taken == of.takes_tags, f"{name}: docs/spec/values.md says {tags} under `tags`"

"""Pages for developers of clients show one spec, which a file of the clone holds, too."""

import pytest

from tests.docs.test_documents import DOCUMENTS, ROOT, blocks, id_of

SPEC = ROOT / "clients" / "places.yaml"
SHOWN = {
    id_of(page): block.text
    for page in DOCUMENTS
    for block in blocks(page)
    if block.language == "yaml" and block.file_name() == SPEC.name
}


@pytest.mark.parametrize("page", SHOWN)
def test_a_page_shows_the_spec_of_the_clone(page: str) -> None:
    assert SHOWN[page] == SPEC.read_text(encoding="utf-8")


def test_the_pages_of_devices_show_it() -> None:
    assert SHOWN.keys() >= {"docs/device-table.md", "docs/client/own.md", "docs/client/testing.md"}

"""Pages for developers of clients use one spec, a file of the clone, which one of them shows."""

from tests.docs.test_documents import DOCUMENTS, ROOT, blocks, id_of

SPEC = ROOT / "clients" / "places.yaml"
SHOWN = {
    id_of(page): block.text
    for page in DOCUMENTS
    for block in blocks(page)
    if block.language == "yaml" and block.file_name() == SPEC.name
}


def test_the_page_of_a_client_of_your_own_shows_the_spec_of_the_clone() -> None:
    assert {"docs/client/own.md": SPEC.read_text(encoding="utf-8")} == SHOWN

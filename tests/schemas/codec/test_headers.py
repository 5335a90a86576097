"""Headers of container files: the schema has no docs, and readers know it and the one with docs as the same."""

import io
import json
from typing import Any

import fastavro
import pytest

from tests.fuzz.container import MARKER, NAMES
from tests.fuzz.container_seeds import RECORDS
from uldp.schemas.codec.blocks import Container
from uldp.schemas.codec.container import write_header
from uldp.schemas.framing import load_schema, schema_fingerprint


def header(name: str, **metadata: str) -> io.BytesIO:
    file = io.BytesIO()
    write_header(file, name, MARKER, metadata)
    file.seek(0)
    return file


def keys(node: Any) -> set[str]:
    """All keys of a schema as JSON."""
    if isinstance(node, dict):
        return set(node).union(*map(keys, node.values()))
    return set().union(*map(keys, node)) if isinstance(node, list) else set()


@pytest.mark.parametrize("name", NAMES)
def test_a_header_has_the_schema_without_docs(name: str) -> None:
    written = json.loads(Container.open(header(name)).metadata["avro.schema"])
    assert not {key for key in keys(written) if key == "doc" or key.startswith("__")}
    assert schema_fingerprint(written) == schema_fingerprint(load_schema(name))


@pytest.mark.parametrize("name", NAMES)
def test_files_with_and_without_docs_are_of_the_shipped_schema(name: str) -> None:
    with_docs = io.BytesIO()
    fastavro.writer(with_docs, load_schema(name), RECORDS[name])
    with_docs.seek(0)
    old, new = Container.open(with_docs), Container.open(header(name))
    assert b'"doc"' in old.metadata["avro.schema"]
    assert (old.name, old.current, new.name, new.current) == (name, True, name, True)
    assert [*old.records()] == RECORDS[name]


@pytest.mark.parametrize(("name", "size"), [("statistic", 2_000), ("estimate", 3_250)])
def test_a_header_is_small_beside_a_pane(name: str, size: int) -> None:
    assert len(header(name).getvalue()) < size


def test_a_header_holds_metadata_and_leaves_them_as_they_were() -> None:
    metadata = {"uldp.a": "\u00e9"}
    assert Container.open(header("message", **metadata)).metadata["uldp.a"].decode() == "\u00e9"
    assert metadata == {"uldp.a": "\u00e9"}

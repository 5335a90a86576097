"""Headers of container files: the schema has no docs, and readers know it and the one with docs as the same."""

import io
import json
from typing import Any

import pytest

from tests.fuzz.container import MARKER, NAMES
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


def test_a_header_holds_metadata_and_leaves_them_as_they_were() -> None:
    metadata = {"uldp.a": "\u00e9"}
    assert Container.open(header("message", **metadata)).metadata["uldp.a"].decode() == "\u00e9"
    assert metadata == {"uldp.a": "\u00e9"}

"""The shipped schemas: documented, consistent, and changed only on purpose."""

import json
from collections.abc import Iterator
from functools import reduce
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from uldp.schemas.framing import Schema, load_schema, schema_fingerprint

#: What identifies each schema on the wire and in files. A change here is a new version of the schema: keep the old one
#: as a writer for as long as anything written with it may be read.
FINGERPRINTS = {
    "estimate": "fc9571056fa97a04",
    "ids": "b6fdfdb744d316dd",
    "message": "c6bb28b27986b4f9",
    "missing": "11d472a99255ab0f",
    "rejected": "a4d1c9e123b8e85e",
    "report": "e6a3dbfe76e5d390",
    "report_batch": "3008a78dd07701ed",
    "statistic": "318ce7032db33a72",
}


def shipped(name: str) -> Any:
    return json.loads(resources.files("uldp.schemas").joinpath(f"{name}.avsc").read_text(encoding="utf-8"))


def records(schema: Any) -> Iterator[Schema]:
    """Every record in a schema, itself included."""
    if isinstance(schema, list):
        for branch in schema:
            yield from records(branch)
    elif isinstance(schema, dict):
        if schema["type"] == "record":
            yield schema
            for field in schema["fields"]:
                yield from records(field["type"])
        else:
            for key in ("type", "items", "values"):
                yield from records(schema.get(key))


def crc_64_avro(data: bytes) -> int:
    """The Rabin fingerprint as the Avro specification defines it, a byte at a time."""
    empty = 0xC15D213AA4D7A795

    def shift(value: int) -> int:
        return (value >> 1) ^ (empty if value & 1 else 0)

    def step(fingerprint: int, byte: int) -> int:
        return (fingerprint >> 8) ^ reduce(lambda value, _: shift(value), range(8), (fingerprint ^ byte) & 0xFF)

    return reduce(step, data, empty)


def canonical(schema: Any) -> Any:
    """Avro's parsing canonical form of our schemas, as values: only what matters to a reader, in the order it gives."""
    if isinstance(schema, list):
        return [canonical(branch) for branch in schema]
    if isinstance(schema, str):
        return schema
    if schema["type"] == "record":
        fields = [{"name": field["name"], "type": canonical(field["type"])} for field in schema["fields"]]
        return {"name": f"uldp.{schema['name']}", "type": "record", "fields": fields}
    if schema["type"] == "enum":
        return {"name": f"uldp.{schema['name']}", "type": "enum", "symbols": schema["symbols"]}
    if schema["type"] == "fixed":
        return {"name": f"uldp.{schema['name']}", "type": "fixed", "size": schema["size"]}
    inner = "items" if schema["type"] == "array" else "values"
    return {"type": schema["type"], inner: canonical(schema[inner])}


def test_every_shipped_schema_is_pinned() -> None:
    files = [Path(file.name) for file in resources.files("uldp.schemas").iterdir()]
    assert {file.stem for file in files if file.suffix == ".avsc"} == FINGERPRINTS.keys()


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_fingerprint_is_pinned(name: str) -> None:
    assert schema_fingerprint(load_schema(name)).hex() == FINGERPRINTS[name]


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_fingerprint_is_the_specifications_in_little_endian(name: str) -> None:
    text = json.dumps(canonical(shipped(name)), separators=(",", ":"))
    assert schema_fingerprint(load_schema(name)) == crc_64_avro(text.encode()).to_bytes(8, "little")


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_everything_has_a_doc(name: str) -> None:
    found = list(records(shipped(name)))
    assert all(record["doc"] for record in found)
    undocumented = [
        f"{record['name']}.{field['name']}" for record in found for field in record["fields"] if not field.get("doc")
    ]
    assert not undocumented


def test_records_of_one_name_are_the_same_everywhere() -> None:
    definitions: dict[str, Schema] = {}
    for name in FINGERPRINTS:
        for record in records(shipped(name)):
            assert definitions.setdefault(record["name"], record) == record


def test_fields_of_one_name_have_one_type_across_records() -> None:
    """collection, version, window_start and the like mean the same wherever they stand."""
    types: dict[str, Any] = {}
    for name in FINGERPRINTS:
        for field in shipped(name)["fields"]:
            if field["name"] != "payload":  # one value in a report, a column in a batch
                assert types.setdefault(field["name"], field["type"]) == field["type"]

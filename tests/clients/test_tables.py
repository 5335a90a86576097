"""The table of a spec has all that a client needs, in numbers that every language reads exactly."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import build
from tests.mechanisms.protocols import specs
from uldp.mechanisms.devices.table import device_table, table_digest
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.pipelines.clients import c_table as c_fields
from uldp.pipelines.clients.c_table import c_name, c_table
from uldp.schemas.specs.collection import CollectionSpec

PAGE = Path(__file__).parents[2] / "docs" / "device-table.md"
each_spec = pytest.mark.parametrize("name", specs())


def table_of(name: str) -> dict[str, Any]:
    return json.loads(json.dumps(device_table(build.spec(**specs()[name])), allow_nan=False))  # type: ignore[no-any-return]


def nodes(node: Any) -> Iterator[Any]:
    yield node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from nodes(each)


@each_spec
def test_integers_are_exact_in_floats_and_each_form_has_its_rule_on_the_page(name: str) -> None:
    table = table_of(name)
    rules = {
        *re.findall(r"^\| `([a-z]+)` \|", PAGE.read_text(), re.MULTILINE),
        "drawn",
        "level",
        "named",
        "blocks",
        "kept",
    }
    assert all(abs(each) <= 1 << 53 for each in nodes(table) if isinstance(each, int))
    forms = {node["form"] for node in nodes(table) if isinstance(node, dict) and "form" in node}
    assert forms <= rules


def test_a_table_names_what_it_says() -> None:
    table, other = (device_table(build.spec(mechanism={"name": "rr", "epsilon": epsilon})) for epsilon in (1.0, 1.1))
    assert table["digest"] != other["digest"]
    assert table == device_table(build.spec(mechanism={"name": "rr", "epsilon": 1.0}))


def test_a_digest_is_that_of_json_with_the_bits_of_numbers() -> None:
    text = '{"a":["3ff0000000000000","bfe0000000000000",true,null],"é":"\\n"}'
    found = table_digest({"é": "\n", "a": [1, -0.5, True, None]})
    assert found == hashlib.sha256(text.encode()).hexdigest()[:16]


def test_a_table_has_the_offset_of_its_windows() -> None:
    table = device_table(build.spec(window={"size": "7d", "offset": "4d"}))
    assert (table["slice_ms"], table["offset_ms"]) == (7 * 86_400_000, 4 * 86_400_000)


@pytest.mark.parametrize(
    ("changed", "said"), [({"form": "new"}, "does not know the form new"), ({"new": 1}, "has no field for new")]
)
def test_the_header_for_c_refuses_what_its_client_does_not_know(changed: dict[str, Any], said: str) -> None:
    table = device_table(build.spec())
    with pytest.raises(ValueError, match=said):
        list(c_table(table | {"mechanism": table["mechanism"] | changed}, "t"))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, []),
        ({"budget": {"epsilon": 4, "every": "30d"}}, ["spend at most epsilon 4 in 2,592,000,000 ms"]),
        ({"mechanism": {"name": "rr", "epsilon": 1.0, "lasting_epsilon": 2.0}}, ["keep a response for each symbol"]),
    ],
)
def test_the_header_for_c_says_what_needs_a_ledger(keys: dict[str, Any], said: list[str]) -> None:
    header = "\n".join(c_table(device_table(build.spec(**keys)), "t"))
    assert re.findall(r"It needs a ledger, uldp_ledger\.h, to (.+)\. \*/", header) == said


@pytest.mark.parametrize(
    ("structure", "fields"),
    [
        ("uldp_mechanism", [*c_fields.MECHANISM_NUMBERS, *c_fields.MECHANISM_LISTS]),
        ("uldp_encoding", [*c_fields.ENCODING_NUMBERS, *c_fields.ENCODING_LISTS]),
    ],
)
def test_the_header_for_c_has_the_fields_of_its_client_in_their_order(structure: str, fields: list[str]) -> None:
    client = (PAGE.parents[1] / "clients" / "c" / "uldp.h").read_text()
    numbers, lists = re.findall(
        rf"struct {structure} {{\n  uldp_form form;\n  uint64_t (.+?);\n  uldp_list (.+?);", client
    )[0]
    assert [*numbers.split(", "), *lists.split(", ")] == fields


@pytest.mark.parametrize(
    ("collection", "name"),
    [("places", "places"), ("int", "int"), ("a-b", "a_b"), ("7days", "c7days"), ("-a", "c_a"), ("uldp", "culdp")],
)
def test_a_collection_gives_a_name_of_c(collection: str, name: str) -> None:
    assert c_name(collection) == name


def test_a_mechanism_without_a_form_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    spec: CollectionSpec = build.spec(mechanism={"name": "olh", "epsilon": 1.0})
    from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing

    monkeypatch.setattr(LocalHashing, "device_form", Mechanism.device_form)
    with pytest.raises(ValueError, match="olh has no table for devices: LocalHashing has no form"):
        device_table(spec)

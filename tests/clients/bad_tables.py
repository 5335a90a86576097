"""Tables that no client may follow: each is one of the vectors with something wrong, under a digest that is right."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tests.clients.tables import cases
from uldp.mechanisms.devices.table import table_digest
from uldp.pipelines.clients.vectors import readable

#: Keys of forms that may be null, and those that may be any number.
_NULL = {("response", "sensitive"), ("bits", "sensitive"), ("subset", "sensitive"), ("design", "sensitive")} | {
    ("design", "set"),
    ("strata", "first"),
    ("strata", "width"),
}
_ANY_NUMBER = {"low", "high"}


class BadTable(NamedTuple):
    """A table that is wrong.

    Attributes:
        what: What is wrong.
        text: The table, as a server sends it.
        device: What a device holds, as vectors have it.
    """

    what: str
    text: str
    device: Mapping[str, Any]


def bad_tables() -> Iterator[BadTable]:
    """Yield tables in which a key of the table or of one of its forms is wrong, and texts that are no tables at all."""
    seen: set[str] = set()
    for case in cases():
        device = case["devices"][0]
        base = json.loads(json.dumps(readable({"table": case["table"]})))["table"]
        for node, where in [(base, ""), *_forms(base["encoding"]), *_forms(base["mechanism"])]:
            for what, changed in _changes(node, where):
                if what in seen:
                    continue
                seen.add(what)
                kept = dict(node)
                node.clear()
                node.update(changed)
                yield BadTable(what, json.dumps(base | _digest(base)), device)
                node.clear()
                node.update(kept)
    whole = json.dumps(base)
    for what, text in (
        ("nothing", ""),
        ("half of it", whole[: len(whole) // 2]),
        ("another digest", json.dumps(base | {"digest": "0" * 16})),
        ("another number", json.dumps(base | {"slice_ms": base["slice_ms"] + 1})),
        ("a list", "[]"),
        ("null", "null"),
        ("deep lists", _deep(base, "[" * 100_000 + "]" * 100_000)),
        ("deep strata", _deep(base, '{"form":"strata","mechanisms":[' * 10_000 + "]}" * 10_000, "mechanism")),
        ("a number like no other", whole.replace(str(base["slice_ms"]), "9" * 400)),
    ):
        yield BadTable(what, text, device)


def _digest(table: dict[str, Any]) -> dict[str, str]:
    return {"digest": table_digest({key: value for key, value in table.items() if key != "digest"})}


def _deep(table: dict[str, Any], text: str, key: str = "new") -> str:
    return json.dumps(table | {key: "DEEP"}).replace('"DEEP"', text)


def _forms(node: Any) -> Iterator[tuple[dict[str, Any], str]]:
    if isinstance(node, dict):
        if "form" in node:
            yield node, node["form"]
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _forms(each)


def _changes(node: Mapping[str, Any], form: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield copies of a mapping in which one thing is wrong, and a name of that, the same for each of a form."""
    # Kept responses have one of two sets of keys, and strata of an encoding and of a mechanism differ.
    of = f"{form} of {','.join(node)}"
    if form:
        yield f"{of}: another form", {**node, "form": "new"}
        yield f"{of}: a further key", {**node, "new": 1}
    for key, value in node.items():
        if (not form and key in ("digest", "spends_at_level", "encoding", "mechanism")) or key == "form":
            continue
        yield f"{of}: no {key}", {name: each for name, each in node.items() if name != key}
        wrong: list[Any] = [{}, [{}], True if not isinstance(value, bool) else 1]
        if (form, key) not in _NULL and (form or key != "budget"):
            wrong.append(None)
        if isinstance(value, int | float) and not isinstance(value, bool):
            wrong += ["1", "x"] if key in _ANY_NUMBER else ["1", -1, 0.5, 2**53 + 2, 1e300]
        if isinstance(value, list) and value and isinstance(value[0], int | float):
            wrong += [[each, *value[1:]] for each in ("1", -1, 0.5, 2**53 + 2, None)]
        if isinstance(value, str):
            wrong.append(1)
        for each in wrong:
            yield f"{of}: {key} {json.dumps(each)[:40]}", {**node, key: each}

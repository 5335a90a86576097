"""The table of a spec for its devices: all numbers that a device needs, computed once, as JSON.

A client that computes by a table needs no YAML, no exponential and none of the formulas of mechanisms.
"""

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.mechanism import Guarantee
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import milliseconds
from uldp.schemas.specs.variable import Variable

#: How a table is to be read. It grows if a key or a form changes its meaning, and not with new ones.
FORMAT = 1


def device_table(spec: CollectionSpec) -> dict[str, Any]:
    """Return the table of a spec: of JSON numbers, text, lists and mappings.

    The key ``digest`` names the table: it is the ``table_digest`` of all other keys. ``device_digest`` is that of the
    device half of the spec, which results name. ValueError if a mechanism or an encoding of the spec, which a package
    outside may bring, has no form.
    """
    protocol = build_protocol(spec)
    mechanism, window = protocol.mechanism, spec.window
    try:
        mechanism_form, encoding_form = mechanism.device_form(), protocol.encoding.device_form()
    except NotImplementedError as error:
        raise ValueError(f"{spec.mechanism.name} has no table for devices: {error}") from None
    table = {
        "format": FORMAT,
        "collection": spec.collection,
        "version": spec.version,
        "device_digest": spec.device_digest,
        "slice_ms": milliseconds(window.slice),
        "offset_ms": milliseconds(window.offset),
        "window_ms": milliseconds(window.size),
        "exact_time": spec.event_time == "exact",
        "kept": mechanism.memory,
        "spends": _spends(mechanism.guarantee),
        "budget": None
        if spec.budget is None
        else {"epsilon": spec.budget.epsilon, "every_ms": milliseconds(spec.budget.every)},
        "columns": [_column(name, variable) for name, variable in spec.variables.items()],
        "encoding": encoding_form,
        "mechanism": mechanism_form,
    }
    levels = encoding_form.get("choice", {}).get("levels")
    if levels is not None:
        of_levels = zip(levels, mechanism.parts, strict=True)
        table["spends_at_level"] = {name: _spends(part.guarantee) for name, part in of_levels}
    return table | {"digest": table_digest(table)}


def table_digest(table: Mapping[str, Any]) -> str:
    """Return the first 16 hex digits of the SHA-256 of a table without its key ``digest``.

    The bytes are those of JSON in UTF-8 without spaces, with keys in the order of their UTF-16 units, as in RFC 8785.
    In place of each number are the hex digits of its 64 bits as a double, as a text: languages write doubles in
    different ways, and some do not tell 1.0 from 1.
    """
    text = json.dumps(_canonical(table), separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _canonical(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {key: _canonical(node[key]) for key in sorted(node, key=lambda key: key.encode("utf-16-be"))}
    if isinstance(node, list | tuple):
        return [_canonical(each) for each in node]
    is_number = isinstance(node, int | float) and not isinstance(node, bool)
    return struct.pack(">d", node).hex() if is_number else node


def _spends(guarantee: Guarantee) -> dict[str, float | None]:
    """Return what one report of a value spends, and all of them together; None without privacy, or a bound."""
    return {"epsilon": guarantee.epsilon, "lasting": guarantee.lasting}


def _column(name: str, variable: Variable) -> dict[str, Any]:
    """Return what a device may hold of one variable, by the keys of its domain; ``name`` is empty for the only one."""
    tags = [tag.name for tag in variable.tags]
    return {"name": name, "kind": variable.kind.name, "domain": dict(variable.kind.facts()), "tags": tags}

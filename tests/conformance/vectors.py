"""The conformance vectors of ``uldp.schemas.vectors``: numbers and bytes that a client in any language gives too.

``python -m tests.conformance.vectors`` writes the files anew, always the same. A file has the name of a mechanism. It
has a case (``tests.conformance.cases``) for each example of it in ``tests/mechanisms/protocols.py``, and for each of
``MORE``. So a new mechanism needs nothing here, unless its domain is of a new kind. Two files are of no mechanism:
``messages.json`` and ``functions.json``. Their inputs are edited by hand; this module writes the results beside them.
"""

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.cases import MORE, case_of
from tests.conformance.messages import messages_of
from tests.mechanisms import protocols
from uldp.mechanisms.kernels.hashing import hash_symbols
from uldp.mechanisms.strings.cohorts import hash_positions, string_symbol
from uldp.mechanisms.zones.projective_response import ProjectiveResponse
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.families import mechanism_names

FOLDER = Path(__file__).parents[2] / "schemas" / "uldp" / "schemas" / "vectors"
#: Numbers of a client may differ from those of a file by this share of them.
TOLERANCE = 1e-12
#: How files are to be read. It grows if a key changes its meaning, and not with new cases, keys or files.
VERSION = 1


def documents() -> dict[str, Any]:
    """Return the content of each file, by its name."""
    cases: dict[str, list[dict[str, Any]]] = {}
    for name, keys in (protocols.specs() | MORE).items():
        case = case_of(name, keys)
        cases.setdefault(case["spec"]["mechanism"]["name"], []).append(case)
    found: dict[str, Any] = {
        f"{name}.json": {"version": VERSION, "mechanism": name, "tolerance": TOLERANCE, "cases": of}
        for name, of in cases.items()
    }
    messages = messages_of(read("messages.json")) | {"version": VERSION}
    return found | {"messages.json": messages, "functions.json": _functions()}


def names() -> set[str]:
    """Return the names of all files that there may be."""
    return {*(f"{name}.json" for name in mechanism_names()), "functions.json", "messages.json"}


def read(name: str) -> Any:
    """Return the content of a file of vectors."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def load(case: Mapping[str, Any], folder: Path) -> CollectionSpec:
    """Return the spec of a case, whose files go into a folder."""
    for name, text in case["files"].items():
        (folder / name).write_text(text, encoding="utf-8")
    return CollectionSpec.parse(case["spec"], base=folder)


def _functions() -> Any:
    """Return results of the functions that a client needs, by their arguments."""
    written = read("functions.json")
    return written | {
        "version": VERSION,
        "hash": [each | _hash(each["seed"], each["symbol"], each["buckets"]) for each in written["hash"]],
        "zones": [each | _zones(each["zones"], each["zone_epsilon"], each["epsilon"]) for each in written["zones"]],
        "strings": [each | _string(each) for each in written["strings"]],
    }


def _hash(seed: int, symbol: int, buckets: int) -> dict[str, Any]:
    (bucket,) = hash_symbols(np.array([seed]), np.array([symbol]), buckets).tolist()
    return {"bucket": bucket, "payload": (seed.to_bytes(4, "little") + bucket.to_bytes(2, "little")).hex()}


def _string(asked: Mapping[str, Any]) -> dict[str, Any]:
    symbol = string_symbol(asked["text"], asked["longest"])
    positions = hash_positions(np.array(asked["cohort"]), np.array(symbol), asked["hashes"], asked["size"])
    return {"symbol": symbol.to_bytes(6, "little").hex(), "positions": positions.tolist()}


def _zones(zones: int, zone_epsilon: float, epsilon: float) -> dict[str, Any]:
    response = ProjectiveResponse(zones, zone_epsilon, epsilon)
    return {
        "points": response.points,
        "last_plane": response.hyperplanes[-1].tolist(),
        "uniform_probability": response.uniform_probability,
        "weight": response.points * response.on_plane,
    }


def text(node: Any, indent: str = "") -> str:
    """Write JSON with everything on one line that has room on it, in ASCII: a string may turn the text around."""
    line, inner = json.dumps(node), indent + " "
    if not isinstance(node, dict | list) or not node or len(indent) + len(line) <= 110:
        return line
    if isinstance(node, dict):
        entries = [f"{inner}{json.dumps(key)}: {text(value, inner)}" for key, value in node.items()]
        return "{\n" + ",\n".join(entries) + f"\n{indent}}}"
    if all(isinstance(each, list | tuple | int | float) for each in node):  # many in a line
        wrapped = textwrap.wrap(", ".join(map(json.dumps, node)), 110, initial_indent=inner, subsequent_indent=inner)
        return "[\n" + "\n".join(wrapped) + f"\n{indent}]"
    return "[\n" + ",\n".join(inner + text(value, inner) for value in node) + f"\n{indent}]"


if __name__ == "__main__":
    for name, content in documents().items():
        (FOLDER / name).write_text(text(content) + "\n", encoding="utf-8")

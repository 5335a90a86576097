"""A table for devices as a header in C, for ``clients/c/uldp.h``: constants, and memory for one report at a time."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

#: The fields of numbers, and of lists.
# fmt: off
_NUMBERS = frozenset(
    ("size", "noise", "flip", "chosen", "held", "blocks", "buckets", "rows", "g", "m", "grid", "width", "margin",
     "cohorts", "hashes", "hit", "symbol", "uniform", "points", "tags", "bits", "bins", "longest", "number", "pieces",
     "second", "most", "shift")
)
_LISTS = frozenset(
    ("sensitive", "set", "clear", "hits", "magnitudes", "draw", "which", "kinds", "others", "outer", "zone",
     "replace", "columns", "base", "sizes")
)
# fmt: on
#: The names in C of forms that have another name in a table.
_MAPS = {"drawn": "DRAWN", "level": "GIVEN", "named": "GIVEN"}
#: The other forms.
# fmt: off
_FORMS = frozenset(
    ("identity", "response", "bits", "flips", "integers", "subset", "set", "design", "hash", "row", "linear", "point",
     "bit", "interval", "steps", "cohort", "bloom", "near", "nested", "strata", "kept", "value", "zones", "grid",
     "bins", "string", "prefix", "pair", "signed", "view", "hits", "size", "blocks",
     "strings", "cohorts")
)
# fmt: on


def c_name(collection: str) -> str:
    """Return a name of C for a collection."""
    name = re.sub(r"\W", "_", collection, flags=re.ASCII)
    return name if name[0].isalpha() else f"c{name}"


def c_table(table: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield the lines of a header that defines a table under a name of C, and the memory ``NAME_work``.

    Raises:
        ValueError: if ``clients/c/uldp.h`` has not a form of the table, or no field for a key.
    """
    nodes = [*_nodes(table["encoding"]), *_nodes(table["mechanism"])]
    if unknown := {node["form"] for node in nodes if "form" in node} - _FORMS - _MAPS.keys():
        raise ValueError(f"the client in C does not know the form {min(unknown)}")
    symbols = sum(len(node["bases"]) for node in nodes if "bases" in node)
    scratch = 3 * max(1, *(node.get(key) or 0 for node in nodes for key in ("size", "held", "buckets")))
    payload = 8 + max(_payload_bytes(node) for node in nodes)
    pieces: list[str] = next(
        (of for column in table["columns"] for key, of in column["domain"].items() if key.endswith("strings.pieces")),
        [],
    )
    yield f"/* {_text(table['collection'])}, version {table['version']}: table {table['digest']}. Do not edit. */"
    yield from (f"/* The client in C keeps no ledger: the program must {rule}. */" for rule in _left_to_program(table))
    yield '#include "uldp.h"'
    yield f"#define {name}_message_bytes ULDP_MESSAGE({len(table['collection'])}, {payload})"
    if pieces:
        yield f"static const char *const {name}_pieces[] = {{{', '.join(map(_literal, pieces))}}};"
    yield f"static const uldp_table {name} = {{"
    yield f"  .collection = {_literal(table['collection'])}, .version = {table['version']},"
    yield f"  .slice_ms = {table['slice_ms']}, .offset_ms = {table['offset_ms']},"
    yield f"  .exact_time = {str(table['exact_time']).lower()},"
    if pieces:
        yield f"  .pieces = {name}_pieces, .pieces_count = {len(pieces)},"
    yield f"  .encoding = {_pointer('uldp_encoding', [_encoding(table['encoding'])])},"
    yield f"  .mechanism = {_pointer('uldp_mechanism', [_mechanism(table['mechanism'])])},"
    yield "};"
    yield "/* One report at a time uses this memory. */"
    yield f"static uldp_symbol {name}_symbols[{symbols + 1}];"
    yield f"static uint64_t {name}_scratch[{scratch}];"
    yield f"static uint8_t {name}_bytes[{payload}];"
    yield f"static uldp_work {name}_work = {{{name}_symbols, {symbols + 1}, {name}_scratch, {name}_bytes, {payload}}};"


def _left_to_program(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the ledgers of other clients do."""
    if table["kept"]:
        yield "keep a response for each symbol"
    if (budget := table["budget"]) is not None:
        yield f"spend at most epsilon {budget['epsilon']:g} in {budget['every_ms']:,} ms"


def _nodes(node: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all mappings in a part of a table."""
    if isinstance(node, Mapping):
        yield node
    for each in node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ():
        yield from _nodes(each)


def _payload_bytes(node: Mapping[str, Any]) -> int:
    size = node.get("size") or 0
    return max((2 * size if node.get("form") == "integers" else -(-size // 8)) + 2, node.get("width") or 0)


def _mechanism(form: Mapping[str, Any]) -> str:
    fields = [f".form = ULDP_{form['form'].upper()}"]
    for key, value in form.items():
        match key:
            case "form":
                continue
            case "mechanisms":
                fields.append(f".mechanisms = {_pointer('uldp_mechanism', map(_mechanism, value))}")
            case "permanent" | "once":
                fields.append(f".{key} = {_pointer('uldp_mechanism', [_mechanism(value)])}")
            case "nests":
                fields.append(f".nests = {_pointer('uldp_nest', map(_nest, value))}, .nests_count = {len(value)}")
            case "ends" if form["form"] == "near":
                rows = [int(each) for row in value for each in row]
                fields += [f".ends = {_list(rows)}", f".size = {len(value)}"]
            case "ends" | "first":
                fields.append(f".{key} = {_list(value or [])}")
            case _:
                fields.append(_field(key, value))
    return f"{{{', '.join(filter(None, fields))}}}"


def _nest(nest: Mapping[str, Any]) -> str:
    planes = nest["planes"]
    flat = _list([each for plane in planes for each in plane])
    numbers = ", ".join(_field(key, nest[key]) for key in ("symbol", "uniform", "points"))
    return f"{{{numbers}, .plane = {len(planes[0])}, .planes = {flat}}}"


def _encoding(form: Mapping[str, Any]) -> str:
    fields = [f".form = ULDP_{form['form'].upper()}"]
    for key, value in form.items():
        match key:
            case "form":
                continue
            case "low" | "high":
                fields.append(f".{key} = {value!r}")
            case "first":
                fields.append(f".first = {value}")
            case "places":
                fields.append(f".places = {_list([each for row in value for each in row])}")
            case "bases":
                bases = [
                    f"{{.encoding = {_pointer('uldp_encoding', [_encoding(base['encoding'])])},"
                    f" .columns = {_list(base['columns'])}}}"
                    for base in value
                ]
                fields.append(f".bases = {_pointer('uldp_base', bases)}, .bases_count = {len(bases)}")
            case "encodings" | "of":
                several = value if isinstance(value, list) else [value]
                bases = [f"{{.encoding = {_pointer('uldp_encoding', [_encoding(each)])}}}" for each in several]
                fields.append(f".bases = {_pointer('uldp_base', bases)}, .bases_count = {len(bases)}")
            case "maps":
                fields.append(f".maps = {_pointer('uldp_map', map(_map, value))}")
            case "choice":
                fields.append(f".choice = ULDP_{_MAPS[value['form']]}")
            case _:
                fields.append(_field(key, value))
    return f"{{{', '.join(fields)}}}"


def _map(form: Mapping[str, Any] | None) -> str:
    if form is None:
        return "{.form = ULDP_SAME}"
    return f"{{.form = ULDP_{form['form'].upper()}, .first = {form.get('first', 0)}, .width = {form['width']}}}"


def _field(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key in _LISTS:
        return f".{key} = {_list(value if isinstance(value, list) else [value])}"
    if key not in _NUMBERS:
        raise ValueError(f"the client in C has no field for {key}")
    return f".{key} = UINT64_C({value})"


def _list(numbers: list[int]) -> str:
    if not numbers:
        return "{0}"
    return f"{{(const uint64_t[]){{{', '.join(f'UINT64_C({number})' for number in numbers)}}}, {len(numbers)}}}"


def _pointer(kind: str, values: Any) -> str:
    return f"(const {kind}[]){{{', '.join(values)}}}"


def _literal(text: str) -> str:
    """A string of C. Octal digits end after three, so no character that follows is taken for one."""
    plain = [32 <= byte < 127 and byte not in b'"\\?' for byte in text.encode()]
    inside = [chr(byte) if each else f"\\{byte:03o}" for byte, each in zip(text.encode(), plain, strict=True)]
    return f'"{"".join(inside)}"'


def _text(text: str) -> str:
    return re.sub(r"[^\w .-]", "?", text, flags=re.ASCII)

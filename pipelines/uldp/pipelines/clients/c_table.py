"""A table for devices as a header in C and C++, for ``clients/c/uldp.h``: constants, and memory for a report at a time.

C++17 has neither compound literals nor designated initialisers. So each array has a name, and stands before its use,
and each field of a structure has a value, in the order of ``uldp.h``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

#: The fields of numbers, and of lists, of ``uldp_mechanism`` and of ``uldp_encoding``.
# fmt: off
MECHANISM_NUMBERS = (
    "size", "noise", "flip", "chosen", "held", "blocks", "buckets", "rows", "g", "m", "grid", "width", "margin",
    "cohorts", "hashes", "hit",
)
MECHANISM_LISTS = (
    "sensitive", "set", "clear", "hits", "magnitudes", "ends", "draw", "which", "first", "kinds", "others", "outer",
    "zone", "replace",
)
ENCODING_NUMBERS = (
    "size", "tags", "grid", "bits", "bins", "longest", "held", "number", "pieces", "first", "second", "most", "shift",
    "width",
)
ENCODING_LISTS = ("places", "base", "sizes")
# fmt: on
#: The names in C of forms that have another name in a table.
_MAPS = {"drawn": "DRAWN", "level": "GIVEN", "named": "NAMED"}
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
    """Return how the names of a collection begin in C: all have something behind, so none is a word of the language."""
    name = re.sub(r"\W", "_", collection, flags=re.ASCII)
    return name if name[0].isalpha() and not name.startswith("uldp") else f"c{name}"


def c_table(table: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield a header with ``NAME_table`` and ``NAME_work``; ValueError if ``uldp.h`` lacks a form, or a key's field."""
    nodes = [*_nodes(table["encoding"]), *_nodes(table["mechanism"])]
    if unknown := {node["form"] for node in nodes if "form" in node} - _FORMS - _MAPS.keys():
        raise ValueError(f"the client in C does not know the form {min(unknown)}")
    symbols = 1 + sum(len(node["bases"]) for node in nodes if "bases" in node)
    scratch = 3 * max(1, *(node.get(key) or 0 for node in nodes for key in ("size", "held", "buckets")))
    payload = 8 + max(_payload_bytes(node) for node in nodes)
    arrays = _Arrays(name)
    rows = ",\n  ".join(_table(table, arrays, (symbols, scratch, payload)))
    yield f"/* {_text(table['collection'])}, version {table['version']}: table {table['digest']}. Do not edit. */"
    yield from (f"/* It needs a ledger, uldp_ledger.h, to {rule}. */" for rule in _of_a_ledger(table))
    yield f"#ifndef ULDP_TABLE_{name}"
    yield f"#define ULDP_TABLE_{name}"
    yield '#include "uldp.h"'
    yield from _bound("HELD", max(node.get("held") or 0 for node in nodes))
    yield from _bound("COLUMNS", len(table["columns"]))
    yield from _bound("DRAWS", _draws(table["encoding"]) if table["kept"] else 0)
    yield f"#define {name}_message_bytes ULDP_MESSAGE({len(table['collection'])}, {payload})"
    yield from arrays.lines
    yield f"static const uldp_table {name}_table = {{"
    yield f"  {rows}"
    yield "};"
    yield "/* One report at a time uses this memory. */"
    yield f"static uldp_symbol {name}_symbols[{symbols}];"
    yield f"static uint64_t {name}_scratch[{scratch}];"
    yield f"static uint8_t {name}_bytes[{payload}];"
    memory = f"{name}_symbols, {symbols}, {name}_scratch, {scratch}, {name}_bytes, {payload}"
    yield f"static uldp_work {name}_work = {{{memory}}};"
    yield "#endif"


class _Arrays:
    """Arrays of C in the order in which they are defined; equal ones are one."""

    def __init__(self, name: str) -> None:
        self.lines: list[str] = []
        self._name, self._known = name, dict[str, str]()

    def add(self, kind: str, values: Iterable[str]) -> str:
        """Return the name of an array; NULL of an empty one."""
        inside = ", ".join(values)
        if not inside:
            return "NULL"
        line = f"[] = {{{inside}}};"
        if (name := self._known.get(kind + line)) is None:
            name = self._known[kind + line] = f"{self._name}_{len(self._known)}"
            self.lines.append(f"static const {kind} {name}{line}")
        return name

    def names(self, texts: Iterable[str]) -> str:
        """Return a ``uldp_names``."""
        literals = [*map(_literal, texts)]
        return f"{{{self.add('char *const', literals)}, {len(literals)}}}"

    def list(self, numbers: Iterable[int]) -> str:
        """Return a ``uldp_list``."""
        literals = [*map(_number, numbers)]
        return f"{{{self.add('uint64_t', literals)}, {len(literals)}}}"


def _bound(what: str, needed: int) -> Iterator[str]:
    if needed:
        yield f"#if ULDP_MOST_{what} < {needed}"
        yield f'#error "define ULDP_MOST_{what} as {needed} or more"'
        yield "#endif"


def _table(table: Mapping[str, Any], arrays: _Arrays, memory: tuple[int, ...]) -> Iterator[str]:
    budget = table["budget"] or {"epsilon": 0.0, "every_ms": 0}
    spends = [*table.get("spends_at_level", {"": table["spends"]}).values()]
    columns = [_column(column, arrays) for column in table["columns"]]
    yield f"{_literal(table['collection'])}, {_literal(table['device_digest'])}"
    yield ", ".join(_number(table[key]) for key in ("version", "slice_ms", "offset_ms", "window_ms"))
    yield f"{_bool(table['exact_time'])}, {_bool(table['kept'])}, {budget['epsilon']!r}, {_number(budget['every_ms'])}"
    yield f"{arrays.add('uldp_spends', map(_spends, spends))}, {len(spends)}"
    yield f"{arrays.add('uldp_column', columns)}, {len(columns)}"
    yield arrays.add("uldp_encoding", [_encoding(table["encoding"], arrays)])
    yield arrays.add("uldp_mechanism", [_mechanism(table["mechanism"], arrays)])
    yield ", ".join(map(str, (_draws(table["encoding"]), *memory)))


def _spends(spends: Mapping[str, float | None]) -> str:
    each = (spends[key] for key in ("epsilon", "lasting"))
    return f"{{{', '.join(repr(-1.0 if epsilon is None else float(epsilon)) for epsilon in each)}}}"


def _column(column: Mapping[str, Any], arrays: _Arrays) -> str:
    domain = column["domain"]

    def fact(*ends: str) -> Any:
        return next((value for key, value in domain.items() if key in ends), None)

    labels = fact("labels", "set.of.labels", "pairs.of.labels", "ranking.of") or []
    size = fact("size", "set.of.size", "pairs.of.size") or len(labels)
    longest = fact("strings.longest", "set.of.strings.longest") or 0
    pieces = fact("strings.pieces", "set.of.strings.pieces") or []
    names = ", ".join(arrays.names(each) for each in (labels, column["tags"], pieces))
    return f"{{{_literal(column['name'])}, ULDP_HOLDS_{_constant(column['kind'])}, {size}, {longest}, {names}}}"


def _constant(name: str) -> str:
    return name.upper().replace("-", "_")


def _of_a_ledger(table: Mapping[str, Any]) -> Iterator[str]:
    if table["kept"]:
        yield "keep a response for each symbol"
    if (budget := table["budget"]) is not None:
        yield f"spend at most epsilon {budget['epsilon']:g} in {budget['every_ms']:,} ms"


def _draws(encoding: Mapping[str, Any]) -> int:
    """Return how many numbers an encoding draws."""
    inside = [*encoding.get("encodings", ()), *(base["encoding"] for base in encoding.get("bases", ()))]
    form, held = encoding["form"], encoding.get("held") or 0
    own = {"grid": 1, "signed": 2 * held}.get(form, held if form in ("set", "strings") else 0)
    return own + (encoding.get("choice") == {"form": "drawn"}) + sum(map(_draws, inside))


def _nodes(node: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all mappings in a part of a table."""
    if isinstance(node, Mapping):
        yield node
    for each in node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ():
        yield from _nodes(each)


def _payload_bytes(node: Mapping[str, Any]) -> int:
    size = node.get("size") or 0
    return max((2 * size if node.get("form") == "integers" else -(-size // 8)) + 2, node.get("width") or 0)


def _mechanism(form: Mapping[str, Any], arrays: _Arrays) -> str:
    fields = dict(form)
    if form["form"] == "near":
        fields |= {"ends": [int(each) for row in form["ends"] for each in row], "size": len(form["ends"])}
    mechanisms, nests = fields.pop("mechanisms", ()), fields.pop("nests", ())
    inside = (mechanisms, *([fields.pop(key)] if key in form else () for key in ("permanent", "once")))
    pointers = [arrays.add("uldp_mechanism", [_mechanism(each, arrays) for each in of]) for of in inside]
    pointers += [arrays.add("uldp_nest", [_nest(nest, arrays) for nest in nests]), str(len(nests))]
    return f"{{{_fields(fields, MECHANISM_NUMBERS, MECHANISM_LISTS, arrays)}, {', '.join(pointers)}}}"


def _nest(nest: Mapping[str, Any], arrays: _Arrays) -> str:
    planes = nest["planes"]
    numbers = ", ".join(_number(nest[key]) for key in ("symbol", "uniform", "points"))
    return f"{{{numbers}, {len(planes[0])}, {arrays.list(each for plane in planes for each in plane)}}}"


def _encoding(form: Mapping[str, Any], arrays: _Arrays) -> str:
    fields = dict(form)
    if "places" in form:
        fields["places"] = [each for row in form["places"] for each in row]
    others = [f"ULDP_{_MAPS[fields.pop('choice', {'form': 'drawn'})['form']]}"]
    others += [repr(float(fields.pop(end, 0.0))) for end in ("low", "high")]
    alone = (*([fields.pop("of")] if "of" in form else ()), *fields.pop("encodings", ()))
    bases: list[tuple[Mapping[str, Any], list[int]]] = [(each, []) for each in alone]
    bases += [(base["encoding"], base["columns"]) for base in fields.pop("bases", ())]
    within = [f"{{{arrays.add('uldp_encoding', [_encoding(each, arrays)])}, {arrays.list(of)}}}" for each, of in bases]
    others += [
        arrays.add("uldp_base", within),
        str(len(bases)),
        arrays.add("uldp_map", map(_map, fields.pop("maps", ()))),
    ]
    return f"{{{_fields(fields, ENCODING_NUMBERS, ENCODING_LISTS, arrays)}, {', '.join(others)}}}"


def _map(form: Mapping[str, Any] | None) -> str:
    if form is None:
        return "{ULDP_SAME, 0, 0}"
    return f"{{ULDP_{form['form'].upper()}, {form.get('first', 0)}, {form['width']}}}"


def _fields(form: Mapping[str, Any], numbers: Iterable[str], lists: Iterable[str], arrays: _Arrays) -> str:
    """Return the values of a form, its numbers, and its lists, which may have a single number or null."""
    if unknown := form.keys() - {"form", *numbers, *lists}:
        raise ValueError(f"the client in C has no field for {min(unknown)}")
    values = [f"ULDP_{form['form'].upper()}", *(_number(form.get(key) or 0) for key in numbers)]
    given = ([] if value is None else value if isinstance(value, list) else [value] for value in map(form.get, lists))
    values += map(arrays.list, given)
    return ", ".join(values)


def _number(number: int) -> str:
    return f"{number}" if number < 1 << 15 else f"UINT64_C({number})"


def _bool(flag: bool) -> str:
    return "true" if flag else "false"


def _literal(text: str) -> str:
    """A string of C. Octal digits end after three, so no character that follows is taken for one."""
    plain = [32 <= byte < 127 and byte not in b'"\\?' for byte in text.encode()]
    inside = [chr(byte) if each else f"\\{byte:03o}" for byte, each in zip(text.encode(), plain, strict=True)]
    return f'"{"".join(inside)}"'


def _text(text: str) -> str:
    return re.sub(r"[^\w .-]", "?", text, flags=re.ASCII)

"""The conformance vectors for the client in C: a header of all tables, and lines of text for each device."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from uldp.pipelines.clients.c_table import c_table

#: The numbers of ``uldp_kind`` by the kind of a column.
KINDS = {"values": 1, "number": 2, "strings": 3, "set": 4, "ranking": 5, "pairs": 6, "string-set": 7}


def header(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a header with the table of each case."""
    for number, case in enumerate(cases):
        yield from c_table(case["table"], f"t{number}")
    names = [f"t{number}" for number in range(len(cases))]
    yield f"static uldp_table tables[{len(names)}];"
    yield f"static uldp_work works[{len(names)}];"
    yield "static void define(void) {"
    yield from (
        f"  tables[{number}] = {name}_table; works[{number}] = {name}_work;" for number, name in enumerate(names)
    )
    yield "}"


def lines(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what ``clients/c/test/vectors.c`` reads."""
    for number, case in enumerate(cases):
        yield f"table {number}"
        for device in case["devices"]:
            yield from _device(case["table"], device)


def _device(table: Mapping[str, Any], device: Mapping[str, Any]) -> Iterator[str]:
    yield f"device {_part(table['encoding'].get('choice', {}), device)}"
    for column in table["columns"]:
        name, kind = column["name"], KINDS[column["kind"]]
        value, tag = (of if name == "" else of[name] for of in (device["value"], device["tag"]))
        behind = -1 if tag is None else column["tags"].index(tag)
        if isinstance(value, str):
            yield f"held {kind} 0 {behind} 0 0 {value.encode().hex() or '-'}"
        elif isinstance(value, list | tuple) and any(isinstance(each, str) for each in value):
            texts = ",".join(each.encode().hex() or "-" for each in value)
            yield f"held {kind} 0 {behind} 0 {len(value)} {' '.join(['0 0'] * len(value))} {texts}"
        elif isinstance(value, list | tuple):
            yield f"held {kind} 0 {behind} 0 {len(value)} {' '.join(map(item, value))} -"
        else:
            yield f"held {kind} {max(int(value), 0)} {behind} {value!r} 0 -"
    for report in device["reports"]:
        draws = " ".join(f"{limit} {drawn}" for limit, drawn in report["draws"])
        yield f"draws {len(report['draws'])} {draws}"
        yield f"report {report['event_time']} {report['report_id']} {report['message']}"


def item(each: Any) -> str:
    """Return an item with a number: that of a key, or 0."""
    index, number = each if isinstance(each, list | tuple) else (each, 0)
    return f"{index} {number!r}"


def held_line(columns: Sequence[Mapping[str, Any]], holding: Mapping[str, Any]) -> str:
    """Return what the programs of ``clients/c/test`` read of a device."""
    parts = [f"{len(columns)}"]
    for column in columns:
        name, kind = column["name"], KINDS[column["kind"]]
        labels: list[str] = next((each for key, each in column["domain"].items() if "labels" in key), [])
        value = holding["value"][name] if name else holding["value"]
        if isinstance(value, list):
            indexed = [
                [labels.index(each[0]), each[1]] if isinstance(each, list) and labels else each for each in value
            ]
            parts.append(f"{kind} 0 -1 0 {len(value)} {' '.join(map(item, indexed))}")
        else:
            tag = 0 if value in (holding.get("hidden") or {}) else -1
            index, number = (labels.index(value), 0) if labels else (int(value), value)
            parts.append(f"{kind} {index} {tag} {number} 0")
    return " ".join(parts)


def _part(choice: Mapping[str, Any], device: Mapping[str, Any]) -> int:
    """Return the number of the level or slice of a device; 0 for others."""
    part = 0
    for name, known in choice.get("by", {}).items():
        part = part * len(known) + known.index(device["by"][name])
    return choice["levels"].index(device["level"]) if choice.get("form") == "level" else part

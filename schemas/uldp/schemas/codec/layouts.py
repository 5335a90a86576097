"""How archivers of the field lay out messages: which fields of their records are the data, the time, the attributes.

Each layout is known here, by names and types of fields; the order of the fields and the name of the record may be any.
A header says which layout a file has, and how its writer encoded a time. No other part of a schema has a meaning.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Any

from uldp.schemas.errors import DataError

#: A type in Avro's parsing canonical form: the name of a primitive, or a complex type with its parts.
Type = Any

#: Of each declared unit, how many are in a millisecond. A local time has no zone; it is taken as UTC.
UNITS = {
    f"{clock}timestamp-{unit}": in_millisecond
    for clock in ("", "local-")
    for unit, in_millisecond in (("millis", 1), ("micros", 1_000), ("nanos", 1_000_000))
}


class LayoutError(DataError):
    """A schema of messages that says too little, or something unknown; the message says what."""


class Role(Enum):
    """What a field is to a message."""

    DATA = auto()
    TIME = auto()
    TIME_TEXT = auto()
    ATTRIBUTES = auto()
    OTHER = auto()


@dataclass(frozen=True)
class Layout:
    """The fields of an archiver's records, in order, and how many units of the time are in a millisecond."""

    fields: tuple[tuple[Role, Type], ...]
    units: int = 1

    @property
    def dated(self) -> bool:
        """Whether messages have a time."""
        return any(role in (Role.TIME, Role.TIME_TEXT) for role, _ in self.fields)


def _or_null(*kinds: Type) -> frozenset[Type]:
    """Return types, and the types of a field that is one of them or null."""
    return frozenset(form for kind in kinds for form in (kind, ("union", "null", kind), ("union", kind, "null")))


_BYTES, _LONG, _TEXT = _or_null("bytes"), _or_null("long"), _or_null("string")
_TEXTS = _or_null(("map", "string"), ("map", ("union", "null", "string")), ("map", ("union", "string", "null")))
_AMQP = ("union", "long", "double", "string", "bytes")
_PROPERTIES = frozenset({("map", _AMQP), ("map", (*_AMQP, "null")), ("map", "string")})

#: The fields of each archiver's records, and of how the unit is known if a file does not declare it.
_ARCHIVERS: tuple[tuple[Mapping[str, tuple[Role, frozenset[Type]]], int | None], ...] = (
    # Pub/Sub's subscription to Cloud Storage; and message.avsc with a declared unit.
    (
        {
            "data": (Role.DATA, _BYTES),
            "publish_time": (Role.TIME, _LONG),
            "attributes": (Role.ATTRIBUTES, _TEXTS),
            "subscription_name": (Role.OTHER, _TEXT),
            "message_id": (Role.OTHER, _TEXT),
            "ordering_key": (Role.OTHER, _TEXT),
        },
        None,
    ),
    # Dataflow's template Pub/Sub to Avro, whose source says that it writes milliseconds.
    ({"message": (Role.DATA, _BYTES), "timestamp": (Role.TIME, _LONG), "attributes": (Role.ATTRIBUTES, _TEXTS)}, 1),
    # Event Hubs Capture, and IoT Hub's routing to a storage account.
    (
        {
            "Body": (Role.DATA, _BYTES),
            "EnqueuedTimeUtc": (Role.TIME_TEXT, frozenset({"string"})),
            "Properties": (Role.ATTRIBUTES, _PROPERTIES),
            "SystemProperties": (Role.OTHER, _PROPERTIES),
            "SequenceNumber": (Role.OTHER, _LONG),
            "Offset": (Role.OTHER, _TEXT),
        },
        1,
    ),
)


def layout_of(schema: Any, canonical: Type) -> Layout | None:
    """Return the layout of an archiver's schema; None if it is of none, LayoutError if a time has no known unit."""
    if canonical in _BYTES:  # Kafka Connect, of a topic of bytes
        return Layout(((Role.DATA, canonical),))
    if not isinstance(canonical, tuple) or canonical[0] != "record":
        return None
    fields = dict(canonical[2:])
    for known, units in _ARCHIVERS:
        if all(name in known and kind in known[name][1] for name, kind in fields.items()):
            roles = tuple((known[name][0], kind) for name, kind in fields.items())
            if Role.DATA in (role for role, _ in roles):
                time = next((field for field in schema["fields"] if known[field["name"]][0] is Role.TIME), None)
                return Layout(roles, 1 if time is None else units_of(time, units))
    return None


def units_of(field: Mapping[str, Any], undeclared: int | None) -> int:
    """Return how many units of a field's time are in a millisecond: ``undeclared`` or of ``UNITS``; or LayoutError."""
    declared = sorted({str(name) for name in _logical_types(field)})
    if not declared and undeclared is not None:
        return undeclared
    if len(declared) != 1 or declared[0] not in UNITS:
        said = f"the unit {' and '.join(declared)!r}" if declared else "no unit of time"
        raise LayoutError(f"{field['name']} declares {said}; known are {', '.join(UNITS)}")
    return UNITS[declared[0]]


def _logical_types(node: Any) -> Iterator[Any]:
    """Yield what a field declares, wherever it does."""
    if isinstance(node, list):
        for branch in node:
            yield from _logical_types(branch)
    if isinstance(node, dict):
        if "logicalType" in node:
            yield node["logicalType"]
        yield from _logical_types(node.get("type"))


@lru_cache(maxsize=16)
def units_of_message(text: bytes) -> int:
    """Return how many units of publish times, by a writer's schema, are in a millisecond; LayoutError if unknown."""
    fields = json.loads(text)["fields"]
    return units_of(next(field for field in fields if field["name"] == "publish_time"), 1)

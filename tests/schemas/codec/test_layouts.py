"""Records of archivers are the messages that were sent, and a schema that says too little is refused."""

import io
import json
from typing import Any

import pytest

from tests.archivers import ARCHIVERS
from tests.fuzz.container import write, write_long
from uldp.schemas.codec.blocks import Container, ContainerError
from uldp.schemas.codec.layouts import UNITS
from uldp.schemas.codec.mapped import NO_TIME, mapped_messages, parse_time
from uldp.schemas.codec.packed import PackedMessages
from uldp.schemas.codec.stored import decode_messages
from uldp.schemas.records import Message

TIME = 1_767_258_001_000
SENT = [
    Message(b"one", TIME, {"uldp-sender": "gateway", "trace": "0af7"}),
    Message(b"", TIME + 1000),
    Message(bytes(70_000), 0, {"uldp-attempt": "2"}),
]


def read(content: bytes, published: int = NO_TIME) -> list[Message]:
    """Read a container of messages of any layout."""
    container = Container.open(io.BytesIO(content))
    assert container.name == "message"
    found: list[Message] = []
    for records, block in container.blocks():
        if container.layout is None:
            for part in decode_messages(records, block, "f", len(found)):
                found += part.in_milliseconds(container.units)
        else:
            found += mapped_messages(container.layout, records, block, "f", len(found), published)
    return found


@pytest.mark.parametrize("name", ARCHIVERS)
def test_messages_are_what_was_sent(name: str) -> None:
    archiver = ARCHIVERS[name]
    kept = {key: value for key, value in SENT[0].attributes.items() if key.startswith("uldp-")}
    expected = [
        Message(
            sent.data,
            sent.publish_time if archiver.dated else 42,
            attributes if archiver.attributes else {},
            f"f:{number}",
        )
        for number, (sent, attributes) in enumerate(zip(SENT, (kept, {}, SENT[2].attributes), strict=True))
    ]
    assert read(archiver.write(SENT), 42) == expected
    layout = Container.open(io.BytesIO(archiver.write([]))).layout
    assert (layout is None or layout.dated) == archiver.dated


def test_times_before_1970_are_rounded_down() -> None:
    early = Message(b"", -1)
    assert [each.publish_time for each in read(ARCHIVERS["a declared timestamp-nanos"].write([early]))] == [-1]
    assert PackedMessages.of([Message(b"", -1), Message(b"", -1000)]).in_milliseconds(1000).publish_times.tolist() == [
        -1,
        -1,
    ]


def schema(*fields: Any, name: str = "M") -> bytes:
    return json.dumps({"type": "record", "name": name, "fields": [*fields]}).encode()


DATA, ATTRIBUTES = (
    {"name": "data", "type": "bytes"},
    {"name": "attributes", "type": {"type": "map", "values": "string"}},
)


def time(unit: Any = None, kind: Any = "long") -> dict[str, Any]:
    return {"name": "publish_time", "type": kind if unit is None else {"type": kind, "logicalType": unit}}


@pytest.mark.parametrize("name", ["uldp.Message", "M"])
@pytest.mark.parametrize("unit", ["time-micros", "timestamp-seconds", "timestamp_millis", "decimal", "", 7, None, {}])
def test_an_unknown_unit_is_refused(unit: Any, name: str) -> None:
    field = {"name": "publish_time", "type": {"type": "long", "logicalType": unit}}
    with pytest.raises(ContainerError, match="publish_time") as refused:
        Container.open(io.BytesIO(write({b"avro.schema": schema(DATA, ATTRIBUTES, field, name=name)}, [])))
    assert all(known in str(refused.value) for known in UNITS)


@pytest.mark.parametrize(
    "field",
    [
        {"name": "publish_time", "type": "long", "logicalType": "timestamp-micros"},
        {"name": "publish_time", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "publish_time", "type": {"type": {"type": "long", "logicalType": "timestamp-micros"}}},
    ],
)
def test_a_unit_is_found_wherever_it_is_declared(field: Any) -> None:
    branch = b"\2" if isinstance(field["type"], list) else b""
    content = write({b"avro.schema": schema(DATA, field)}, [(1, b"\2x" + branch + write_long(TIME * 1000))])
    assert read(content) == [Message(b"x", TIME, {}, "f:0")]


def test_of_two_units_none_is_chosen() -> None:
    field = {"name": "publish_time", "type": {"type": "long", "logicalType": "timestamp-millis"}}
    with pytest.raises(ContainerError, match="timestamp-micros and timestamp-millis"):
        read(write({b"avro.schema": schema(DATA, field | {"logicalType": "timestamp-micros"})}, []))


def test_other_names_need_a_unit() -> None:
    with pytest.raises(ContainerError, match="publish_time declares no unit"):
        read(write({b"avro.schema": schema(DATA, ATTRIBUTES, time())}, []))


@pytest.mark.parametrize(
    "fields",
    [
        [DATA, time("timestamp-micros", "int")],
        [DATA, time("timestamp-micros"), {"name": "region", "type": "string"}],
        [{"name": "data", "type": "string"}, time("timestamp-micros")],
        [ATTRIBUTES, time("timestamp-micros")],
        [DATA, {"name": "attributes", "type": {"type": "map", "values": "null"}}, time("timestamp-micros")],
        [DATA, {"name": "attributes", "type": {"type": "array", "items": "null"}}],
        [DATA, {"name": "Body", "type": "bytes"}],
        [],
    ],
)
def test_other_fields_are_refused(fields: list[Any]) -> None:
    with pytest.raises(ContainerError, match="a schema that uldp does not know"):
        read(write({b"avro.schema": schema(*fields)}, []))


CAPTURE = json.dumps(ARCHIVERS["Event Hubs Capture"].schema).encode()
#: Number, offset, and time of an event; no properties; a body of one byte.
EVENT = b"\0\0" + write_long(20) + b"1/1/2026 12:00:00 AM" + b"\0\0" + b"\2\2x"


@pytest.mark.parametrize(
    ("records", "block", "reason"),
    [
        (2, EVENT, "a record is no message"),
        (1, EVENT + b"\0", "1 bytes follow the last record"),
        (1, EVENT.replace(b"\2\2x", b"\4\2x"), "a union has no branch 2"),
        (1, EVENT.replace(b"\2\2x", b"\1\2x"), "a union has no branch -1"),
        (1, EVENT.replace(b"1/1", b"13/"), "the time '13/.*' of a message is neither ISO 8601 nor as"),
        (1, EVENT.replace(b" 12:", b" 13:"), "is neither ISO 8601 nor as 1/31/2026 9:00:01 AM"),
        (1, EVENT.replace(b"AM\0\0", b"AM\2\2a\2\0\0"), "a number cannot end behind the block"),
        (1, EVENT.replace(b"AM\0\0", b"AM" + write_long(2**40)), "a record is no message"),
        (1, EVENT.replace(b"AM\0\0", b"AM\2\2\xff\0\0\0\0"), "codec can't decode"),
    ],
)
def test_a_damaged_record_is_refused(records: int, block: bytes, reason: str) -> None:
    assert read(write({b"avro.schema": CAPTURE}, [(1, EVENT)])) == [Message(b"x", 1_767_225_600_000, {}, "f:0")]
    with pytest.raises(ContainerError, match=reason):
        read(write({b"avro.schema": CAPTURE}, [(records, block)]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1/2/2026 12:00:00 AM", "2026-01-02T00:00:00Z"),
        ("1/2/2026 12:00:00 PM", "2026-01-02T12:00:00Z"),
        ("1/2/2026 3:04:05\u202fPM", "2026-01-02T15:04:05Z"),
        ("12/31/2026 11:59:59 PM", "2026-12-31T23:59:59+00:00"),
        ("2026-01-02T15:04:05", "2026-01-02T15:04:05Z"),
    ],
)
def test_times_in_text_are_utc(text: str, expected: str) -> None:
    assert parse_time(text) == parse_time(expected)

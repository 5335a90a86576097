"""What must hold of the reader of container files for any bytes at all.

An input is read as a recipe: a few bytes choose what is wrong with a container, and the rest is the container, or the
blocks of one. So the search does not need to guess a schema of 500 bytes or a sync marker.
"""

import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import fastavro

from uldp.schemas.codec import stored
from uldp.schemas.codec.blocks import Container, ContainerError
from uldp.schemas.codec.columnar import write_varint
from uldp.schemas.codec.layouts import Layout, Role
from uldp.schemas.codec.mapped import NO_TIME, mapped_messages, parse_time
from uldp.schemas.codec.stored import decode_messages
from uldp.schemas.framing import Schema, load_schema
from uldp.schemas.records import Message, known_attributes

MARKER = bytes(range(16))
NAMES = ("message", "rejected", "missing", "statistic", "estimate", "ids")
CODECS = (b"null", b"deflate", b"", b"snappy", b"\xff", b"zstandard")


def schema_text(schema: Schema) -> bytes:
    """Return a schema as JSON without docs, so that a change of these changes no seed."""
    return json.dumps(_without_docs(schema)).encode()


def _without_docs(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_docs(value) for key, value in node.items() if key != "doc" and not key.startswith("__")}
    return [*map(_without_docs, node)] if isinstance(node, list) else node


def write(
    metadata: Mapping[bytes, bytes], blocks: Sequence[tuple[int, bytes]], *, size: int = 0, marker: bytes = MARKER
) -> bytes:
    """Write a container file, whatever is in it.

    Args:
        metadata: The entries of the header.
        blocks: Of each block the claimed number of records, and the bytes as they are stored.
        size: By so much the claimed size of each block is larger than it is.
        marker: The sync marker behind each block; the one of the header is ``MARKER``.
    """
    entries = b"".join(write_varint(len(text)) + text for entry in metadata.items() for text in entry)
    out = [b"Obj\x01", write_varint(len(metadata)), entries, b"\0", MARKER]
    for records, block in blocks:
        out += [write_long(records), write_long(len(block) + size), block, marker]
    return b"".join(out)


def write_long(value: int) -> bytes:
    """Encode any long; ``write_varint`` takes only those that are not negative."""
    if value >= 0:
        return write_varint(value)
    odd = bytearray(write_varint(~value))
    odd[0] |= 1  # zigzag: odd is negative
    return bytes(odd)


def deflate(block: bytes) -> bytes:
    """Compress a block as the codec ``deflate`` does."""
    deflater = zlib.compressobj(wbits=-15)
    return deflater.compress(block) + deflater.flush()


def snappy(block: bytes) -> bytes:
    """Store up to 127 bytes as the codec ``snappy`` does, as one literal."""
    stored = bytes((len(block), 60 << 2, len(block) - 1)) + block if block else b"\0"
    return stored + zlib.crc32(block).to_bytes(4, "big")


TEXTS = tuple(schema_text(load_schema(name)) for name in NAMES)
_MAP = b'{"type":"map","values":["long","double","string","bytes","null"]}'
#: The schemas of archivers, by the first letters of their names.
LAYOUTS = {
    "pubsub": b'{"type":"record","name":"P","fields":['
    b'{"name":"data","type":"bytes"},{"name":"message_id","type":"string"},'
    b'{"name":"publish_time","type":{"type":"long","logicalType":"timestamp-micros"}},'
    b'{"name":"attributes","type":{"type":"map","values":"string"}}]}',
    "dataflow": b'{"type":"record","name":"D","fields":[{"name":"attributes","type":{"type":"map","values":"string"}},'
    b'{"name":"message","type":"bytes"},{"name":"timestamp","type":["null","long"]}]}',
    "hubs": b'{"type":"record","name":"E","fields":[{"name":"SequenceNumber","type":"long"},'
    b'{"name":"EnqueuedTimeUtc","type":"string"},{"name":"Properties","type":'
    + _MAP
    + b'},{"name":"Body","type":["null","bytes"]}]}',
    "kafka": b'["null","bytes"]',
}
SCHEMAS = (*TEXTS, *LAYOUTS.values())
#: So many bytes of a block are seen at once when a container is read a second time.
SMALL_WINDOW = 40
#: The recipe is in the first bytes of an input: how to build, schema, codec, mutation of the schema, records, size.
RECIPE_SIZE = 6


def build(data: bytes) -> bytes:
    """Make a container file of an input, whatever the bytes."""
    how, name, codec, change, records, size = data[:RECIPE_SIZE].ljust(RECIPE_SIZE, b"\0")
    body = data[RECIPE_SIZE:]
    if how == 0:
        return body
    text = SCHEMAS[name % len(SCHEMAS)]
    if change:  # overwrite, insert or delete in the schema, at a place and with bytes that the input names
        at = int.from_bytes(body[:2]) % len(text)
        edit, body = body[2 : 2 + change // 3], body[2 + change // 3 :]
        text = text[:at] + edit + text[at + (0, len(edit), 1)[change % 3] :]
    if how & 32:
        blocks = [_messages(body)]
    else:
        middle = len(body) // 2 if how & 16 else len(body)
        blocks = [(records - 8, body[:middle]), (records - 8, body[middle:])][: 1 + (middle < len(body))]
    written = CODECS[codec % len(CODECS)]
    if written == b"deflate" and how & 2:
        blocks = [(count, deflate(block)) for count, block in blocks]
    metadata = {b"avro.schema": text, b"avro.codec": written, b"uldp.last_publish_time": b"0"}
    return write(metadata, blocks, size=size if how & 4 else 0, marker=MARKER[::-1] if how & 8 else MARKER)


def _messages(data: bytes) -> tuple[int, bytes]:
    """Encode whole messages, whatever the bytes: most other inputs are refused at their first record."""
    out, records = [], 0
    while data:
        attributes, length, width = data[:3].ljust(3, b"\0")
        start = 3 + width % 9
        time, body, data = data[3:start], data[start : start + length], data[start + length :]
        out += [write_varint(len(body)), body]
        for text in (body[:attributes].hex().encode(), body[attributes:].hex().encode()) if attributes else ():
            out += [write_long(-1) + write_varint(len(text))] if attributes % 2 else [write_varint(1)]
            out += [write_varint(len(text)), text, write_varint(0)]
        out += [b"\0", write_long(int.from_bytes(time, "little", signed=True))]
        records += 1
    return records, b"".join(out)


def read(content: bytes) -> list[Any]:
    """Read a container file as the project does: messages by the fast decoder or by their layout, without positions.

    Raises:
        ContainerError: if it is no container of known records.
    """
    container = Container.open(io.BytesIO(content))
    if container.name == "message" and container.current:
        return [
            message._replace(source="")
            for records, block in container.blocks()
            for part in decode_messages(records, block, "", 0)
            for message in part.in_milliseconds(container.units)
        ]
    if container.layout is not None:
        return [
            message._replace(source="")
            for records, block in container.blocks()
            for message in mapped_messages(container.layout, records, block, "", 0, NO_TIME)
        ]
    return _as_messages(container, container.records())


def reference(content: bytes) -> list[Any]:
    """Read a container file that ``read`` accepts by fastavro alone, with the known schema in place of the file's."""
    file = io.BytesIO(content)
    container = Container.open(file)
    text = schema_text(container.writer if container.layout is None else _schema_of(container.layout))
    if container.codec in ("null", "deflate"):
        header = write({b"avro.schema": text, b"avro.codec": container.codec.encode()}, [])
        trusted = header[: -len(MARKER)] + container.sync_marker + file.read()
    else:  # whose library fastavro may lack
        trusted = write({b"avro.schema": text}, [*container.blocks()])
    if container.layout is not None:
        return [_as_message(container.layout, record) for record in _records(trusted, None)]
    return _as_messages(container, _records(trusted, load_schema(container.name)))


def _records(content: bytes, schema: Schema | None) -> Iterator[dict[str, Any]]:
    return cast(Iterator[dict[str, Any]], fastavro.reader(io.BytesIO(content), schema))


def _schema_of(layout: Layout) -> Schema:
    """Return a schema that is the layout's; a record of one field has the bytes of the field."""
    fields = [{"name": f"f{index}", "type": _avro(kind)} for index, (_, kind) in enumerate(layout.fields)]
    return cast(Schema, {"type": "record", "name": "M", "fields": fields})


def _avro(kind: Any) -> Any:
    if isinstance(kind, str):
        return kind
    return [*map(_avro, kind[1:])] if kind[0] == "union" else {"type": "map", "values": _avro(kind[1])}


def _as_message(layout: Layout, record: Mapping[str, Any]) -> Message:
    message = Message(b"", NO_TIME)
    for (role, _), value in zip(layout.fields, record.values(), strict=True):
        if role is Role.DATA:
            message = message._replace(data=value or b"")
        elif role is Role.TIME and value is not None:
            message = message._replace(publish_time=value // layout.units)
        elif role is Role.TIME_TEXT:
            message = message._replace(publish_time=parse_time(value))
        elif role is Role.ATTRIBUTES and value:
            texts = {name: str(each) for name, each in value.items() if isinstance(each, str | int)}
            message = message._replace(attributes=known_attributes(texts))
    return message


def _as_messages(container: Container, records: Iterator[dict[str, Any]]) -> list[Any]:
    """Return records, or the messages in them with the attributes that are kept."""
    if container.name != "message":
        return list(records)
    return [
        Message(each["data"], each["publish_time"] // container.units, known_attributes(each["attributes"]))
        for each in records
    ]


def outcome(content: bytes, window: int) -> list[Any] | str:
    """Read a container file, of whose blocks the reader sees so many bytes at once; return why if it refuses it."""
    usual, stored.WINDOW = stored.WINDOW, window
    try:
        return read(content)
    except ContainerError as error:
        return str(error)
    finally:
        stored.WINDOW = usual


def check(data: bytes) -> bool:
    """Read the container in ``data``; return whether the reader accepts it.

    Raises:
        AssertionError: if fastavro reads other records than the reader, or the reader's windows matter.
    """
    content = build(data)
    found = outcome(content, stored.WINDOW)
    windowed = outcome(content, SMALL_WINDOW)
    assert repr(found) == repr(windowed), f"{found}\n!=\n{windowed}"  # NaN is not equal to itself
    if isinstance(found, str):
        return False
    expected = reference(content)
    assert repr(found) == repr(expected), f"{found}\n!=\n{expected}"
    return True

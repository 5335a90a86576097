"""Container files from outside: the header and the blocks are read with bounds, before any of it reaches fastavro.

A header names its writer's schema, and fastavro would follow any schema: one that contains itself, or an array of 2^34
nulls. So the reader takes no schema from a file. It compares the schema's parsing canonical form with those of the
shipped schemas, and decodes with the shipped schema. It bounds each length before it allocates memory, and holds one
block at a time (Avro specification 1.11, "Object Container Files" and "Parsing Canonical Form for Schemas").
"""

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, combinations
from pathlib import Path
from typing import IO, Any, Self, cast

import fastavro

from uldp.schemas.codec.inflate import CODECS, check_codec, inflate, too_large
from uldp.schemas.codec.inflate import ContainerError as ContainerError
from uldp.schemas.codec.layouts import Layout, LayoutError, layout_of, units_of_message
from uldp.schemas.framing import Schema, load_schema, parse_schema
from uldp.schemas.regular_files import open_regular
from uldp.schemas.specs.mistakes import quote

#: The largest block of messages or rejected reports, and the largest compressed block, in bytes when inflated. A writer
#: ends a block behind the record that fills it: a message at the limit of 10,000,000 bytes, behind the 2 MB that Flume
#: gathers, or the 64 kB of other writers.
MAX_BLOCK_BYTES = 1 << 24
#: The largest stored block of panes in bytes: one table of 2^24 values takes up to 32 bytes for each.
MAX_PANE_BYTES = 1 << 30
#: The largest header in bytes; the shipped schemas take up to 10,000.
MAX_HEADER_BYTES = 1 << 20
#: The size of the marker behind the header and behind each block, in bytes.
SYNC_SIZE = 16

_MAGIC = b"Obj\x01"
_MAX_VARINT = 10
_BOUNDS = dict.fromkeys(("message", "rejected", "missing", "ids"), MAX_BLOCK_BYTES) | dict.fromkeys(
    ("estimate", "statistic"), MAX_PANE_BYTES
)


def open_file(path: str | Path) -> IO[bytes]:
    """Open a regular file; OSError if it cannot be opened, ContainerError if it is a pipe or a device."""
    try:
        return open_regular(path)
    except ValueError as error:
        raise ContainerError(str(error), "copy its content into a file") from error


#: Whether a reader wants a block, given the number of its first record in the file and the number of its records.
Wanted = Callable[[int, int], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Container:
    """An open container file behind its header."""

    #: What its records hold, as the shipped schema of this name: ``message``, ``rejected``, ``missing``, ``estimate``
    #: or ``statistic``.
    name: str
    writer: Schema  # the writer's schema: the shipped schema, or one without fields that have a default
    #: The layout of messages that an archiver wrote, by another schema; None if ``writer`` is theirs.
    layout: Layout | None
    units: int  # how many units of the publish times of messages are in a millisecond, if ``layout`` is None
    codec: str  # A name of ``uldp.schemas.codec.inflate.CODECS``
    metadata: Mapping[str, bytes]
    sync_marker: bytes  # the bytes behind each block
    file: IO[bytes]

    @classmethod
    def open(cls, file: IO[bytes]) -> Self:
        """Read the header of a container; ContainerError if it is none, or of an unknown schema, unit or codec."""
        if (begin := file.read(len(_MAGIC))) != _MAGIC:
            raise ContainerError(f"it starts with {begin.hex() or 'nothing'}, not {_MAGIC.hex()}")
        metadata = _read_metadata(file)
        sync_marker = _take(file, SYNC_SIZE)
        text = metadata.get("avro.schema", b"")
        codec = metadata.get("avro.codec", b"null").decode("utf-8", "backslashreplace")
        try:
            name, writer, layout = _writer_of(text)
            units = units_of_message(text) if name == "message" and layout is None else 1
        except LayoutError as error:
            raise ContainerError(str(error), "write it again with one of these units") from error
        if codec not in CODECS:
            raise ContainerError(
                f"is compressed with {quote(codec)}", f"write it again with one of these codecs: {', '.join(CODECS)}"
            )
        check_codec(codec)
        return cls(name, writer, layout, units, codec, metadata, sync_marker, file)

    @property
    def current(self) -> bool:
        """Whether the writer's schema is the shipped one."""
        return self.layout is None and self.writer is load_schema(self.name)

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yield the number of records of each block, and the records' bytes, inflated.

        ContainerError during iteration, if a block is damaged, or larger than the reader accepts.
        """
        return ((records, block) for _, records, block in self._blocks(None))

    def _blocks(self, wanted: Wanted | None) -> Iterator[tuple[int, int, bytes]]:
        """Yield the wanted blocks as ``blocks`` does, behind the number of their first record; None wants all."""
        first = 0
        for records, size in self._frames():
            if wanted is None or wanted(first, records):
                block = _take(self.file, size)
                self._end_block()
                block = inflate(self.codec, block, self._bound)
                yield first, _possible(records, len(block)), block
            else:
                self.file.seek(size, os.SEEK_CUR)
                self._end_block()
            first += records

    def count(self) -> int:
        """Return how many records the blocks claim to hold, without reading these; ContainerError if a block is cut."""
        found = 0
        for records, size in self._frames():
            self.file.seek(size, os.SEEK_CUR)
            self._end_block()
            # How many bytes a compressed block holds is known when it is inflated; no record takes less than one.
            found += _possible(records, size if self.codec == "null" else self._bound)
        return found

    @property
    def _bound(self) -> int:
        return _BOUNDS[self.name] if self.codec == "null" else MAX_BLOCK_BYTES

    def _frames(self) -> Iterator[tuple[int, int]]:
        """Yield the claimed number of records of each block, and its size as it is stored."""
        while first := self.file.read(1):
            records, size = _read_long(self.file, first), _read_long(self.file)
            if size > self._bound:
                raise too_large(size, self._bound)
            if size < 0:
                raise ContainerError("a length is negative")
            yield records, size

    def _end_block(self) -> None:
        if _take(self.file, SYNC_SIZE) != self.sync_marker:
            raise ContainerError("a block does not end with the sync marker of its file")

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the records, resolved to the shipped schema; iteration raises ContainerError if a block is damaged."""
        return (record for _, record in self.numbered())

    def numbered(self, wanted: Wanted | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the records of the wanted blocks with their numbers in the file; None wants all."""
        assert self.layout is None
        # Resolving takes three times as long as reading, even if there is nothing to resolve.
        reader = None if self.current else load_schema(self.name)
        for first, records, block in self._blocks(wanted):
            body = io.BytesIO(block)
            for number in range(first, first + records):
                yield number, read_record(body, self.writer, reader)
            check_end(body.tell(), block)


def _possible(records: int, size: int) -> int:
    """Return a claimed number of records if it is possible: each record of a known schema takes a byte or more."""
    if not 0 <= records <= size:
        raise ContainerError(f"a block of {size:,} bytes claims to hold {records:,} records")
    return records


def check_end(at: int, block: bytes) -> None:
    """Check that a block ends behind its last record; ContainerError if it does not."""
    if at != len(block):
        raise ContainerError(f"{len(block) - at:,} bytes follow the last record of a block")


def read_record(body: io.BytesIO, writer: Schema, reader: Schema | None = None) -> dict[str, Any]:
    """Read a record of a writer's schema, resolved to that of a reader unless they are the same.

    ContainerError if the bytes are no such record.
    """
    try:
        return cast(dict[str, Any], fastavro.schemaless_reader(body, writer, reader))
    except MemoryError:
        raise  # this process lacks memory; the file is not at fault
    except Exception as error:  # fastavro's C code raises many kinds of errors for hostile bytes
        raise ContainerError(f"a record is no value of {writer['name']}: {type(error).__name__}") from error


def _take(file: IO[bytes], size: int) -> bytes:
    """Read exactly so many bytes. Python takes the memory of all before it reads the first, so it must not be asked."""
    if size > MAX_HEADER_BYTES:
        at = file.tell()
        there = file.seek(0, os.SEEK_END) - at
        file.seek(at)
    else:
        there = size
    taken = file.read(size) if 0 <= size <= there else b""
    if len(taken) != size:
        raise ContainerError("it ends too early" if size >= 0 else "a length is negative")
    return taken


def _read_long(file: IO[bytes], first: bytes = b"") -> int:
    """Read a long: zigzag, then 7 bits per byte, low bits first."""
    value = 0
    for index in range(_MAX_VARINT):
        (byte,) = (index == 0 and first) or _take(file, 1)
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)
    raise ContainerError("a number of a block or of the header is too long")


def _read_metadata(file: IO[bytes]) -> dict[str, bytes]:
    """Read the map of the header: blocks of entries, each with the number of its entries."""
    metadata: dict[str, bytes] = {}
    end = file.tell() + MAX_HEADER_BYTES
    while entries := _read_long(file):
        if entries < 0:  # then the size of the block follows
            entries = -entries
            _read_long(file)
        for _ in range(entries):
            key, value = (_take(file, _bounded(_read_long(file), end - file.tell())) for _ in range(2))
            metadata[key.decode("utf-8", "backslashreplace")] = value
    return metadata


def _bounded(size: int, room: int) -> int:
    if size > room:
        raise ContainerError(f"the header takes more than {MAX_HEADER_BYTES:,} bytes")
    return size


@lru_cache(maxsize=16)
def _writer_of(text: bytes) -> tuple[str, Schema, Layout | None]:
    """Return the shipped schema, or the layout, that a schema in a header is; ContainerError if it is none."""
    try:
        schema = json.loads(text)
        canonical = _canonical(schema)
        found = _writers().get(canonical)
        if found is None and (layout := layout_of(schema, canonical)) is not None:
            return "message", load_schema("message"), layout
    except LayoutError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):  # no schema at all
        raise ContainerError("its header holds no schema of a record") from None
    if found is None:
        name = schema.get("name") if isinstance(schema, dict) else None
        raise ContainerError(
            f"holds records of a schema that uldp does not know, named {quote(name)}",
            f"write it with one of these schemas, unchanged: {', '.join(f'{known}.avsc' for known in _BOUNDS)}",
        )
    return *found, None


@cache
def _writers() -> dict[Any, tuple[str, Schema]]:
    """Return the known writer schemas by canonical form: the shipped ones, and each without fields with a default."""
    found = {}
    for name in _BOUNDS:
        shipped = load_schema(name)
        found[_canonical(shipped)] = name, shipped
        optional = [field["name"] for field in shipped["fields"] if "default" in field]
        for missing in chain.from_iterable(combinations(optional, n) for n in range(1, len(optional) + 1)):
            fields = [field for field in shipped["fields"] if field["name"] not in missing]
            shorter = {"type": "record", "name": shipped["name"], "fields": fields}
            found[_canonical(shorter)] = name, parse_schema(shorter)
    return found


def _canonical(node: Any, namespace: str = "") -> Any:
    """Return the parsing canonical form of a schema as nested tuples; one of several errors if it is no schema."""
    if isinstance(node, list):
        return "union", *(_canonical(branch, namespace) for branch in node)
    if isinstance(node, str):
        return _full_name(node, namespace)
    kind = node["type"]
    match kind:
        case "array":
            return kind, _canonical(node["items"], namespace)
        case "map":
            return kind, _canonical(node["values"], namespace)
        case "record" | "enum" | "fixed":
            name = _full_name(node["name"], node.get("namespace", namespace))
            if kind == "enum":
                return kind, name, *node["symbols"]
            if kind == "fixed":
                return kind, name, node["size"]
            inner = name.rpartition(".")[0]
            return kind, name, *((field["name"], _canonical(field["type"], inner)) for field in node["fields"])
    return _canonical(kind, namespace)


_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


def _full_name(name: str, namespace: str) -> str:
    return name if name in _PRIMITIVES or "." in name or not namespace else f"{namespace}.{name}"

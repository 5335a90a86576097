"""Avro's single-object encoding, and a store that finds the writer schema of a fingerprint.

A message is ``C3 01``, the CRC-64-AVRO fingerprint of the writer's schema (8 bytes, little-endian), then the body
(Avro specification 1.11, "Single-object encoding").
"""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, cast

import fastavro
from fastavro.schema import fingerprint, to_parsing_canonical_form

from uldp.schemas.errors import UldpError
from uldp.schemas.foreign_framing import foreign_hint, registry_id

MAGIC = b"\xc3\x01"
HEADER_SIZE = 10

Schema = dict[str, Any]


class NotSingleObjectError(UldpError):
    """The bytes do not begin with a header of the single-object encoding."""


class RegistryFramingError(UldpError):
    """The bytes are in the framing of a schema registry, whose ids name no schema of the store."""


class UnknownSchemaError(UldpError):
    """The fingerprint belongs to no known writer schema."""


class TruncatedBodyError(UldpError):
    """The body ends before its last field."""


class MalformedBodyError(UldpError):
    """The body is not a value of its schema, or further bytes follow it."""


def parse_schema(schema: Schema) -> Schema:
    """Return a record schema parsed by fastavro, so that later uses need not parse it again.

    The function sorts the keys. Writers put the schema into container files, and the bytes of these files must not
    depend on the process, but the order in which fastavro leaves the keys does.
    """
    return cast(Schema, json.loads(json.dumps(fastavro.parse_schema(schema), sort_keys=True)))


@cache
def load_schema(name: str) -> Schema:
    """Return the parsed schema that ships as ``<name>.avsc``."""
    text = resources.files("uldp.schemas").joinpath(f"{name}.avsc").read_text(encoding="utf-8")
    return parse_schema(json.loads(text))


def schema_fingerprint(schema: Schema) -> bytes:
    """Return the 8 bytes that identify ``schema`` on the wire."""
    return _crc_64_avro(to_parsing_canonical_form(schema))


@cache
def _crc_64_avro(canonical: str) -> bytes:
    """Return the fingerprint of a canonical form; it takes a millisecond, and a job needs few, but often."""
    # fastavro prints the little-endian bytes in wire order, so the hex needs no reversal.
    return bytes.fromhex(fingerprint(canonical, "CRC-64-AVRO"))


def header(schema: Schema) -> bytes:
    """Return the 10 bytes that precede every body written with ``schema``."""
    return MAGIC + schema_fingerprint(schema)


@cache
def shipped_header(name: str) -> bytes:
    """Return the 10 bytes that precede every body written with the shipped schema ``name``."""
    return header(load_schema(name))


def encode_object(name: str, record: Mapping[str, Any]) -> bytes:
    """Encode ``record`` with the shipped schema ``name``, and frame it."""
    out = io.BytesIO()
    out.write(shipped_header(name))
    fastavro.schemaless_writer(out, load_schema(name), record)
    return out.getvalue()


@dataclass(frozen=True)
class SchemaStore:
    """Known writer schemas by the header of their messages: all versions, so messages of old clients are decoded."""

    writers: Mapping[bytes, Schema]
    readers: Mapping[str, Schema]

    @classmethod
    def of(cls, *names: str, older: tuple[Schema, ...] = ()) -> "SchemaStore":
        """Build a store of the shipped schemas ``names``, and of ``older`` writer schemas with the same names."""
        readers = {load_schema(name)["name"]: load_schema(name) for name in names}
        parsed = [parse_schema(schema) for schema in older]
        if strangers := {schema["name"] for schema in parsed} - readers.keys():
            raise ValueError(f"older schemas {sorted(strangers)} have no reader among {sorted(readers)}")
        return cls({header(schema): schema for schema in (*readers.values(), *parsed)}, readers)

    def decode(self, message: bytes) -> tuple[str, dict[str, Any]]:
        """Return the full name of a framed message's schema, and its record; one of the errors above if it has none.

        It allocates at most a small multiple of ``len(message)``, because the reader checks the lengths inside the body
        against the bytes that are there.
        """
        if message[:2] != MAGIC:
            if (found := registry_id(message)) is not None:
                number, size = found
                raise RegistryFramingError(
                    f"starts with 00 and the schema id {number} of {size} bytes, which no file of ids names"
                )
            starts = f"starts with {message[:2].hex() or 'nothing'}, not {MAGIC.hex()}"
            raise NotSingleObjectError(starts + foreign_hint(message))
        if len(message) < HEADER_SIZE:
            raise NotSingleObjectError(f"{len(message)} bytes end inside the header, which has {HEADER_SIZE}")
        schema = self.writers.get(message[:HEADER_SIZE])
        if schema is None:
            raise UnknownSchemaError(f"fingerprint {message[2:HEADER_SIZE].hex()} is not known")
        body = io.BytesIO(message)
        body.seek(HEADER_SIZE)
        try:
            record = fastavro.schemaless_reader(body, schema, None)
        except EOFError as error:
            raise TruncatedBodyError(f"{len(message)} bytes end inside the body") from error
        except IndexError as error:
            # fastavro raises this error at the end of the buffer of a varint, and for an unknown branch of a union.
            if body.tell() >= len(message):
                raise TruncatedBodyError(f"{len(message)} bytes end inside the body") from error
            raise MalformedBodyError("a union names a branch that its schema does not have") from error
        except MemoryError:
            raise  # this process lacks memory; the message is not at fault
        except Exception as error:  # fastavro's C code raises many kinds of errors for hostile bytes
            raise MalformedBodyError(f"no value of {schema['name']}: {type(error).__name__}") from error
        if body.tell() != len(message):
            raise MalformedBodyError(f"{len(message) - body.tell()} bytes follow the body")
        if not _is_encoding(message[HEADER_SIZE:], schema, record):
            raise MalformedBodyError("a number is longer or larger than its type allows, or names no branch of a union")
        reader = self.readers[schema["name"]]
        if schema is not reader:
            body.seek(HEADER_SIZE)
            record = fastavro.schemaless_reader(body, schema, reader)
        return schema["name"], cast(dict[str, Any], record)


def _is_encoding(body: bytes, schema: Schema, record: Any) -> bool:
    """Return whether ``body`` is how Avro writes ``record``.

    fastavro also reads numbers with needless bytes, numbers of more bits than their type has, and negative branches of
    a union, which it counts from the end.
    """
    out = io.BytesIO()
    try:
        fastavro.schemaless_writer(out, schema, record)
    except MemoryError:
        raise  # this process lacks memory; the message is not at fault
    except Exception:  # fastavro's C code raises many kinds of errors for a value that is none of its schema
        return False
    return out.getvalue() == body


@cache
def report_store() -> SchemaStore:
    """Return the store of all schemas that a device, gateway or shuffler may use."""
    return SchemaStore.of("report", "report_batch")

"""Framing: what is accepted, byte for byte, and how everything else is refused.

``messages.json`` of the conformance vectors holds messages that other implementations can be held against.
"""

import struct
import tracemalloc
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.messages import record
from tests.conformance.vectors import read
from tests.fuzz.container import write_long as varint
from uldp.schemas.framing import (
    HEADER_SIZE,
    MAGIC,
    MalformedBodyError,
    NotSingleObjectError,
    RegistryFramingError,
    Schema,
    SchemaStore,
    TruncatedBodyError,
    UnknownSchemaError,
    header,
    load_schema,
    parse_schema,
    report_store,
)
from uldp.schemas.records import Report, ReportBatch

VECTORS = read("messages.json")
POSITIVE = {vector["name"]: vector for vector in VECTORS["positive"]}

SYMBOL = Report("ab", 1, bytes(range(16)), 1767258000000, 600)
BITS = Report("ab", 2, bytes(range(16)), 1767258000000, b"\xa5\x00\xf8")
BATCH = ReportBatch("ab", 1, bytes(32), struct.pack("<2q", 1, 2), symbols=struct.pack("<2I", 3, 4))


def decode(message: bytes) -> dict[str, Any]:
    return report_store().decode(message)[1]


def counted(data: bytes) -> bytes:
    return varint(len(data)) + data


def by_hand(value: Report | ReportBatch) -> bytes:
    """The body as the Avro specification builds it, field by field."""
    start = counted(value.collection.encode()) + varint(value.version)
    if isinstance(value, ReportBatch):
        union = (
            varint(0) + counted(value.symbols) if value.symbols is not None else varint(1) + counted(value.bits or b"")
        )
        return start + counted(value.report_ids) + counted(value.event_times) + union
    union = varint(0) + varint(value.payload) if isinstance(value.payload, int) else varint(1) + counted(value.payload)
    return start + value.report_id + varint(value.event_time) + union


@pytest.mark.parametrize("name", POSITIVE)
def test_positive_vector_is_what_the_specification_says(name: str) -> None:
    message = bytes.fromhex(POSITIVE[name]["message"])
    schema = {"Report": "report", "ReportBatch": "report_batch"}[POSITIVE[name]["type"]]
    assert message == header(load_schema(schema)) + by_hand(record(POSITIVE[name]))


@pytest.mark.parametrize("report", [SYMBOL, BITS, BATCH], ids=["symbol", "bits", "batch"])
def test_every_proper_prefix_is_truncated(report: Report | ReportBatch) -> None:
    message = report.encode()
    for end in range(len(message)):
        with pytest.raises(NotSingleObjectError if end < HEADER_SIZE else TruncatedBodyError):
            decode(message[:end])


@pytest.mark.parametrize("report", [SYMBOL, BITS, BATCH], ids=["symbol", "bits", "batch"])
@given(tail=st.binary(min_size=1, max_size=40))
def test_whatever_follows_the_body_is_malformed(report: Report | ReportBatch, tail: bytes) -> None:
    with pytest.raises(MalformedBodyError, match=f"^{len(tail)} bytes follow the body$"):
        decode(report.encode() + tail)


@given(st.binary(min_size=8, max_size=8).filter(lambda unknown: MAGIC + unknown not in report_store().writers))
def test_unknown_fingerprint_is_named(fingerprint: bytes) -> None:
    with pytest.raises(UnknownSchemaError, match=fingerprint.hex()):
        decode(MAGIC + fingerprint + SYMBOL.encode()[HEADER_SIZE:])


@given(st.binary(max_size=64), st.sampled_from([b"", MAGIC, *report_store().writers]))
def test_any_bytes_are_a_record_or_one_of_four_errors(body: bytes, start: bytes) -> None:
    try:
        decode(start + body)
    except (
        NotSingleObjectError,
        RegistryFramingError,
        UnknownSchemaError,
        TruncatedBodyError,
        MalformedBodyError,
    ) as error:
        assert str(error)  # noqa: PT017 (whether it raises is the bytes' affair)


LENGTH_OF_2_TO_62 = varint(1 << 62)


@pytest.mark.parametrize(
    "message",
    [
        header(load_schema("report")) + LENGTH_OF_2_TO_62 + bytes(1000),
        header(load_schema("report"))
        + counted(b"ab")
        + varint(1)
        + bytes(16)
        + varint(0)
        + varint(1)
        + varint(1 << 40),
        header(load_schema("report_batch")) + counted(b"ab") + varint(1) + LENGTH_OF_2_TO_62 + bytes(1000),
        header(load_schema("report_batch")) + counted(b"ab") + varint(1) + varint((1 << 31) - 1) + bytes(1000),
    ],
    ids=["collection", "bits", "report_ids", "report_ids of 2 GiB"],
)
def test_a_hostile_length_is_not_allocated(message: bytes) -> None:
    with pytest.raises(TruncatedBodyError):  # not measured: what is imported and cached by the first use
        decode(message)
    tracemalloc.start()
    try:
        with pytest.raises(TruncatedBodyError):
            decode(message)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(message) + 10_000


def evolved(**field: Any) -> Schema:
    """The schema of reports with one more field."""
    schema = dict(load_schema("report"))
    return parse_schema({**schema, "fields": [*schema["fields"], {"doc": "A new field.", **field}]})


def test_an_older_writer_is_read_with_the_default_of_the_new_field() -> None:
    reader = evolved(name="channel", type="string", default="stable")
    older = load_schema("report")
    store = SchemaStore({header(schema): schema for schema in (older, reader)}, {"uldp.Report": reader})
    assert store.decode(SYMBOL.encode()) == ("uldp.Report", {**decode(SYMBOL.encode()), "channel": "stable"})


def test_a_retired_field_of_an_older_writer_is_skipped() -> None:
    older = evolved(name="locale", type=["null", "string"])
    store = SchemaStore.of("report", older=(older,))
    message = header(older) + SYMBOL.encode()[HEADER_SIZE:] + varint(1) + counted(b"de")
    assert store.decode(message) == ("uldp.Report", decode(SYMBOL.encode()))
    assert store.decode(SYMBOL.encode()) == ("uldp.Report", decode(SYMBOL.encode()))
    with pytest.raises(UnknownSchemaError):
        decode(message)


def test_an_older_writer_needs_a_reader() -> None:
    with pytest.raises(ValueError, match=r"older schemas \['uldp\.Message'\] have no reader among \['uldp\.Report'\]"):
        SchemaStore.of("report", older=(load_schema("message"),))


@pytest.mark.parametrize("step", ["schemaless_reader", "schemaless_writer"])
def test_a_lack_of_memory_is_no_malformed_body(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_memory(*_: object) -> None:
        raise MemoryError

    message = Report("c", 1, bytes(16), 0, 1).encode()
    monkeypatch.setattr(fastavro, step, without_memory)
    with pytest.raises(MemoryError):
        report_store().decode(message)

"""Batches read in place against the plain decoder, which is the reference.

Whatever ``BatchViews.read`` takes must be what ``SchemaStore.decode`` says; what it does not take is left to that.
"""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.schemas.codec.test_columnar import varints
from uldp.schemas.codec.batched import BatchViews
from uldp.schemas.codec.columnar import Layout, write_varint
from uldp.schemas.framing import header, load_schema, report_store
from uldp.schemas.records import Report, ReportBatch

#: Names and versions of which one begins like another, and some whose lengths take two bytes.
KEYS = [("a", 1), ("ab", 1), ("ab", 2), ("ab", 129), ("ab-c", 1), ("z" * 64, 1), ("y" * 64, 2**31 - 1)]
BATCHES = BatchViews.of(KEYS)


def prefix(key: tuple[str, int]) -> bytes:
    return Layout.of(load_schema("report_batch"), *key, None).prefix


def encode(key: tuple[str, int], ids: bytes, times: bytes, kind: str, column: bytes) -> bytes:
    symbols, bits = (column, None) if kind == "symbols" else (None, column)
    return ReportBatch(*key, ids, times, symbols, bits).encode()


def plain(message: bytes) -> tuple[tuple[str, int], dict[str, Any]]:
    name, record = report_store().decode(message)
    assert name == "uldp.ReportBatch"
    return (record.pop("collection"), record.pop("version")), record


def in_place(message: bytes) -> tuple[tuple[str, int], dict[str, Any]] | None:
    """What is read in place, with the columns copied out of their views."""
    if (read := BATCHES.read(message)) is None:
        return None
    key, record = read
    payload = {branch: bytes(column) for branch, column in record["payload"].items()}
    return key, {name: bytes(record[name]) for name in ("report_ids", "event_times")} | {"payload": payload}


COLUMN = st.binary(max_size=40) | st.integers(60, 70).map(bytes) | st.sampled_from([bytes(8190), bytes(8200)])


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """A well-formed batch of any collection, whose columns need not fit each other."""
    key = draw(st.sampled_from([*KEYS, ("a", 2), ("nobody", 1)]))
    kind = draw(st.sampled_from(["symbols", "bits"]))
    return encode(key, draw(COLUMN), draw(COLUMN), kind, draw(COLUMN))


@st.composite
def assembled(draw: st.DrawFn) -> bytes:
    """The prefix of a collection, and then fields that no encoder of ours writes."""
    lengths = st.integers(0, 20).map(write_varint) | st.sampled_from([b"\x81\0", b"\x84\x80\0", b"\1"]) | varints()
    branch = draw(st.sampled_from([b"\0", b"\2", b"\1", b"\3", b"\4", b"\x80\0", b"\x82\0"]))
    column = st.binary(max_size=20)
    message = prefix(draw(st.sampled_from(KEYS)))
    for between in (b"", branch, b""):
        message += draw(lengths) + draw(column) + between
    return message


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A batch with a byte set, inserted or deleted, or cut short."""
    message = bytearray(draw(batches()))
    at = draw(st.integers(0, min(len(message), 200) - 1))
    match draw(st.sampled_from(["set", "insert", "delete", "cut"])):
        case "set":
            message[at] = draw(st.integers(0, 255))
        case "insert":
            message.insert(at, draw(st.integers(0, 255)))
        case "delete":
            del message[at]
        case "cut":
            del message[at:]
    return bytes(message)


@given(batches() | assembled() | mutated() | st.binary(max_size=60))
@example(b"")
@example(prefix(("ab", 1)))
@example(prefix(("ab", 1)) + b"\0\0\0\0")
def test_what_is_read_in_place_is_what_the_plain_decoder_says(message: bytes) -> None:
    if (read := in_place(message)) is not None:
        assert read == plain(message)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("kind", ["symbols", "bits"])
@pytest.mark.parametrize("size", [0, 1, 63, 64, 8191, 8192, 2**20, 9_000_000])
def test_what_gateways_send_is_read_in_place(key: tuple[str, int], kind: str, size: int) -> None:
    message = encode(key, b"i" * 16, bytes(size), kind, b"p")
    columns = {"report_ids": b"i" * 16, "event_times": bytes(size), "payload": {kind: b"p"}}
    assert in_place(message) == plain(message) == (key, columns)


@pytest.mark.parametrize(
    "message",
    [
        ReportBatch("nobody", 1, b"", b"", bits=b"").encode(),
        ReportBatch("a", 2, b"", b"", bits=b"").encode(),
        Report("a", 1, bytes(16), 0, 0).encode(),
        header(load_schema("report_batch")),
        ReportBatch("a", 1, b"", b"", bits=b"").encode() + b"\0",
        ReportBatch("a", 1, b"", b"", bits=b"b").encode()[:-1],
        prefix(("a", 1)) + b"\1" + bytes(3),
        prefix(("a", 1)) + b"\0\0\4\0",
        prefix(("a", 1)) + b"\x80\x80\x80\x80\0\0\0\0",
    ],
    ids=["collection", "version", "report", "header", "tail", "cut", "negative", "branch", "long length"],
)
def test_the_rest_is_left(message: bytes) -> None:
    assert BATCHES.read(message) is None

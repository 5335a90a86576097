"""The reference reader finds in a container file what was encoded, however it was cut and joined before."""

import io
import json
import secrets
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, cast

import fastavro
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.container import MARKER, NAMES
from tests.messages import read_back
from uldp.schemas.codec.blocks import MAX_BLOCK_BYTES, Container
from uldp.schemas.codec.container import BLOCK_SIZE, EncodedMessages, write_header
from uldp.schemas.framing import load_schema, schema_fingerprint
from uldp.schemas.records import Message

longs = st.integers(-(2**63), 2**63 - 1)
texts = st.text(max_size=4)
messages = st.builds(
    Message, st.binary(max_size=200), longs, st.dictionaries(texts, texts, max_size=2), source=st.just("")
)
lists = st.lists(messages, max_size=12)


@given(lists)
def test_messages_are_read_back(sent: list[Message]) -> None:
    encoded = EncodedMessages.of(sent)
    assert len(encoded) == len(sent)
    assert encoded.publish_times.tolist() == [message.publish_time for message in sent]
    assert read_back(encoded) == sent


@given(lists, st.lists(st.integers(0, 12), max_size=3))
def test_a_cut_is_what_a_slice_of_a_list_is_and_a_join_undoes_it(sent: list[Message], cuts: list[int]) -> None:
    bounds = [0, *sorted(min(cut, len(sent)) for cut in cuts), len(sent)]
    encoded = EncodedMessages.of(sent)
    parts = [encoded.cut(first, end) for first, end in pairwise(bounds)]
    for part, (first, end) in zip(parts, pairwise(bounds), strict=True):
        assert read_back(part) == sent[first:end]
        assert part.publish_times.tolist() == [message.publish_time for message in sent[first:end]]
        assert [read_back(part.cut(row, row + 1)) for row in range(len(part))] == [[m] for m in sent[first:end]]
    joined = EncodedMessages.join(parts)
    for column in ("buffer", "ends", "publish_times"):
        np.testing.assert_array_equal(getattr(joined, column), getattr(encoded, column))


@given(st.lists(st.tuples(messages, st.none() | st.binary(max_size=200)), max_size=12))
def test_replaced_messages_stand_where_the_others_stood(rows: list[tuple[Message, bytes | None]]) -> None:
    encoded = EncodedMessages.of(message for message, _ in rows)
    others = {row: Message(data, sent.publish_time) for row, (sent, data) in enumerate(rows) if data is not None}
    replaced = encoded.replace(np.array([*others], dtype=np.intp), EncodedMessages.of(others.values()))
    assert read_back(replaced) == [others.get(row, message) for row, (message, _) in enumerate(rows)]
    # Its ends are right too, not its bytes alone.
    assert [read_back(replaced.cut(row, row + 1)) for row in others] == [[message] for message in others.values()]


def blocks_of(content: bytes) -> list[list[int]]:
    """The sizes of the messages, by block."""
    blocks = cast(Iterator[Iterable[dict[str, Any]]], fastavro.block_reader(io.BytesIO(content)))
    return [[len(record["data"]) for record in block] for block in blocks]


@given(st.lists(st.integers(0, 3 * BLOCK_SIZE), max_size=8) | st.lists(st.integers(0, BLOCK_SIZE // 8), min_size=20))
def test_a_block_is_ended_by_the_record_that_fills_it(sizes: list[int]) -> None:
    file = io.BytesIO()
    EncodedMessages.of(Message(bytes(size), 0) for size in sizes).write(file, {})
    blocks = blocks_of(file.getvalue())
    assert [size for block in blocks for size in block] == sizes
    assert all(block and sum(block[:-1]) < BLOCK_SIZE for block in blocks)
    assert len(blocks) <= 1 + (file.tell() // BLOCK_SIZE)


def test_a_message_that_no_reader_would_take_is_not_written() -> None:
    largest = MAX_BLOCK_BYTES - BLOCK_SIZE - 6  # a length of four bytes, no attributes, and the time 0
    file = io.BytesIO()
    EncodedMessages.of([Message(b"x", 0), Message(bytes(largest), 0)]).write(file, {})
    file.seek(0)
    assert [len(record["data"]) for record in Container.open(file).records()] == [1, largest]
    with pytest.raises(ValueError, match="a message takes 16,711,681 bytes, the limit is 16,711,680; leave it out"):
        EncodedMessages.of([Message(bytes(largest + 1), 0)]).write(file, {})


def test_a_sync_marker_is_drawn_for_each_file(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([bytes(range(16)), bytes(range(16, 32))])
    monkeypatch.setattr(secrets, "token_bytes", lambda _: next(drawn))
    for marker in (bytes(range(16)), bytes(range(16, 32))):
        file = io.BytesIO()
        EncodedMessages.of([Message(b"x", 1)]).write(file, {})
        assert file.getvalue().count(marker) == 2  # behind the header, and behind the block


def header(name: str, **metadata: str) -> io.BytesIO:
    file = io.BytesIO()
    write_header(file, name, MARKER, metadata)
    file.seek(0)
    return file


def keys(node: Any) -> set[str]:
    """All keys of a schema as JSON."""
    if isinstance(node, dict):
        return set(node).union(*map(keys, node.values()))
    return set().union(*map(keys, node)) if isinstance(node, list) else set()


@pytest.mark.parametrize("name", NAMES)
def test_a_header_has_the_schema_without_docs(name: str) -> None:
    written = json.loads(Container.open(header(name)).metadata["avro.schema"])
    assert not {key for key in keys(written) if key == "doc" or key.startswith("__")}
    assert schema_fingerprint(written) == schema_fingerprint(load_schema(name))


def test_a_header_holds_metadata_and_leaves_them_as_they_were() -> None:
    metadata = {"uldp.a": "\u00e9"}
    assert Container.open(header("message", **metadata)).metadata["uldp.a"].decode() == "\u00e9"
    assert metadata == {"uldp.a": "\u00e9"}

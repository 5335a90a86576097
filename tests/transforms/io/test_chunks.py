"""Chunks hold what they were made of, come back as they were written, and attributes count as their bytes."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.kafka import Raw
from uldp.schemas.codec.packed import NumberedRuns, PackedMessages, grouped
from uldp.schemas.records import MAX_VALUE_BYTES, SENDER, Message, Missing
from uldp.transforms.io.chunks import Chunk, ChunkCoder, ChunkSize, joined
from uldp.transforms.io.kafka.consumers import MAX_HEADERS, attributes

LONGEST = 2**63 - 1

MESSAGES = [
    Message(b"\x00\xff", 1767258000001, {"a": "b", "": "ü"}, "reports/0/7"),
    Message(b"", 1767258000000),
    Message(b"x", 1767258000000, {}, "reports/1/0"),
    Message(b"y", 0, {}, "reports/1/1"),
]


NUMBERS = st.integers(0, LONGEST)
MISSING = st.builds(
    lambda source, ends, times: Missing(source, min(ends), max(ends), *times),
    st.text(),
    st.tuples(NUMBERS, NUMBERS),
    st.tuples(NUMBERS, NUMBERS),
)


@given(
    st.lists(
        st.builds(
            Message, st.binary(), st.integers(-LONGEST, LONGEST), st.dictionaries(st.text(), st.text()), st.text()
        )
    )
)
def test_chunks_round_trip(messages: list[Message]) -> None:
    assert [*ChunkCoder().decode(ChunkCoder().encode(Chunk(messages))).messages] == messages


@given(st.lists(st.sampled_from(MESSAGES), max_size=2), st.lists(MISSING, max_size=3).map(tuple))
def test_missing_messages_round_trip(messages: list[Message], missing: tuple[Missing, ...]) -> None:
    read = ChunkCoder().decode(ChunkCoder().encode(Chunk(messages, missing)))
    assert ([*read.messages], read.missing) == (messages, missing)


@given(st.lists(st.tuples(st.sampled_from([0, 1]), st.integers(0, 9))))
def test_numbered_positions_round_trip(at: list[tuple[int, int]]) -> None:
    texts, (rows, numbers) = ["reports/0/", "reports/ü/"], np.array(at, np.int64).reshape(-1, 2).T
    messages = replace(PackedMessages.of([MESSAGES[0]] * len(at)), source=NumberedRuns.of(texts, rows, numbers))
    encoded = ChunkCoder().encode(Chunk(messages))
    for read in (messages, ChunkCoder().decode(encoded).messages):
        assert [each.source for each in read] == [f"{texts[row]}{number}" for row, number in at]


def test_messages_with_other_bytes_between_them_are_written_alone() -> None:
    packed = PackedMessages.of(MESSAGES).take(np.array([2, 0, 3]))
    read = ChunkCoder().decode(ChunkCoder().encode(Chunk(packed)))
    assert [*read.messages] == [MESSAGES[2], MESSAGES[0], MESSAGES[3]]
    assert PackedMessages.of(read.messages).bodies.buffer == b"x\x00\xffy"


@given(st.binary(max_size=64))
def test_bytes_that_are_no_chunk_are_refused_and_nothing_else_happens(encoded: bytes) -> None:
    with contextlib.suppress(ValueError):
        chunk = ChunkCoder().decode(encoded)
        assert [*ChunkCoder().decode(ChunkCoder().encode(chunk)).messages] == [*chunk.messages]


@pytest.mark.parametrize("change", [lambda good: good[:-3], lambda good: good + b"\x00", lambda good: b""])
def test_a_chunk_that_was_cut_or_grew_is_refused(change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ValueError, match=r"^not a chunk of messages: "):
        ChunkCoder().decode(change(ChunkCoder().encode(Chunk(MESSAGES))))


@given(st.lists(st.integers(0, 1 << 17)))
def test_messages_are_joined_in_their_order_to_chunks_of_bounded_size(lengths: list[int]) -> None:
    messages = [Message(bytes(length), index) for index, length in enumerate(lengths)]
    chunks = list(grouped(messages, ChunkSize.BYTES))
    assert [message for chunk in chunks for message in chunk] == messages
    for *others, last in ([len(message.data) for message in chunk] for chunk in chunks):
        assert sum(others) < ChunkSize.BYTES
        assert last <= 1 << 17


def test_parts_are_joined_in_their_order_to_chunks_of_bounded_size() -> None:
    parts = [PackedMessages.of([Message(bytes(1000), number), Message(b"", number)]) for number in range(700)]
    chunks = list(joined(parts))
    assert [message for chunk in chunks for message in chunk.messages] == [*chain.from_iterable(parts)]
    assert [len(chunk) for chunk in chunks] == [524, 524, 352]


def test_a_part_that_is_too_large_is_a_chunk_of_its_own() -> None:
    small, large = PackedMessages.of([Message(b"x", 1)]), PackedMessages.of([Message(bytes(ChunkSize.BYTES + 1), 2)])
    assert [len(chunk) for chunk in joined([small, small, large, small])] == [2, 1, 1]


NOW = 1_767_258_000_000


class CountedHeaders(list[tuple[str, bytes]]):
    """Counts the headers that are read."""

    read = 0

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        for header in super().__iter__():
            self.read += 1
            yield header

    def __getitem__(self, at: object) -> "CountedHeaders":  # type: ignore[override]
        assert isinstance(at, slice)
        cut = CountedHeaders(list.__getitem__(self, at))
        self.read += len(cut)
        return cut


def test_of_a_hostile_message_few_headers_are_read() -> None:
    headers = CountedHeaders([(SENDER, b"first"), *[(f"h{n}", b"") for n in range(100_000)], (SENDER, b"x" * 10**6)])
    assert attributes(Raw(named=lambda: headers)) == {SENDER: "x" * MAX_VALUE_BYTES}
    assert headers.read == MAX_HEADERS


@pytest.mark.parametrize(
    "heavy", [Message(bytes(ChunkSize.BYTES), NOW), Message(b"", NOW, {SENDER: "x" * ChunkSize.BYTES})]
)
def test_attributes_count_as_bytes_of_a_chunk(heavy: Message) -> None:
    messages = [heavy] * 3
    assert [len(chunk) for chunk in grouped(messages, ChunkSize.BYTES)] == [1, 1, 1]
    size = ChunkSize()
    size.learn(messages)
    assert size.messages(1000) == 1

"""Chunks come back as they were written, and unpack into messages at their publish times."""

import contextlib
from collections.abc import Callable
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.coders.typecoders import registry
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import GlobalWindow
from hypothesis import given
from hypothesis import strategies as st

from schemas.records import Message
from transforms.chunks import Chunk, ChunkCoder, UnpackChunks, unpack

LONGEST = 2**63 - 1
#: Beyond these, Beam has no element time.
EARLIEST_MS, LATEST_MS = -(2**63 // 1000), GlobalWindow().max_timestamp().micros // 1000

MESSAGES = [
    Message(b"\x00\xff", 1767258000001, {"a": "b", "": "ü"}, "reports/0/7"),
    Message(b"", 1767258000000),
    Message(b"x", 1767258000000, {}, "reports/1/0"),
    Message(b"y", 0, {}, "reports/1/1"),
]


@given(
    st.lists(
        st.builds(
            Message, st.binary(), st.integers(-LONGEST, LONGEST), st.dictionaries(st.text(), st.text()), st.text()
        )
    )
)
def test_chunks_round_trip(messages: list[Message]) -> None:
    assert ChunkCoder().decode(ChunkCoder().encode(Chunk(messages))) == Chunk(messages)


@given(st.binary(max_size=64))
def test_bytes_that_are_no_chunk_are_refused_and_nothing_else_happens(encoded: bytes) -> None:
    with contextlib.suppress(ValueError):
        chunk = ChunkCoder().decode(encoded)
        assert ChunkCoder().decode(ChunkCoder().encode(chunk)) == chunk


@pytest.mark.parametrize("change", [lambda good: good[:-3], lambda good: good + b"\x00", lambda good: b""])
def test_a_chunk_that_was_cut_or_grew_is_refused(change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ValueError, match=r"^not a chunk of messages: "):
        ChunkCoder().decode(change(ChunkCoder().encode(Chunk(MESSAGES))))


def test_beam_takes_our_coder_by_itself() -> None:
    coder = registry.get_coder(Chunk)
    assert coder == ChunkCoder()
    assert hash(coder) == hash(ChunkCoder())
    assert coder != registry.get_coder(Message)


@given(st.lists(st.integers(EARLIEST_MS, LATEST_MS)))
def test_each_message_is_unpacked_at_its_publish_time(times: list[int]) -> None:
    messages = [Message(b"%d" % index, time) for index, time in enumerate(times)]
    unpacked = list(unpack(Chunk(messages)))
    assert [each.value for each in unpacked] == messages
    assert [each.timestamp.micros for each in unpacked] == [time * 1000 for time in times]
    assert all(each.windows == (GlobalWindow(),) for each in unpacked)


@pytest.mark.parametrize("spread", [False, True])
def test_chunks_become_messages_in_a_pipeline(spread: bool) -> None:
    def with_time(message: Message, at: Any = beam.DoFn.TimestampParam) -> tuple[Message, int]:
        return message, at.micros // 1000

    with beam.Pipeline("FnApiRunner") as pipeline:
        chunks = pipeline | beam.Create([Chunk(MESSAGES[:3]), Chunk(()), Chunk(MESSAGES[3:])])
        timed = chunks | UnpackChunks(spread) | beam.Map(with_time)
        assert_that(timed, equal_to([(message, message.publish_time) for message in MESSAGES]))

"""The fast decoder of stored messages agrees with fastavro, which is the reference, and refuses all other bytes."""

import io
from itertools import chain
from typing import Any, cast

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uldp.schemas.codec import stored
from uldp.schemas.codec.blocks import ContainerError
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.codec.stored import decode_messages
from uldp.schemas.framing import load_schema
from uldp.schemas.records import ATTEMPT, SENDER, Message, known_attributes

texts = st.text(max_size=70)
times = st.integers(2**34, 2**41 - 1)
messages = st.builds(
    Message,
    st.binary(max_size=200),
    times | st.integers(-(2**63), 2**63 - 1),
    st.dictionaries(texts | st.sampled_from([SENDER, ATTEMPT]), texts, max_size=70),
    source=st.just(""),
)


def block_of(*sent: Message) -> bytes:
    return EncodedMessages.of(sent).buffer.tobytes()


#: Records as most writers write them: no attributes, and a time of six bytes. Some bodies hold ends of records, and
#: whole records, so that a reader may take these for records of the block.
usual = st.builds(
    Message,
    st.binary(max_size=70)
    | st.builds(
        lambda before, inner, times: before + times * block_of(inner),
        st.binary(max_size=3),
        st.builds(Message, st.binary(max_size=3), times),
        st.integers(1, 3),
    ),
    times,
)
blocks = st.lists(usual, max_size=30) | st.lists(usual | messages, max_size=8)
changes = st.lists(st.tuples(st.integers(0, 10**4), st.integers(0, 255)), max_size=2)


def changed(block: bytes, changes: list[tuple[int, int]]) -> bytes:
    out = bytearray(block)
    for at, byte in changes if block else ():
        out[at % len(out)] = byte
    return bytes(out)


def outcome(records: int, block: bytes, **settings: int) -> tuple[list[Message], str]:
    """Return the messages that are read, and why the block is refused."""
    found: list[Message] = []
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setattr(stored, name, value)
        try:
            for part in decode_messages(records, block, "f", 0):
                found += part
        except ContainerError as error:
            return found, str(error)
    return found, ""


def reference(records: int, block: bytes) -> list[Message]:
    """Read a block by fastavro."""
    body = io.BytesIO(block)
    found = []
    for number in range(records):
        record = cast(dict[str, Any], fastavro.schemaless_reader(body, load_schema("message"), None))
        kept = known_attributes(record["attributes"])
        found.append(Message(record["data"], record["publish_time"], kept, f"f:{number}"))
    assert body.tell() == len(block)
    return found


@given(blocks, st.sampled_from([1, 100, stored.WINDOW]))
def test_valid_blocks_are_read_as_fastavro_reads_them(sent: list[Message], window: int) -> None:
    block = block_of(*sent)
    assert outcome(len(sent), block, WINDOW=window) == (reference(len(sent), block), "")


@given(blocks, changes, st.sampled_from([-1, 0, 0, 0, 1]), st.sampled_from([1, 100, stored.WINDOW]))
def test_other_blocks_are_refused_or_read_as_fastavro_reads_them(
    sent: list[Message], changes: list[tuple[int, int]], more: int, window: int
) -> None:
    block, records = changed(block_of(*sent), changes), max(len(sent) + more, 0)
    found, refusal = outcome(records, block, WINDOW=window)
    if not refusal:
        assert found == reference(records, block)
    # Neither does it matter how many records are read at once; _LARGE=-1 reads one by one.
    assert (found, refusal) == outcome(records, block, _LARGE=-1)


def decoded(records: int, block: bytes, file: str = "f", first: int = 0) -> list[Message]:
    return [*chain.from_iterable(decode_messages(records, block, file, first))]


@given(st.lists(messages, min_size=1, max_size=3), st.data())
def test_a_block_that_is_cut_is_refused(sent: list[Message], data: st.DataObject) -> None:
    block = block_of(*sent)
    with pytest.raises(ContainerError):
        decoded(len(sent), block[: data.draw(st.integers(0, len(block) - 1))])


NOTHING = b"\0\0\0"
SENT = b"\x16" + SENDER.encode()


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (b"\x80\0" + b"\0\0", Message(b"", 0, {}, "f:0")),  # a length of 0 in two bytes
        (b"\0" + b"\x80\0" + b"\0", Message(b"", 0, {}, "f:0")),  # no attributes, in two bytes
        (
            b"\0" + b"\1\x1c" + SENT + b"\2b\0" + b"\1",
            Message(b"", -1, {SENDER: "b"}, "f:0"),
        ),  # a map's block with its size
        (b"\0\0" + b"\xff" * 9 + b"\1", Message(b"", -(2**63), {}, "f:0")),
        (b"\0\0" + b"\x80" * 5 + b"\0", Message(b"", 0, {}, "f:0")),
    ],
)
def test_unusual_writers_are_understood(block: bytes, expected: Message) -> None:
    assert decoded(1, block) == [expected]


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (b"\1\0\0", "a field cannot take -1 bytes"),
        (b"\xfe\xff\xff\xff\x0f\0\0", "a field cannot take 2,147,483,647 bytes"),
        (b"\0" + b"\xff" * 9 + b"\1", "index out of range"),  # 2^63 attributes
        (b"\0\0" + b"\xff" * 9 + b"\2", "a number has more than 64 bits"),
        (b"\0\0" + b"\xff" * 11, "a number has more than 64 bits"),
        (b"\0\2\2\xff\0\0\0", "invalid start byte"),
        (NOTHING + b"\0", "1 bytes follow the last record"),
    ],
)
def test_what_is_no_message_is_refused(block: bytes, reason: str) -> None:
    with pytest.raises(ContainerError, match=reason):
        decoded(1, block)

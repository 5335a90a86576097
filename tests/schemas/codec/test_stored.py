"""The fast decoder of stored messages agrees with the encoder, and refuses all other bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uldp.schemas.codec.blocks import ContainerError
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.codec.stored import decode_messages
from uldp.schemas.records import Message

texts = st.text(max_size=70)
messages = st.builds(
    Message,
    st.binary(max_size=200),
    st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2**42),
    st.dictionaries(texts, texts, max_size=70),
    source=st.just(""),
)


def block_of(*sent: Message) -> bytes:
    return EncodedMessages.of(sent).buffer.tobytes()


@given(st.lists(messages, max_size=5), st.integers(0, 10**6))
def test_messages_are_read_back_with_their_positions(sent: list[Message], first: int) -> None:
    expected = [message._replace(source=f"f:{number}") for number, message in enumerate(sent, first)]
    assert [*decode_messages(len(sent), block_of(*sent), "f", first)] == expected


@given(st.lists(messages, min_size=1, max_size=3), st.data())
def test_a_block_that_is_cut_is_refused(sent: list[Message], data: st.DataObject) -> None:
    block = block_of(*sent)
    with pytest.raises(ContainerError):
        list(decode_messages(len(sent), block[: data.draw(st.integers(0, len(block) - 1))], "f", 0))


NOTHING = b"\0\0\0"


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (b"\x80\0" + b"\0\0", Message(b"", 0, {}, "f:0")),  # a length of 0 in two bytes
        (b"\0" + b"\x80\0" + b"\0", Message(b"", 0, {}, "f:0")),  # no attributes, in two bytes
        (b"\0" + b"\1\x08\2a\2b\0" + b"\1", Message(b"", -1, {"a": "b"}, "f:0")),  # a map's block with its size
        (b"\0\0" + b"\xff" * 9 + b"\1", Message(b"", -(2**63), {}, "f:0")),
        (b"\0\0" + b"\x80" * 5 + b"\0", Message(b"", 0, {}, "f:0")),
    ],
)
def test_unusual_writers_are_understood(block: bytes, expected: Message) -> None:
    assert [*decode_messages(1, block, "f", 0)] == [expected]


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
        list(decode_messages(1, block, "f", 0))


def test_messages_before_the_damage_are_given() -> None:
    decoded = decode_messages(2, NOTHING + b"\1", "f", 0)
    assert next(decoded) == Message(b"", 0, {}, "f:0")
    with pytest.raises(ContainerError):
        next(decoded)

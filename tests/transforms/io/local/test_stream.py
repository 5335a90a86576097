"""The embedded stream: an ordered log of whole segments, whoever writes and whoever reads."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uldp.schemas.records import ATTEMPT, SENDER, Message
from uldp.transforms.io.durable_files import container_bytes, encode_record
from uldp.transforms.io.local.segments import read_header
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError, read_messages, write_messages


def messages(*numbers: int) -> list[Message]:
    return [Message(f"message {number}".encode(), number, {SENDER: str(number)}) for number in numbers]


def numbers(stream: LocalStream) -> list[int]:
    """All that was appended, in order."""
    return [message.publish_time for segment in stream.segments() for message in read_messages(segment)]


@pytest.fixture
def stream(tmp_path: Path) -> LocalStream:
    return LocalStream.create(tmp_path / "stream")


# Begin and open.


@pytest.mark.parametrize("simulated_clock", [False, True])
def test_a_stream_is_opened_as_it_was_begun(tmp_path: Path, simulated_clock: bool) -> None:
    begun = LocalStream.create(tmp_path / "new" / "stream", simulated_clock=simulated_clock)
    assert LocalStream.open(tmp_path / "new" / "stream") == begun
    assert begun.simulated_clock is simulated_clock


@pytest.mark.parametrize("name", ["file.txt", ".hidden", "000000000000.avro", "stream.json"])
def test_a_directory_that_holds_anything_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    for path in (tmp_path, tmp_path / name):  # a file is no directory either
        with pytest.raises(StreamError, match=rf"^{path}: not an empty directory; choose another directory"):
            LocalStream.create(path)
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    "settings", [b"", b"{", b"[]", b"{}", b"7", b"\xff\xfe", b"[" * 200_000], ids=lambda each: str(each[:9])
)
def test_settings_that_cannot_be_read_are_named(tmp_path: Path, settings: bytes) -> None:
    (tmp_path / "stream.json").write_bytes(settings)
    with pytest.raises(StreamError, match=rf"^{tmp_path}/stream\.json: not the settings of a local stream; restore "):
        LocalStream.open(tmp_path)


# Append and read.


def test_a_message_is_read_back_with_its_position(stream: LocalStream) -> None:
    segment = stream.append(messages(5, 6))
    assert list(read_messages(segment)) == [
        Message(b"message 5", 5, {SENDER: "5"}, "000000000000.avro:0"),
        Message(b"message 6", 6, {SENDER: "6"}, "000000000000.avro:1"),
    ]


@pytest.mark.parametrize(("published", "last"), [([], 0), ([5], 5), ([5, 9, 7], 9)])
def test_a_segment_says_when_its_last_message_was_published(
    stream: LocalStream, published: list[int], last: int
) -> None:
    segment = stream.append(messages(*published))
    assert read_header(segment).last_publish_time == last
    assert [message.publish_time for message in read_messages(segment)] == published


def test_an_append_that_fails_leaves_nothing_behind(stream: LocalStream) -> None:
    broken: Any = [*messages(1), Message(b"x", "yesterday")]  # type: ignore[arg-type]
    before = sorted(stream.path.iterdir())
    with pytest.raises(TypeError):
        stream.append(broken)
    assert sorted(stream.path.iterdir()) == before
    assert stream.append(messages(2)).name == "000000000000.avro"


def test_what_a_killed_writer_left_aside_is_never_seen(stream: LocalStream) -> None:
    (stream.path / ".0123456789abcdef").write_bytes(b"half a segm")
    (stream.path / ".000000000000.avro").write_bytes(b"half a segm")
    assert stream.segments() == []
    assert next(stream.follow(0)) is None
    assert stream.append(messages(1)).name == "000000000000.avro"
    assert numbers(stream) == [1]


# Follow.


@pytest.mark.parametrize("number", [1, 3])
def test_a_segment_under_another_number_is_named(stream: LocalStream, number: int) -> None:
    """A copy, as a backup leaves that is unpacked twice, would be read as further messages."""
    for each in (0, 1, 2):
        stream.append(messages(each))
    other = stream.path / f"{number:012d}.avro"
    shutil.copy(stream.segments()[0], other)
    with pytest.raises(StreamError, match=rf"{other}: is segment '000000000000' under another number; remove it if it"):
        numbers(stream)
    archived = shutil.copy(other, stream.path / "any-name.avro")
    assert [message.publish_time for message in read_messages(archived)] == [0]


def test_follow_waits_and_ends_when_all_is_read(stream: LocalStream) -> None:
    events = stream.follow(0)
    assert next(events) is None
    first = stream.append(messages(1))
    assert next(events) == first
    assert next(events) is None
    second, third = stream.append(messages(2)), stream.append(messages(3))
    stream.close()
    assert list(events) == [second, third]


# Files of messages.


@given(
    st.lists(
        st.builds(
            Message,
            st.binary(max_size=20),
            st.integers(-(2**63), 2**63 - 1),
            st.dictionaries(st.sampled_from([ATTEMPT, SENDER]), st.text(max_size=4)),
            st.just(""),
        ),
        max_size=5,
    )
)
def test_files_of_messages_round_trip(tmp_path_factory: pytest.TempPathFactory, sent: list[Message]) -> None:
    path = tmp_path_factory.getbasetemp() / "messages.avro"
    with path.open("wb") as file:
        write_messages(file, sent)
    assert [message._replace(source="") for message in read_messages(path)] == sent


WHOLE = container_bytes("message", [encode_record("message", message.to_avro()) for message in messages(1, 2, 3)])


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=3), st.integers(0, len(WHOLE)))
def test_any_file_is_messages_or_a_stream_error(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], end: int
) -> None:
    content = bytearray(WHOLE)
    for at, byte in changes:
        content[at] = byte
    path = tmp_path_factory.getbasetemp() / "any.avro"
    path.write_bytes(content[:end])
    try:
        read = list(read_messages(path))
    except StreamError:
        return
    assert all(isinstance(message, Message) for message in read)

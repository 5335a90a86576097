"""Files of messages: segments, archives, and late reports. Each is an Avro container, read in parts of bounded size."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, starmap
from pathlib import Path
from typing import IO, Any

from uldp.schemas.codec.blocks import Container, ContainerError, open_file
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.codec.mapped import NO_TIME, mapped_messages
from uldp.schemas.codec.packed import PackedMessages, grouped
from uldp.schemas.codec.stored import WINDOW, decode_messages
from uldp.schemas.errors import DataError
from uldp.schemas.file_errors import named
from uldp.schemas.records import Message, known_attributes
from uldp.schemas.specs.mistakes import plain, quote
from uldp.transforms.io.folders import KINDS, Kind

#: The name of a segment of a local stream.
SEGMENT_NAME = re.compile(r"[0-9]{12}\.avro")
#: What headers say: the latest publish time, the only segment as which a file may be read, and how many messages the
#: stream had before it.
LAST_PUBLISH_TIME, _SEGMENT, MESSAGES_BEFORE = "uldp.last_publish_time", "uldp.segment", "uldp.messages_before"
_NO_MESSAGES = "not an Avro file of messages"
_PUT_BACK = "replace it by an undamaged file, or remove it"


class StreamError(DataError):
    """A file of messages, or a local stream, that cannot be used; the message says what to do."""


def write_messages(
    file: IO[bytes], messages: Sequence[Message] | EncodedMessages, segment: str | None = None, before: str = ""
) -> None:
    """Write messages, in order, as an Avro container with their latest time, to be read as this segment alone."""
    encoded = messages if isinstance(messages, EncodedMessages) else EncodedMessages.of(messages)
    last = encoded.publish_times.max() if len(encoded) else 0
    of_stream = {} if segment is None else {_SEGMENT: segment, MESSAGES_BEFORE: before}
    encoded.write(file, {LAST_PUBLISH_TIME: str(last)} | of_stream)


def read_messages(path: str | Path, published: int | None = None) -> Iterator[Message]:
    """Read a segment, an archive, or late messages; OSError if it cannot be opened, StreamError if it is none."""
    with opened(path) as file:
        yield from chain.from_iterable(packed_messages(file, str(path), published))


def opened(path: str | Path) -> IO[bytes]:
    """Open a file of messages; OSError if that fails, StreamError if it is a pipe or a device."""
    try:
        with named(path):
            return open_file(path)
    except ContainerError as error:
        raise StreamError(f"{plain(str(path))}: {error}; {error.remedy}") from None


def packed_messages(
    file: IO[bytes], path: str, published: int | None = None, *, root: str = ""
) -> Iterator[PackedMessages]:
    """Read an open container of messages, with their known attributes alone, in parts of bounded size.

    ``published`` is the time, in milliseconds, of messages without one; None refuses these. Under a common ``root``,
    files of one name in two folders have two places. StreamError if it is not a file of messages.
    """
    below = root.rstrip("/") + "/"
    name = path.removeprefix(below) if root and path.startswith(below) else os.path.basename(path)
    read = 0
    try:
        for part in _decode(_of_messages(file, path, published), name, published):
            yield part
            read += len(part)
    except ContainerError as error:
        raise _refused(path, error, f"damaged after {read:,} messages" if read else _NO_MESSAGES) from error


def count_messages(file: IO[bytes], path: str, published: int | None = None) -> int:
    """Return how many messages an open container claims to hold, by its blocks; StreamError as far as that shows."""
    wrong = _NO_MESSAGES
    try:
        container = _of_messages(file, path, published)
        wrong = "damaged"
        return container.count()
    except ContainerError as error:
        raise _refused(path, error, wrong) from error


def _of_messages(file: IO[bytes], path: str, published: int | None) -> Container:
    container = Container.open(file)
    _refuse_copy(container, os.path.basename(path))
    if (kind := KINDS[container.name]) is not Kind.MESSAGES:
        raise ContainerError(f"holds {kind}, not messages", "give only files of messages")
    if container.layout is not None and not container.layout.dated and published is None:
        raise ContainerError(
            "holds messages without a publish time",
            "give uldp backfill --published-by, a time by which all of them were published",
        )
    return container


def _refuse_copy(container: Container, name: str) -> None:
    """Refuse a segment that has the name of another one: its messages are there twice, or those of the other not."""
    written = container.metadata.get(_SEGMENT, b"").decode("utf-8", "backslashreplace")
    if written and SEGMENT_NAME.fullmatch(name) and name != f"{written}.avro":
        raise ContainerError(
            f"is segment {quote(written)} under another number",
            "remove it if it is a copy, or restore the segment of this number",
        )


def _refused(path: str, error: ContainerError, wrong: str) -> StreamError:
    wrong = str(error) if error.remedy else f"{wrong} ({error})"
    return StreamError(f"{plain(path)}: {wrong}; {error.remedy or _PUT_BACK}")


def _decode(container: Container, name: str, published: int | None) -> Iterator[PackedMessages]:
    """Decode the messages of each block: many at once, or one by one those of another schema."""
    read = 0
    if container.current:
        for number, block in container.blocks():
            for part in decode_messages(number, block, name, read):
                yield part.in_milliseconds(container.units)
            read += number
    elif container.layout is None:
        records = starmap(partial(_of_record, name, container.units), enumerate(container.records()))
        yield from map(PackedMessages.of, grouped(records, WINDOW))
    else:
        time = NO_TIME if published is None else published
        for number, block in container.blocks():
            messages = mapped_messages(container.layout, number, block, name, read, time)
            yield from map(PackedMessages.of, grouped(messages, WINDOW))
            read += number


def _of_record(name: str, units: int, number: int, record: Mapping[str, Any]) -> Message:
    time = record["publish_time"] // units
    return Message(record["data"], time, known_attributes(record["attributes"]), f"{name}:{number}")

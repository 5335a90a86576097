"""The embedded local stream: a directory of numbered, immutable Avro segments. A durable log without a broker.

Writers append whole segments, and readers never see half of one. A writer writes a segment under a temporary name and
links it to the next free number; the link fails if another writer took that number. The same directory is the archive
that a backfill reads.
"""

import contextlib
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, starmap
from math import inf
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from uldp.schemas.attributes import kept_attributes
from uldp.schemas.codec.blocks import Container, ContainerError, open_file
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.codec.packed import PackedMessages, grouped
from uldp.schemas.codec.stored import WINDOW, decode_messages
from uldp.schemas.records import Message
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.folders import KINDS, STREAM_SETTINGS, Kind, mismatch

_CLOSED = "closed"
_DIGITS = 12
_LAST_PUBLISH_TIME = "uldp.last_publish_time"
_PUT_BACK = "replace it by an undamaged file, or remove it"


class StreamError(ValueError):
    """A local stream that cannot be used; the message says what to do."""


@dataclass
class LocalStream:
    """A local stream in a directory.

    Attributes:
        path: The directory.
        simulated_clock: Whether publish times come from a simulation. Then an idle stream says nothing about the time,
            and only its messages advance the watermark.
        id: Identifies this stream, even if its directory moves. Another stream in the same place has another id.
    """

    path: Path
    simulated_clock: bool = False
    id: str = ""
    _next: int | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def create(cls, path: Path, *, simulated_clock: bool = False) -> Self:
        """Begin a stream in a new or empty directory.

        Raises:
            StreamError: if the directory holds anything.
        """
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise StreamError(f"{path}: not an empty directory; choose another directory, or remove this one")
        path.mkdir(parents=True, exist_ok=True)
        stream = cls(path, simulated_clock, secrets.token_hex(16))
        settings = {"simulated_clock": simulated_clock, "id": stream.id}
        (path / STREAM_SETTINGS).write_text(json.dumps(settings) + "\n", encoding="utf-8")
        return stream

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a stream that ``create`` began.

        Raises:
            StreamError: if ``path`` is not a local stream.
        """
        try:
            settings = json.loads((path / STREAM_SETTINGS).read_text(encoding="utf-8"))
            return cls(path, bool(settings["simulated_clock"]), str(settings["id"]))
        except (FileNotFoundError, NotADirectoryError):
            raise StreamError(f"{mismatch(path, Kind.STREAM)}; uldp simulate creates one") from None
        except (ValueError, KeyError, TypeError) as error:
            raise StreamError(
                f"{path / STREAM_SETTINGS}: not the settings of a local stream; restore the original file"
            ) from error

    def append(self, messages: Sequence[Message] | EncodedMessages) -> Path:
        """Append messages, in the order of their publish times, as one segment."""
        aside = self.path / f".{secrets.token_hex(8)}"
        try:
            with aside.open("wb") as file:
                write_messages(file, messages)
                file.flush()
                os.fsync(file.fileno())
            if self._next is None:
                self._next = max((int(segment.stem) for segment in self.segments()), default=-1) + 1
            while True:  # until no other writer has the number
                segment = self._segment(self._next)
                self._next += 1
                with contextlib.suppress(FileExistsError):
                    os.link(aside, segment)
                    return segment
        finally:
            aside.unlink(missing_ok=True)

    def _segment(self, number: int) -> Path:
        return self.path / f"{number:0{_DIGITS}d}.avro"

    def segments(self) -> list[Path]:
        """Return the existing segments, in order."""
        return sorted(self.path.glob(f"{'[0-9]' * _DIGITS}.avro"))

    def close(self) -> None:
        """Mark the stream as complete; readers end when they have read all segments."""
        (self.path / _CLOSED).touch()

    def now(self) -> int:
        """Return the present by the stream's clock, in milliseconds; a simulated clock is at its last message."""
        if not self.simulated_clock:
            return int(time.time() * 1000)
        segments = self.segments()
        return last_publish_time(segments[-1]) if segments else 0

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return (self.path / _CLOSED).exists()

    def follow(self, poll_seconds: float, first: str | None = None) -> Iterator[Path | None]:
        """Yield each segment in order as it comes, and None at each poll without one. End when closed and read.

        It begins with the segment named ``first``, or else with the first that is there.
        """
        # Old segments may have been removed; the remaining ones have no gaps.
        segments = [self.path / first] if first is not None else self.segments()
        number = int(segments[0].stem) if segments else 0
        while True:
            closed = self.closed  # before the check for a segment, so as not to miss one appended before the close
            segment = self._segment(number)
            if segment.exists():
                number += 1
                yield segment
            elif closed:
                return
            else:
                yield None
                time.sleep(poll_seconds)


def write_messages(file: IO[bytes], messages: Sequence[Message] | EncodedMessages) -> None:
    """Write messages as an Avro container file, with the latest publish time in its header."""
    encoded = messages if isinstance(messages, EncodedMessages) else EncodedMessages.of(messages)
    last = encoded.publish_times.max() if len(encoded) else 0
    encoded.write(file, {_LAST_PUBLISH_TIME: str(last)})


class SegmentHeader(NamedTuple):
    """The facts that the header of a segment tells.

    Attributes:
        last_publish_time: The latest publish time of its messages, in milliseconds.
        nbytes: The size of the file; infinity if it is compressed, because nobody knows how large it is when inflated.
    """

    last_publish_time: int
    nbytes: float


def read_header(segment: Path) -> SegmentHeader:
    """Read the header of a segment.

    Raises:
        OSError, ValueError, KeyError: if the file is not a segment.
    """
    with open_file(segment) as file:
        container = Container.open(file)
        nbytes = os.fstat(file.fileno()).st_size if container.codec == "null" else inf
        return SegmentHeader(int(container.metadata[_LAST_PUBLISH_TIME]), nbytes)


def last_publish_time(segment: Path) -> int:
    """Read the latest publish time of a segment's messages from its header.

    Raises:
        OSError, ValueError, KeyError: if the file is not a segment.
    """
    return read_header(segment).last_publish_time


def read_messages(path: str | Path) -> Iterator[Message]:
    """Read a container file of messages: a segment, an archive, or a file of the late output.

    Raises:
        OSError: if the file cannot be opened.
        StreamError: if it is not one of these.
    """
    with opened(path) as file:
        yield from chain.from_iterable(packed_messages(file, str(path)))


def opened(path: str | Path) -> IO[bytes]:
    """Open a file of messages.

    Raises:
        OSError: if the file cannot be opened.
        StreamError: if the path is that of a pipe or a device.
    """
    try:
        return open_file(path)
    except ContainerError as error:
        raise StreamError(f"{plain(str(path))}: {error}; {error.remedy}") from None


def packed_messages(file: IO[bytes], path: str) -> Iterator[PackedMessages]:
    """Read an open container file of messages, in parts of bounded size.

    Messages come with their kept attributes only, because whoever wrote the file may have sent any others.

    Args:
        file: The file.
        path: Its name, or the URL it came from.

    Raises:
        StreamError: if it is not a file of messages.
    """
    read = 0
    try:
        container = Container.open(file)
        if (kind := KINDS[container.name]) is not Kind.MESSAGES:
            raise ContainerError(f"holds {kind}, not messages", "give only files of messages")
        for part in _decode(container, path.rpartition("/")[2]):
            yield part
            read += len(part)
    except ContainerError as error:
        wrong = f"damaged after {read:,} messages" if read else "not an Avro file of messages"
        wrong = str(error) if error.remedy else f"{wrong} ({error})"
        raise StreamError(f"{plain(path)}: {wrong}; {error.remedy or _PUT_BACK}") from error


def _decode(container: Container, name: str) -> Iterator[PackedMessages]:
    """Decode the messages of each block, or all records of an older schema."""
    if not container.current:
        messages = starmap(partial(_of_record, name), enumerate(container.records()))
        yield from map(PackedMessages.of, grouped(messages, WINDOW))
        return
    read = 0
    for records, block in container.blocks():
        yield from decode_messages(records, block, name, read)
        read += records


def _of_record(name: str, number: int, record: Mapping[str, Any]) -> Message:
    return Message(record["data"], record["publish_time"], kept_attributes(record["attributes"]), f"{name}:{number}")

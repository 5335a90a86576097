"""The embedded local stream: a directory of numbered, immutable Avro segments. A durable log without a broker.

Writers append whole segments, and readers never see half of one. A writer writes a segment under a temporary name and
links it to the next free number; the link fails if another writer took that number. The header of a segment holds its
number too, so that a copy under another number is refused rather than read as further messages. The same directory is
the archive that a backfill reads.
"""

import json
import operator
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, pairwise, starmap
from math import inf
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from uldp.schemas.attributes import kept_attributes
from uldp.schemas.codec.blocks import Container, ContainerError, open_file
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.codec.mapped import NO_TIME, mapped_messages
from uldp.schemas.codec.packed import PackedMessages, grouped
from uldp.schemas.codec.stored import WINDOW, decode_messages
from uldp.schemas.file_errors import named
from uldp.schemas.records import Message
from uldp.schemas.regular_files import read_json
from uldp.schemas.specs.mistakes import plain, quote
from uldp.transforms.io.folders import CLOSED, KINDS, STREAM_SETTINGS, Kind, mismatch

#: The mark of a stream that one command writes from its beginning to its end, until that end.
UNFINISHED = ".unfinished"
_DIGITS = 12
_NAME = re.compile(rf"[0-9]{{{_DIGITS}}}\.avro")
_LAST_PUBLISH_TIME = "uldp.last_publish_time"
_SEGMENT = "uldp.segment"
_NO_MESSAGES = "not an Avro file of messages"
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
        first: The number of the first segment that must be there. An operator who removes older segments raises it in
            the settings of the stream; all segments that are there are read nevertheless.
        clock: Returns the present, in seconds since 1970.
    """

    path: Path
    simulated_clock: bool = False
    id: str = ""
    first: int = 0
    clock: Callable[[], float] = field(default=time.time, repr=False, compare=False)
    _next: int | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def create(cls, path: Path, *, simulated_clock: bool = False) -> Self:
        """Begin a stream in a new or empty directory.

        Raises:
            StreamError: if the directory holds anything.
        """
        cls.refuse_used(path)
        stream = cls(path, simulated_clock, secrets.token_hex(16))
        settings = {"simulated_clock": simulated_clock, "id": stream.id, "first": stream.first}
        stream._write(STREAM_SETTINGS, json.dumps(settings) + "\n")
        return stream

    @staticmethod
    def refuse_used(path: Path) -> None:
        """Refuse a path at which there is anything but a directory that is empty, or has the mark of a beginning alone.

        Raises:
            StreamError: if there is.
        """
        if path.exists() and not (path.is_dir() and {entry.name for entry in path.iterdir()} <= {UNFINISHED}):
            raise StreamError(f"{path}: not an empty directory; choose another directory, or remove this one")

    def _write(self, name: str, text: str) -> None:
        """Write a small file in one step."""
        aside = self.path / f".{secrets.token_hex(8)}"
        with named(self.path / name):
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                aside.write_text(text, encoding="utf-8")
                aside.replace(self.path / name)
            finally:
                aside.unlink(missing_ok=True)

    @classmethod
    def open(cls, path: Path, clock: Callable[[], float] = time.time) -> Self:
        """Open a stream that ``create`` began; for ``clock``, see the attribute.

        Raises:
            StreamError: if ``path`` is not a local stream.
        """
        try:
            settings = read_json(path / STREAM_SETTINGS)
            first = settings.get("first", 0)
            stream = cls(path, bool(settings["simulated_clock"]), str(settings["id"]), operator.index(first), clock)
        except (FileNotFoundError, NotADirectoryError):
            lost = f", or restore {STREAM_SETTINGS}" if any(path.glob(f"{'[0-9]' * _DIGITS}.avro")) else ""
            raise StreamError(f"{mismatch(path, Kind.STREAM)}; uldp simulate creates one{lost}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StreamError(
                f"{path / STREAM_SETTINGS}: not the settings of a local stream; restore the original file"
            ) from error
        end = max(stream.end, stream._closed_at())
        if first < 0 or first > end > 0:
            raise StreamError(f'{path / STREAM_SETTINGS}: "first" is {first}; write a number from 0 to {end}')
        return stream

    def append(self, messages: Sequence[Message] | EncodedMessages) -> Path:
        """Append messages, in the order of their publish times, as one segment.

        Raises:
            OSError: if the operating system refuses to write it.
        """
        if self._next is None:
            self._next = max(self.end, self.first)
        with named(self._segment(self._next)):
            return self._append(messages, self._next)

    def _append(self, messages: Sequence[Message] | EncodedMessages, number: int) -> Path:
        encoded = messages if isinstance(messages, EncodedMessages) else EncodedMessages.of(messages)
        aside = self.path / f".{secrets.token_hex(8)}"
        try:
            while True:  # until no other writer has the number
                segment = self._segment(number)
                with aside.open("wb") as file:
                    write_messages(file, encoded, segment.stem)
                    file.flush()
                    os.fsync(file.fileno())
                try:
                    os.link(aside, segment)
                except FileExistsError:
                    number = max(number + 1, self.end)
                else:
                    self._next = number + 1
                    return segment
        finally:
            aside.unlink(missing_ok=True)

    def forget(self, before: int) -> None:
        """Remove the segments before a number, which no job needs any more."""
        if before <= self.first:
            return
        self.first = before
        settings = {"simulated_clock": self.simulated_clock, "id": self.id, "first": before}
        # First the settings: a stream that lacks a segment which they do not name is refused.
        from uldp.transforms.io.durable_files import write_file  # here, because it loads Beam

        write_file(str(self.path / STREAM_SETTINGS), (json.dumps(settings) + "\n").encode())
        for number in self._numbers():
            if number < before:
                self._segment(number).unlink(missing_ok=True)

    def _segment(self, number: int) -> Path:
        return self.path / f"{number:0{_DIGITS}d}.avro"

    def segments(self) -> list[Path]:
        """Return the existing segments, in order."""
        return [self._segment(number) for number in self._numbers()]

    def _numbers(self) -> list[int]:
        return sorted(number_of(name) for name in os.listdir(self.path) if _NAME.fullmatch(name))

    @property
    def end(self) -> int:
        """The number behind that of the last segment; 0 if there is none."""
        return next((number + 1 for number in reversed(self._numbers())), 0)

    def missing(self, since: int = 0, end: int = 0) -> list[range]:
        """Return the numbers of the segments that must be there and are not, in order.

        Numbers have no gap: a writer takes a number only when all numbers before are taken. So each number from
        ``first`` on must be there that is below the largest present one, or below the one at which the stream was
        closed.

        Args:
            since: Numbers before this one need not be there.
            end: Numbers before this one must be there, whatever the others say.

        Raises:
            StreamError: if the mark of a closed stream is damaged.
        """
        since, end = max(since, self.first), max(end, self._closed_at())
        while True:
            present = [since - 1, *(number for number in self._numbers() if number >= since)]
            present.append(max(end, present[-1] + 1))
            holes = [range(before + 1, after) for before, after in pairwise(present) if before + 1 < after]
            if not holes or not os.path.lexists(self._segment(holes[0].start)):  # else it came during the listing
                return holes

    @property
    def whole(self) -> bool:
        """Whether all segments are there that were ever written."""
        return not replace(self, first=0).missing()

    def refuse_holes(self, since: int = 0, end: int = 0) -> None:
        """Refuse a stream that lacks a segment; takes what ``missing`` takes.

        Raises:
            StreamError: if it does. The message names the first one, says how many others are missing and how many wait
                behind it, and what to do.
        """
        holes = self.missing(since, end)
        if not holes:
            return
        first, more = holes[0].start, sum(map(len, holes)) - 1
        others = f", as {'is 1 other' if more == 1 else f'are {more:,} others'}" if more else ""
        raise StreamError(
            f"{plain(str(self._segment(first)))}: missing{others}, and {self.behind(first):,} of the segments behind it"
            " are there; restore what is missing. If it was removed on purpose, or is lost, write"
            f' "first": {holes[-1].stop} into {plain(str(self.path / STREAM_SETTINGS))}: jobs then read what is there'
        )

    def behind(self, number: int) -> int:
        """Return how many segments with a higher number are there."""
        return sum(other > number for other in self._numbers())

    def close(self) -> None:
        """Mark the stream as complete, and say how many segments it has; readers end when they have read all."""
        self._write(CLOSED, f"{self.end}\n")

    def _closed_at(self) -> int:
        """Return the number before which all segments were there when the stream was closed; 0 if nothing says so."""
        try:
            return int((self.path / CLOSED).read_bytes() or b"0")
        except FileNotFoundError:
            return 0
        except ValueError:
            raise StreamError(
                f"{plain(str(self.path / CLOSED))}: not the number of segments; empty the file, and it says nothing"
            ) from None

    def now(self) -> int:
        """Return the present by the stream's clock, in milliseconds; a simulated clock is at its last message."""
        if not self.simulated_clock:
            return int(self.clock() * 1000)
        segments = self.segments()
        return last_publish_time(segments[-1]) if segments else 0

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return (self.path / CLOSED).exists()

    def follow(self, poll_seconds: float, first: str | None = None) -> Iterator[Path | None]:
        """Yield each segment in order as it comes, and None at each poll without one. End when closed and read.

        It begins with the segment named ``first``, or else with the first that is there. None says that all segments
        that are there were yielded: of a directory that changes, it comes once the directory was listed.

        Raises:
            StreamError: during iteration, if the next segment is missing, and others behind it are there.
        """
        since = 0 if first is None else number_of(first)
        number = max(since, self.first)
        yield from [self._segment(older) for older in self._numbers() if since <= older < number]
        watched = _Watched(self.path)
        while True:
            closed = self.closed  # before the check for a segment, so as not to miss one appended before the close
            segment = self._segment(number)
            if os.path.lexists(segment):  # whatever it is: if it is no file, the reader says so
                number += 1
                yield segment
            elif closed:
                self.refuse_holes(number)
                return
            else:
                if watched.seen(partial(self.refuse_holes, number)):
                    yield None
                time.sleep(poll_seconds)


def number_of(segment: str) -> int:
    """Return the number in the name of a segment."""
    return int(segment[:_DIGITS])


class _Watched:
    """A directory that is looked at whenever it has changed, but for a small part of the time."""

    #: The share of the time that goes into looking: a directory of 170,000 files takes 0.1 s.
    SHARE = 0.05
    #: Nanoseconds behind a change in which another one may get the same time from the file system.
    SAME_TIME = 100_000_000

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: int | None = None
        self._rests_until = 0.0

    def seen(self, look: Callable[[], None]) -> bool:
        """Look at the directory if it has changed; return whether it is as it was at the last look."""
        changed = self._path.stat().st_mtime_ns
        if changed == self._seen:
            return True
        began = time.monotonic()
        if began < self._rests_until:
            return False
        look()
        self._seen = changed if time.time_ns() - changed > self.SAME_TIME else None
        ended = time.monotonic()
        self._rests_until = ended + (ended - began) / self.SHARE
        return True


def write_messages(file: IO[bytes], messages: Sequence[Message] | EncodedMessages, segment: str | None = None) -> None:
    """Write messages as an Avro container file, with the latest publish time in its header.

    Args:
        file: The file.
        messages: The messages, in the order of their publish times.
        segment: The name, without an ending, of the only segment as which the file may be read; None for any.
    """
    encoded = messages if isinstance(messages, EncodedMessages) else EncodedMessages.of(messages)
    last = encoded.publish_times.max() if len(encoded) else 0
    encoded.write(file, {_LAST_PUBLISH_TIME: str(last)} | ({} if segment is None else {_SEGMENT: segment}))


class SegmentHeader(NamedTuple):
    """The facts that the header of a segment tells.

    Attributes:
        last_publish_time: The latest publish time of its messages, in milliseconds.
        marker: Its sync marker, in hexadecimal digits: random bytes that tell it from every other segment.
        size: The size of the file in bytes.
        compressed: Whether its blocks are compressed, so that nobody knows how large it is when inflated.
    """

    last_publish_time: int
    marker: str
    size: int
    compressed: bool = False

    @property
    def nbytes(self) -> float:
        """The bytes of its messages, at the most; infinity if it is compressed."""
        return inf if self.compressed else self.size


def read_header(segment: Path) -> SegmentHeader:
    """Read the header of a segment.

    Raises:
        OSError, ValueError, KeyError: if the file is not a segment.
    """
    with open_file(segment) as file:
        container = Container.open(file)
        return SegmentHeader(
            int(container.metadata[_LAST_PUBLISH_TIME]),
            container.sync_marker.hex(),
            os.fstat(file.fileno()).st_size,
            container.codec != "null",
        )


def last_publish_time(segment: Path) -> int:
    """Read the latest publish time of a segment's messages from its header.

    Raises:
        OSError, ValueError, KeyError: if the file is not a segment.
    """
    return read_header(segment).last_publish_time


def read_messages(path: str | Path, published: int | None = None) -> Iterator[Message]:
    """Read a container file of messages: a segment, an archive, or a file of the late output.

    Args:
        path: The file.
        published: As in ``packed_messages``.

    Raises:
        OSError: if the file cannot be opened.
        StreamError: if it is not one of these.
    """
    with opened(path) as file:
        yield from chain.from_iterable(packed_messages(file, str(path), published))


def opened(path: str | Path) -> IO[bytes]:
    """Open a file of messages.

    Raises:
        OSError: if the file cannot be opened.
        StreamError: if the path is that of a pipe or a device.
    """
    try:
        with named(path):
            return open_file(path)
    except ContainerError as error:
        raise StreamError(f"{plain(str(path))}: {error}; {error.remedy}") from None


def packed_messages(
    file: IO[bytes], path: str, published: int | None = None, *, root: str = ""
) -> Iterator[PackedMessages]:
    """Read an open container file of messages, in parts of bounded size.

    Messages come with their kept attributes only, because whoever wrote the file may have sent any others.

    Args:
        file: The file.
        path: Its name, or the URL it came from.
        published: The publish time of messages whose file holds none, in milliseconds; None to refuse such a file.
        root: The folder or URL of which it is one of several files, if so: messages of two files have two places, also
            if the files have one name in two folders.

    Raises:
        StreamError: if it is not a file of messages.
    """
    below = root.rstrip("/") + "/"
    name = path.removeprefix(below) if root and path.startswith(below) else path.rpartition("/")[2]
    read = 0
    try:
        for part in _decode(_of_messages(file, path, published), name, published):
            yield part
            read += len(part)
    except ContainerError as error:
        raise _refused(path, error, f"damaged after {read:,} messages" if read else _NO_MESSAGES) from error


def count_messages(file: IO[bytes], path: str, published: int | None = None) -> int:
    """Return how many messages an open container file claims to hold, by its header and the ends of its blocks.

    Raises:
        StreamError: as ``packed_messages``, so far as that shows without decoding messages.
    """
    try:
        container = _of_messages(file, path, published)
    except ContainerError as error:
        raise _refused(path, error, _NO_MESSAGES) from error
    try:
        return container.count()
    except ContainerError as error:
        raise _refused(path, error, "damaged") from error


def _of_messages(file: IO[bytes], path: str, published: int | None) -> Container:
    container = Container.open(file)
    _refuse_copy(container, path.rpartition("/")[2])
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
    if written and _NAME.fullmatch(name) and name != f"{written}.avro":
        raise ContainerError(
            f"is segment {quote(written)} under another number",
            "remove it if it is a copy, or restore the segment of this number",
        )


def _refused(path: str, error: ContainerError, wrong: str) -> StreamError:
    wrong = str(error) if error.remedy else f"{wrong} ({error})"
    return StreamError(f"{plain(path)}: {wrong}; {error.remedy or _PUT_BACK}")


def _decode(container: Container, name: str, published: int | None) -> Iterator[PackedMessages]:
    """Decode the messages of each block: many at once, or one by one those of an older schema or an archiver's."""
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
    return Message(record["data"], time, kept_attributes(record["attributes"]), f"{name}:{number}")

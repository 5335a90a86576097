"""The embedded local stream: a directory of numbered, immutable Avro segments. A durable log without a broker.

Writers append whole segments, and readers never see half of one. A writer writes a segment under a temporary name and
publishes it under the next free number, see ``publish``; that fails if another writer took the number. The header of a
segment holds its number too, so that a copy under another number is refused rather than read as further messages. The
same directory is the archive that a backfill reads.
"""

import json
import operator
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import NamedTuple, Self

from uldp.schemas.codec.blocks import Container, open_file
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.file_errors import named
from uldp.schemas.records import Message
from uldp.schemas.regular_files import read_json, read_regular, sync_folder
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.durable_files import make_folder, write_file
from uldp.transforms.io.folders import CLOSED, STREAM_SETTINGS, Kind, mismatch
from uldp.transforms.io.local.publish import publish
from uldp.transforms.io.message_files import LAST_PUBLISH_TIME, SEGMENT_NAME, StreamError, write_messages

#: The mark of a stream that one command writes from its beginning to its end, until that end.
UNFINISHED = ".unfinished"
_DIGITS = 12


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
            make_folder(self.path.absolute())
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
                    publish(aside, segment)
                except FileExistsError:
                    number = max(number + 1, self.end)
                else:
                    sync_folder(self.path)
                    self._next = number + 1
                    return segment
        finally:
            aside.unlink(missing_ok=True)

    def flush(self) -> None:
        """Do nothing: ``append`` returns when a segment and its name are on disk."""

    def give_up(self, seconds: float) -> None:
        """Do nothing: ``append`` waits for the disk alone."""

    def forget(self, before: int) -> None:
        """Remove the segments before a number, which no job needs any more."""
        if before <= self.first:
            return
        self.first = before
        settings = {"simulated_clock": self.simulated_clock, "id": self.id, "first": before}
        # First the settings: a stream that lacks a segment which they do not name is refused.
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
        return sorted(number_of(name) for name in os.listdir(self.path) if SEGMENT_NAME.fullmatch(name))

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
            return int(read_regular(self.path / CLOSED) or b"0")
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
            int(container.metadata[LAST_PUBLISH_TIME]),
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

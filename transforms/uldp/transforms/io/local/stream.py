"""The embedded local stream: a directory of numbered, immutable Avro segments. A durable log without a broker.

Writers append whole segments, and readers never see half of one. A writer writes a segment under a temporary name and
publishes it under the next free number, see ``publish``; that fails if another writer took the number. The header of a
segment holds its number too, so that a copy under another number is refused rather than read as further messages. The
same directory is the archive that a backfill reads.

Segments that are lost can be given up. Nobody reads or takes their numbers any more, and each job accounts their
messages as missing.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Self

from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.file_errors import named
from uldp.schemas.locks import NoLocksError, locked_folder
from uldp.schemas.records import Message
from uldp.schemas.regular_files import read_regular, sync_folder
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.durable_files import make_folder, publish, write_file
from uldp.transforms.io.folders import CLOSED, STREAM_SETTINGS, Kind, mismatch
from uldp.transforms.io.local.given_up import GivenUp, give_up, without
from uldp.transforms.io.local.segments import DIGITS, Before, before_next, name_of, number_of, read_header
from uldp.transforms.io.local.settings import StreamSettings
from uldp.transforms.io.message_files import SEGMENT_NAME, StreamError, write_messages

#: The mark of a stream that one command writes from its beginning to its end, until that end.
UNFINISHED = ".unfinished"


@dataclass
class LocalStream:
    """A local stream in a directory."""

    path: Path  # the directory
    #: Whether publish times come from a simulation. Then an idle stream says nothing about the time, and only its
    #: messages advance the watermark.
    simulated_clock: bool = False
    #: Identifies this stream, even if its directory moves. Another stream in the same place has another id.
    id: str = ""
    #: The number of the first segment that must be there: ``forget`` raises it. All segments that are there are read
    #: nevertheless.
    first: int = 0
    given_up: tuple[GivenUp, ...] = ()  # the segments that were given up, in order
    known_end: int = 0  # as ``StreamSettings.end``
    #: Returns the present, in seconds since 1970.
    clock: Callable[[], float] = field(default=time.time, repr=False, compare=False)
    _next: int | None = field(default=None, init=False, repr=False, compare=False)
    #: How many messages there were before the segment ``_next``.
    _before: Before | None = field(default=None, init=False, repr=False, compare=False)
    #: What tells the settings that were read from those that are there.
    _read: tuple[int, ...] = field(default=(), init=False, repr=False, compare=False)

    @classmethod
    def create(cls, path: Path, *, simulated_clock: bool = False) -> Self:
        """Begin a stream in a new or empty directory; StreamError if it holds anything."""
        cls.refuse_used(path)
        make_stream_folder(path)
        with named(path / STREAM_SETTINGS):
            stream = cls(path, simulated_clock, secrets.token_hex(16))
            StreamSettings(simulated_clock=simulated_clock, id=stream.id).write(path)
        return stream

    @staticmethod
    def refuse_used(path: Path) -> None:
        """Raise StreamError unless a path is free, an empty directory, or one with the mark of a beginning alone."""
        if path.exists() and not (path.is_dir() and {entry.name for entry in path.iterdir()} <= {UNFINISHED}):
            raise StreamError(f"{path}: not an empty directory; choose another directory, or remove this one")

    @classmethod
    def open(cls, path: Path, clock: Callable[[], float] = time.time) -> Self:
        """Open a stream that ``create`` began; StreamError if ``path`` is not one."""
        try:
            settings = StreamSettings.read(path)
        except (FileNotFoundError, NotADirectoryError):
            lost = f", or restore {STREAM_SETTINGS}" if any(path.glob(f"{'[0-9]' * DIGITS}.avro")) else ""
            raise StreamError(f"{mismatch(path, Kind.STREAM)}; uldp simulate creates one{lost}") from None
        stream = cls(path, settings.simulated_clock, settings.id, settings.first, clock=clock)
        settings.refuse_impossible(path, max(stream.end, stream._closed_at()))
        stream.given_up, stream.known_end = settings.given_up, settings.end
        return stream

    def given_up_at(self, number: int) -> GivenUp | None:
        """Return the run with this number that was given up, also lately; StreamError if settings are damaged."""
        self._refresh()
        return next((each for each in self.given_up if number in each.segments), None)

    def _refresh(self) -> None:
        """Read what was given up since the settings were read."""
        with suppress(FileNotFoundError):
            status = (self.path / STREAM_SETTINGS).stat()
            read = status.st_ino, status.st_mtime_ns, status.st_size
            if read != self._read:
                settings = StreamSettings.read(self.path)
                self.given_up, self.known_end, self._read = settings.given_up, settings.end, read

    @contextmanager
    def _settings(self) -> Iterator[StreamSettings]:
        """Give the settings that are there, which no other command writes meanwhile if the file system has locks."""
        with ExitStack() as stack:
            with suppress(NoLocksError):
                stack.enter_context(locked_folder(self.path))
            yield StreamSettings.read(self.path)

    def append(self, messages: Sequence[Message] | EncodedMessages) -> Path:
        """Append messages, in the order of their publish times, as one segment; OSError if it cannot be written."""
        if self._next is None:
            self._refresh()
            self._next = max(self.end, self.first, self.known_end)
        with named(self._segment(self._next)):
            return self._append(messages, self._next)

    def _append(self, messages: Sequence[Message] | EncodedMessages, number: int) -> Path:
        encoded = messages if isinstance(messages, EncodedMessages) else EncodedMessages.of(messages)
        aside = self.path / f".{secrets.token_hex(8)}"
        try:
            while True:  # until no other writer has the number, and nobody has given it up
                if (given_up := self.given_up_at(number)) is not None:
                    number = max(given_up.last + 1, self.end)
                segment, before = self._segment(number), self._before_segment(number)
                with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                    write_messages(file, encoded, segment.stem, str(before))
                    file.flush()
                    os.fsync(file.fileno())
                try:
                    publish(aside, segment)
                except FileExistsError:
                    number = max(number + 1, self.end)
                    continue
                sync_folder(self.path)
                if self.given_up_at(number) is None:  # else since the look above, and nobody reads it there
                    self._next, self._before = number + 1, Before(before.messages + len(encoded), before.since)
                    return segment
        finally:
            aside.unlink(missing_ok=True)

    def _before_segment(self, number: int) -> Before:
        """Return how many messages there were before a segment; none, from this one on, if nothing says it."""
        if self._before is not None and number == self._next:
            return self._before
        with suppress(OSError, ValueError, KeyError):  # who reads that segment says what is wrong with it
            if number > 0 and (before := before_next(self._segment(number - 1))) is not None:
                return before
        return Before(0, number)

    def flush(self) -> None:
        """Do nothing: ``append`` returns when a segment and its name are on disk."""

    def give_up(self, seconds: float) -> None:
        """Do nothing: ``append`` waits for the disk alone."""

    def forget(self, before: int) -> None:
        """Remove the segments before a number, which no job needs any more."""
        if before <= self.first:
            return
        self.first = before
        # First the settings: a stream that lacks a segment which they do not name is refused.
        with self._settings() as settings:
            settings.model_copy(update={"first": max(before, settings.first)}).write(self.path)
        for number in self._numbers():
            if number < before:
                self._segment(number).unlink(missing_ok=True)

    def give_up_missing(self) -> tuple[GivenUp, ...]:
        """Give up missing segments for ever; return what they held; StreamError if the next is bad, or one comes."""
        with self._settings() as settings:
            self._refresh()
            lost, given_up = list[GivenUp](), settings.given_up
            for hole in self.missing():
                lost.append(give_up(self.path, hole, given_up, self._ended()))
                given_up = tuple(sorted((*given_up, lost[-1]), key=lambda each: each.first))
            if not lost:
                return ()
            end = max(self.end, self._closed_at(), self.known_end)
            settings.model_copy(update={"given_up": given_up, "end": end}).write(self.path)
            # A writer looks at the settings behind its segment, and this looks at segments behind the settings.
            for name in sorted(filter(SEGMENT_NAME.fullmatch, os.listdir(self.path))):
                if any(number_of(name) in each.segments for each in lost):
                    settings.write(self.path)
                    raise StreamError(f"{plain(str(self.path / name))}: has come at this moment; run the command again")
        return tuple(lost)

    def _ended(self) -> int:
        """Return an upper bound of the publish times of messages that the stream ends with, in milliseconds."""
        if self.simulated_clock or not self.closed:
            return self.now()
        return int((self.path / CLOSED).stat().st_mtime * 1000)

    def _segment(self, number: int) -> Path:
        return self.path / name_of(number)

    def segments(self) -> list[Path]:
        """Return the existing segments, in order, without those that were given up."""
        return [self._segment(number) for number in self._numbers()]

    def _numbers(self) -> list[int]:
        there = sorted(number_of(name) for name in os.listdir(self.path) if SEGMENT_NAME.fullmatch(name))
        if not self.given_up:
            return there
        return [number for number in there if not any(number in each.segments for each in self.given_up)]

    @property
    def end(self) -> int:
        """The number behind that of the last segment; 0 if there is none."""
        return next((number + 1 for number in reversed(self._numbers())), 0)

    def missing(self, since: int = 0, end: int = 0) -> list[range]:
        """Return the numbers of segments that are missing, in order; StreamError if the mark of the end is damaged.

        Numbers have no gap: each from ``first`` on must be there, unless given up, below the largest present one, the
        mark of the end, or ``end``; those before ``since`` need not.
        """
        self._refresh()
        since, end = max(since, self.first), max(end, self._closed_at(), self.known_end)
        while True:
            present = [since - 1, *(number for number in self._numbers() if number >= since)]
            present.append(max(end, present[-1] + 1))
            between = (range(before + 1, after) for before, after in pairwise(present))
            holes = [hole for each in between for hole in without(each, self.given_up)]
            if not holes or not os.path.lexists(self._segment(holes[0].start)):  # else it came during the listing
                return holes

    @property
    def whole(self) -> bool:
        """Whether all segments are there that were ever written, but those that were given up."""
        return not replace(self, first=0).missing()

    def refuse_holes(self, since: int = 0) -> None:
        """Raise StreamError, which says how many are lost or wait, and what to do, if a segment is ``missing``."""
        holes = self.missing(since)
        if not holes:
            return
        first, more = holes[0].start, sum(map(len, holes)) - 1
        others = f", as {'is 1 other' if more == 1 else f'are {more:,} others'}" if more else ""
        raise StreamError(
            f"{plain(str(self._segment(first)))}: missing{others}, and {self.behind(first):,} of the segments behind it"
            " are there; restore what is missing, or, if it is lost, run uldp give-up"
            f" {plain(str(self.path))}: jobs then read what is there, and account the rest as missing"
        )

    def behind(self, number: int) -> int:
        """Return how many segments with a higher number are there."""
        return sum(other > number for other in self._numbers())

    def close(self) -> None:
        """Mark the stream as complete, and say how many segments it has; readers end when they have read all."""
        write_file(str(self.path / CLOSED), f"{self.end}\n".encode())

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
        return read_header(segments[-1]).last_publish_time if segments else 0

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return (self.path / CLOSED).exists()

    def follow(self, poll_seconds: float, first: str | None = None) -> Iterator[Path | None]:
        """Yield each segment from ``first`` on as it comes, None at each poll without one; end when closed and read.

        Of segments that were given up together, it yields the first. None says that all that were there were yielded.
        StreamError if the next segment is missing, and others behind it are there.
        """
        since = 0 if first is None else number_of(first)
        number = max(since, self.first)
        yield from [self._segment(older) for older in self._numbers() if since <= older < number]
        watched = _Watched(self.path)
        while True:
            closed = self.closed  # before the check for a segment, so as not to miss one appended before the close
            segment = self._segment(number)
            if (given_up := self.given_up_at(number)) is not None:
                number = given_up.last + 1
                yield segment
            elif os.path.lexists(segment):  # whatever it is: if it is no file, the reader says so
                number += 1
                yield segment
            elif closed:
                self.refuse_holes(number)
                return
            else:
                if watched.seen(partial(self.refuse_holes, number)):
                    yield None
                time.sleep(poll_seconds)


def make_stream_folder(path: Path) -> None:
    """Make the directory of a stream, unless it is there: only its owner may read reports."""
    with named(path):
        make_folder(path.absolute().parent)
        make_folder(path.absolute(), 0o700)


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

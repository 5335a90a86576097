"""When a job of a local stream writes its resume point, and from which segment on a restart reads.

The local runner keeps its state in memory, so a job that is started again reads segments again: not all of them, but
those from the first that a window needs which can still change. No file has the state; it follows from these segments.

The runner takes an event of its ``TestStream`` only when it has nothing else to do. So when the reader begins with the
segments of an event, all segments before these are counted, and their panes, late and rejected reports are written.
"""

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Self

from uldp.collector.collections import YEAR_9000
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.internals import LOCAL_EXECUTOR_LOG, RETRIED
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.local.given_up import GivenUp
from uldp.transforms.io.local.journal import GivenUpTaken, Journal, SegmentRead
from uldp.transforms.io.local.resume_point import ResumePoint
from uldp.transforms.io.local.segments import DIGITS, SegmentHeader, name_of
from uldp.transforms.io.message_files import StreamError


class Announced(NamedTuple):
    """An event with segments, as the runner is told of it."""

    first: str  # the name of its first segment
    last: str  # the name of its last segment
    watermark: int | None  # the watermark before the first segment, in milliseconds; None before the first message
    #: An upper bound of the publish times of its messages and of all before, in milliseconds. A message that claims to
    #: come from the future has the present as its publish time.
    latest: int


class _Mark(NamedTuple):
    """A segment from which a job may read again: all messages before it were published by ``latest``."""

    segment: str
    watermark: int | None
    latest: int


class ResumePoints:
    """Writes the resume point of a job, and its journal, at each event, until the runner gives up a bundle.

    ``reach`` is how many milliseconds before the watermark messages are needed again, and grows with a later
    collection. An earlier run has left ``start``, has read segments that are ``known`` and ``read_of_first`` messages
    of given-up ones around the first, and has ``taken`` others as given up.
    """

    #: A job keeps this many marks for its reach, so it reads up to this fraction more than it needs.
    MARKS = 100

    def __init__(
        self,
        path: Path,
        job: str,
        reach: int,
        journal: Journal,
        start: ResumePoint | None = None,
        known: Mapping[str, SegmentRead] | None = None,
        taken: Iterable[int] = (),
        read_of_first: int = 0,
    ) -> None:
        self.start, self.journal, self._read_of_first = start, journal, read_of_first
        self._taken = set[int]() if journal.anew else set(taken)
        self._path, self._job, self.reach = path, job, reach
        self._known = dict(known or {})
        #: The last segment that an earlier run may have read.
        self.begun = max(["" if start is None else start.last, *(f"{name}.avro" for name in self._known)])
        self._marks: deque[_Mark] = deque()
        self._latest = -YEAR_9000
        self._failures = _Failures()
        self._log = logging.getLogger(LOCAL_EXECUTOR_LOG)
        self._level = self._log.level

    def __enter__(self) -> Self:
        self._log.addFilter(self._failures)
        self._log.setLevel(logging.ERROR)  # a log whose level is above that asks no filter
        return self

    def __exit__(self, *_: object) -> None:
        self._log.setLevel(self._level)
        self._log.removeFilter(self._failures)

    def begin(self, event: Announced, present: int) -> None:
        """Write the point before the job reads a new event; no message is published after ``present`` so far."""
        if not self._marks or _distance(self._marks[-1].watermark, event.watermark) >= self.reach // self.MARKS:
            self._marks.append(_Mark(event.first, event.watermark, min(self._latest, present)))
        self._latest = event.latest
        if self._failures.seen or (self.start is not None and event.first < self.start.segment):
            return
        needed = -YEAR_9000 if event.watermark is None else event.watermark - self.reach
        while len(self._marks) > 1 and self._marks[1].latest < needed:
            self._marks.popleft()
        first = self._marks[0]
        point = ResumePoint(
            job=self._job,
            first=first.segment,
            first_watermark=first.watermark,
            segment=event.first,
            watermark=event.watermark,
            last=event.last,
            journal=self.journal.commit(),
        )
        # What the point takes as written is in the journal before the point is there.
        write_file(str(self._path), point.model_dump_json(indent=2).encode() + b"\n")

    def refuse_other(self, segment: Path, header: SegmentHeader) -> None:
        """Refuse a segment that was read before, and is another one now; StreamError if it is."""
        known = self._known.get(segment.stem)
        if known is not None and (known.marker, known.nbytes) != (header.marker, header.size):
            raise StreamError(
                f"{plain(str(segment))}: has changed since the job has read it, as {self.journal.path} says; restore"
                " the segment, or choose another --to"
            )

    def give_up(self, first: int, given_up: GivenUp) -> None:
        """Let the journal say once that a run of segments is given up, needed from the number ``first`` on."""
        if first in self._taken:
            return
        self._taken.add(first)
        known = any(f"{number:0{DIGITS}d}" in self._known for number in given_up.segments)
        # An earlier run may have read the segments of its last event.
        begun = (
            self.start is not None
            and self.start.segment <= name_of(given_up.last)
            and name_of(first) <= self.start.last
        )
        messages = max(given_up.messages - self.read_before(first, given_up), 0)
        self.journal.add(GivenUpTaken(first, given_up.last, messages, "at most" if known or begun else given_up.bound))

    def read_before(self, first: int, given_up: GivenUp) -> int:
        """Return how many messages an earlier run has read of a run before the first segment that the job needs."""
        return 0 if first == given_up.first else given_up.read(first, self._read_of_first)

    def read(self, segment: SegmentRead) -> None:
        """Let the journal say that a segment was read, unless it says so already."""
        if self._known.pop(segment.segment, None) is None or self.journal.anew:
            self.journal.add(segment)


def _distance(before: int | None, after: int | None) -> int:
    """Return how far the watermark went; from none, it went as far as it can."""
    if after is None:
        return 0
    return YEAR_9000 if before is None else after - before


class _Failures(logging.Filter):
    """Notices that the runner gives up, by its log, from which it takes nothing.

    The thread that runs all steps logs an error before it takes the next event, and may take that before the thread
    that waits for the end of the job hears of the error.
    """

    seen = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Take every error for an end, except that of an attempt: behind the last attempt follows another error."""
        self.seen |= not str(record.msg).startswith(RETRIED)
        return logging.getLogger(LOCAL_EXECUTOR_LOG.rpartition(".")[0]).isEnabledFor(record.levelno)

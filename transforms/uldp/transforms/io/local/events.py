"""The events of a local stream: the service that tells Beam's local runner of segments, the watermark and the clock."""

import concurrent.futures
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import grpc
from apache_beam.coders import StrUtf8Coder

from uldp.schemas.records import Missing
from uldp.schemas.specs.window import WindowSpec
from uldp.transforms.internals import MIN_TIMESTAMP, TestStreamPayload, service_api
from uldp.transforms.io.local.given_up import GivenUp
from uldp.transforms.io.local.journal import SegmentRead
from uldp.transforms.io.local.resume import Announced, ResumePoints
from uldp.transforms.io.local.segments import SegmentHeader, name_of, number_of, read_header
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.local.waiting import Moments, Waiting
from uldp.transforms.io.message_files import StreamError
from uldp.transforms.io.publish_times import LATEST, bounded
from uldp.transforms.per_process import Itself

Event = TestStreamPayload.Event
#: The name of a TestStream's only output.
_TAG = "None"
#: By how many milliseconds the watermark may be ahead of the clock: clocks that are set step back by less.
CLOCK_TOLERANCE = 60_000


class LocalStreamEvents(Itself, service_api.TestStreamServiceServicer):
    """Announces the segments of a local stream, its watermark and the clock to Beam's local runner.

    The ``BundleBasedDirectRunner`` has no live source of its own, but its ``TestStream`` takes events from a service
    like this one. The watermark is the latest publish time of the messages that were read, less ``watermark_delay``. If
    the stream is idle, the watermark is the present, less the same delay, because every message to come is published
    later. If the writer takes messages from elsewhere, ``settled`` returns the time since when that is so, or None. A
    message that comes out of order by more has the watermark as its publish time; see ``publish_times``.

    The runner takes some 60 ms for a bundle, and makes a bundle of each event with segments. So segments that are there
    already are announced in one event, each at the watermark before it; but an event ends where the watermark makes
    something happen, so that windows hold the same reports as if each segment came alone. See ``Waiting``.

    A job that resumes is told of the segments from its resume point on, with the watermark as it was there. The event
    that the job was reading then comes as it was, so that files of late and rejected reports get the same names.

    Segments that were given up together are announced as one, by the path of the first, and their messages are missing.

    Between two segments ``look`` is called with an upper bound of the publish times of all messages that the job may
    have read, once it has read again what an earlier run has read. It returns the windows of all collections if others
    have come.

    A watermark that is ahead of the stream's clock by more than ``CLOCK_TOLERANCE`` is told to ``warn``, in
    milliseconds, once until the clock has caught up.

    A context manager: it listens on a socket from ``__enter__`` to ``__exit__``. The socket is in a folder that only
    this user may enter: whoever asks for events takes them from the runner.
    """

    #: Seconds between polls of the directory.
    POLL_SECONDS = 0.1
    #: The most seconds between two events, for each of which the runner looks at each step; or a tenth of the time
    #: between early panes, if that is less. Beam takes 30 seconds without an event for the end of a stream.
    TICK_SECONDS = 1.0

    def __init__(
        self,
        stream: LocalStream,
        watermark_delay_ms: int,
        windows: Iterable[WindowSpec],
        points: ResumePoints | None = None,
        warn: Callable[[int], None] = lambda ahead: None,
        settled: Callable[[], int | None] | None = None,
        look: Callable[[int], Iterable[WindowSpec] | None] = lambda latest: None,
    ) -> None:
        self._stream = stream
        self._current = stream.path
        self._refused: tuple[str, Exception] | None = None
        self._delay = watermark_delay_ms
        self._settled = settled or self.latest
        self._look = look
        of_all = list(windows)
        self._waiting, self._tick = Waiting(Moments.of(of_all)), self._tick_of(of_all)
        self._points, self._start = points, None if points is None else points.start
        if self._start is not None:
            self._waiting.watermark = self._start.first_watermark
        self._published = 0
        self._unread: dict[str, Announced] = {}
        self._headers: dict[str, SegmentHeader] = {}
        self._given_up: dict[str, GivenUp] = {}
        self._begun = -1 if self._start is None else number_of(self._start.first) - 1
        self._ticked = time.monotonic()
        #: Announced segments without given-up ones, those of them that were read, and the messages in these.
        self.announced = self.segments = self.messages = 0
        #: The newest announced watermark, in milliseconds. The runner reaches it when it has read all segments.
        self.watermark: int | None = None
        self.asked_ms = time.time_ns() // 1_000_000  # when the runner last asked for an event
        self._warn, self._warned = warn, False
        self._ended = False
        self._stopping = threading.Event()
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=1))
        service_api.add_TestStreamServiceServicer_to_server(self, self._server)

    def __enter__(self) -> Self:
        self._folder = TemporaryDirectory(prefix="uldp-")
        self.endpoint = f"unix:{self._folder.name}/events"
        try:
            self._server.add_insecure_port(self.endpoint)
        except RuntimeError as error:
            self._folder.cleanup()
            raise StreamError(
                f"{self._folder.name}: no socket can be made there; set TMPDIR to a short path on this machine"
            ) from error
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.stop(grace=None)
        self._folder.cleanup()

    def check_whole(self) -> None:
        """Check that the job, whose runner says so, has read the stream to its end; StreamError if not."""
        if not self._ended or self.segments != self.announced or self._given_up:
            raise StreamError(
                f"{self._stream.path}: {self.segments:,} of {self.announced:,} announced segments were read before the"
                " runner ended, so the results may lack reports; run the job again"
            )

    def latest(self) -> int:
        """Return the latest publish time that a message may have now, in milliseconds."""
        return LATEST if self._stream.simulated_clock else self._stream.now()

    @property
    def simulated_clock(self) -> bool:
        """Whether publish times come from a simulation."""
        return self._stream.simulated_clock

    @property
    def early_ms(self) -> int:
        """By how many milliseconds the watermark is ahead of the stream's clock: a clock that was wrong has set it."""
        return max((self.watermark or self.latest()) - self.latest(), 0)

    def _warn_if_early(self) -> None:
        """Warn once whenever the clock turns out to be behind the watermark."""
        early = self.early_ms > CLOCK_TOLERANCE
        if early and not self._warned:
            self._warn(self.early_ms)
        self._warned = early

    @property
    def ahead(self) -> int:
        """The number of segments that are there, and that the job has not begun to read."""
        return self._stream.behind(self._begun)

    def begin(self, path: str) -> None:
        """Write the resume point if a segment is the first of its event; all events before it have been processed."""
        self._begun = number_of(path.rpartition("/")[2])
        if self._points is not None and (given_up := self._given_up.get(path)) is not None:
            self._points.give_up(self._begun, given_up)
        event = self._unread.pop(path, None)
        if event is not None and self._points is not None:
            self._points.begin(event, self.latest())

    def read(self, segments: Mapping[str, int]) -> None:
        """Count the messages of segments, by path, that have been read to their end."""
        for path, messages in segments.items():
            if self._given_up.pop(path, None) is not None:
                continue
            header = self._headers.pop(path)
            self.segments += 1
            self.messages += messages
            if self._points is not None:
                self._points.read(SegmentRead(Path(path).stem, header.marker, header.size, messages))

    def missing(self, path: str, watermark: int) -> tuple[Missing, ...] | None:
        """Return what given-up segments held from ``path`` on, but for closed windows; None of other segments."""
        if (given_up := self._given_up.get(path)) is None:
            return None
        number = number_of(Path(path).name)
        read = 0 if self._points is None else self._points.read_before(number, given_up)
        record = given_up.missing(self._stream.id, read)
        if record is None:
            return ()
        before = bounded(record.before, watermark, self.latest())
        return (replace(record, after=min(max(record.after - self._delay, watermark), before), before=before),)

    def refuse(self, path: str, *, read: bool) -> None:
        """Raise the error with which a path was announced, unless it was ``read`` without one and is readable now."""
        if self._refused is not None and self._refused[0] == path:
            error = self._refused[1]
            if read or isinstance(error, StreamError):
                raise error

    def Events(self, request: Any, context: Any) -> Iterator[Event]:  # noqa: N802 (the name in the service)
        """Stream the events; end when the stream is closed and read, and only then.

        The runner takes their end, and an error, for the end of the input, and would fire every open window as
        complete. So a segment that cannot be read is announced nevertheless, and the reader fails, which the runner
        sees between two events.
        """
        try:
            yield from self._events()
        except Exception as error:  # after any error, the job must fail and not finish
            yield from self._announce()
            self._refused = str(self._current), error
            self._waiting.add(self._current, 0)
            yield from self._announce()
            while not self._stopping.wait(self.POLL_SECONDS):
                yield from self._announce()

    def _events(self) -> Iterator[Event]:
        start, settled = self._start, self._settled()
        marks = [] if start is None else [start.segment, start.last]
        for segment in self._stream.follow(self.POLL_SECONDS, None if start is None else start.first):
            if segment is None or self._points is None or segment.name > self._points.begun:
                self._look_for_windows()
            if segment is not None:
                self._current = segment
                given_up = self._stream.given_up_at(number_of(segment.name))
                last = segment.name if given_up is None else name_of(given_up.last)
                nbytes, published = self._take(segment, given_up)
                self._current = self._stream.path
                if start is not None and len(marks) == 2 and last >= marks[0]:
                    del marks[0]
                    if start.watermark is not None:
                        self._waiting.advance(start.watermark)
                    yield from self._announce()
                elif not self._waiting.takes(nbytes):
                    yield from self._announce()
                self._waiting.add(segment, nbytes)
                self._published = max(self._published, published)
                if given_up is None:  # else the watermark stays, because messages behind may be older
                    self._waiting.advance(bounded(published, 0, self.latest()) - self._delay)
                if marks and last >= marks[-1]:
                    marks.clear()
                    yield from self._announce()
            else:
                if settled is not None and not self._stream.simulated_clock:
                    self._waiting.advance(settled - self._delay)
                if self._waiting.urgent or time.monotonic() - self._ticked >= self._tick:
                    yield from self._announce()
            settled = self._settled()  # before the look for the next segment: what that holds is older
        yield from self._announce()
        self._ended = True

    def _take(self, segment: Path, given_up: GivenUp | None) -> tuple[float, int]:
        """Remember what is announced, and return its size at the most, and the latest publish time of its messages."""
        if given_up is not None:
            self._given_up[str(segment)] = given_up
            return 0, given_up.before
        header = read_header(segment)
        if self._points is not None:
            self._points.refuse_other(segment, header)
        self._headers[str(segment)] = header
        return header.nbytes, header.last_publish_time

    def _look_for_windows(self) -> None:
        latest = max(self._published, 0 if self._waiting.watermark is None else self._waiting.watermark + self._delay)
        if (windows := self._look(latest)) is not None:
            of_all = list(windows)
            self._waiting.moments, self._tick = Moments.of(of_all), self._tick_of(of_all)

    def _tick_of(self, windows: Iterable[WindowSpec]) -> float:
        early = [window.early_every.total_seconds() for window in windows if window.early_every is not None]
        return min([self.TICK_SECONDS, *(every / 10 for every in early)])

    def _announce(self) -> Iterator[Event]:
        """Announce how far the clock went, the segments that wait, and the watermark behind them."""
        elapsed = time.monotonic() - self._ticked
        self.asked_ms = time.time_ns() // 1_000_000
        self._ticked += elapsed
        self._warn_if_early()
        yield Event(processing_time_event=Event.AdvanceProcessingTime(advance_duration=int(elapsed * 1e6)))
        if segments := self._waiting.take():
            self.announced += sum(str(segment) not in self._given_up for segment, _ in segments)
            elements = [_element(segment, watermark) for segment, watermark in segments]
            if self._refused is None:
                (first, watermark), (last, _) = segments[0], segments[-1]
                latest = max(self._published, self._waiting.watermark or 0)
                self._unread[str(first)] = Announced(first.name, last.name, watermark, latest)
            yield Event(element_event=Event.AddElements(elements=elements, tag=_TAG))
        if self._waiting.watermark is not None and self._waiting.watermark != self.watermark:
            self.watermark = self._waiting.watermark
            yield Event(watermark_event=Event.AdvanceWatermark(new_watermark=self.watermark * 1000, tag=_TAG))


def _element(segment: Path, watermark: int | None) -> TestStreamPayload.TimestampedElement:
    """Give a segment the watermark before it as its time, so that the watermark waits until the segment is read."""
    return TestStreamPayload.TimestampedElement(
        encoded_element=StrUtf8Coder().encode(str(segment)),
        timestamp=MIN_TIMESTAMP.micros if watermark is None else watermark * 1000,
    )

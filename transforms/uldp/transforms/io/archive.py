"""Sources of messages: an archive of files (bounded), and the embedded local stream (unbounded)."""

import concurrent.futures
import hashlib
import json
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import apache_beam as beam
import grpc
from apache_beam.coders import StrUtf8Coder
from apache_beam.io.filesystem import FileMetadata
from apache_beam.pvalue import PBegin, PCollection
from apache_beam.testing.test_stream import TestStream

from uldp.schemas.codec.container import sync_marker
from uldp.transforms.internals import MIN_TIMESTAMP, TestStreamPayload, service_api
from uldp.transforms.io.chunks import Chunk, joined
from uldp.transforms.io.folders import Kind, kind_of, mismatch
from uldp.transforms.io.local.stream import LocalStream, StreamError, last_publish_time, opened, packed_messages
from uldp.transforms.io.publish_times import LATEST, bounded, bounded_messages
from uldp.transforms.io.remote import fetched, is_remote, matching

LOGGER = logging.getLogger(__name__)

Event = TestStreamPayload.Event
#: The name of a TestStream's only output.
_TAG = "None"


def message_files(path: str | Path) -> list[str]:
    """Return the files of messages at ``path``: itself, or all ``*.avro`` below it, in order of name.

    Args:
        path: A path here, or a URL of another of Beam's file systems.

    Raises:
        StreamError, RemoteError: if there is no file, or the file system does not answer. A local stream may be empty.
    """
    if is_remote(str(path)):
        return [file.path for file in _remote_files(str(path))]
    local = Path(path)
    if local.is_file():
        return [str(local)]
    if not local.is_dir():
        if local.exists():
            opened(local).close()  # refuses what is neither a file nor a directory
        raise StreamError(f"{path}: no such file or directory")
    kind = kind_of(local)
    if kind is Kind.RESULTS:
        raise StreamError(mismatch(local, Kind.MESSAGES))
    found = [str(file) for file in sorted(local.rglob("*.avro")) if not file.name.startswith(".")]
    if not found and kind is not Kind.STREAM:
        raise StreamError(f"{path}: holds no .avro file of messages; is this the stream's directory?")
    return found


def _remote_files(url: str) -> list[FileMetadata]:
    url = url.rstrip("/")
    found = matching(f"{url}/**.avro") or matching(url)
    if not found:
        raise StreamError(f"{url}: no such file, and no .avro file below it")
    return found


def archive_digest(path: str | Path) -> str:
    """Return a digest of the files of messages that are at ``path`` now: other files have another digest.

    Local files are identified by their names, sizes and sync markers, so that a copy of an archive has the same digest;
    remote files by the path, size and time of the last update that their file system reports without reading them.

    Raises:
        StreamError, RemoteError: as ``message_files``.
    """
    known: list[tuple[object, ...]]
    if is_remote(str(path)):
        known = [(file.path, file.size_in_bytes, file.last_updated_in_seconds) for file in _remote_files(str(path))]
    else:
        known = [_identify(Path(file)) for file in message_files(path)]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]


def _identify(path: Path) -> tuple[str, int, str]:
    with opened(path) as file:
        return path.name, os.fstat(file.fileno()).st_size, sync_marker(file).hex()


@dataclass
class ReadArchive(beam.PTransform[PBegin, PCollection[Chunk]]):
    """Read the messages of container files, here or on another of Beam's file systems; bounded."""

    path: str | Path

    def __post_init__(self) -> None:
        super().__init__()
        self._files = message_files(self.path)

    def expand(self, pbegin: PBegin) -> PCollection[Chunk]:
        """Spread the files over workers."""
        chunks: PCollection[Chunk] = (
            pbegin
            | "Files" >> beam.Create(self._files)
            | "Spread" >> beam.Reshuffle()
            | "ReadFile" >> beam.ParDo(_ReadFilesFn(len(self._files)))
        )
        return chunks


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(Chunk)
class _ReadFilesFn(beam.DoFn):
    """Reads files of messages, and logs its progress from time to time."""

    LOG_EVERY_SECONDS = 5.0

    def __init__(self, files: int) -> None:
        self._of = files
        self._files = self._messages = 0
        self._logged = -math.inf

    def setup(self) -> None:
        self._logged = time.monotonic()

    def process(self, path: str) -> Iterator[Chunk]:
        with fetched(path) if is_remote(path) else opened(path) as file:
            for chunk in joined(packed_messages(file, path)):
                self._messages += len(chunk)
                self._log()
                yield chunk
        self._files += 1

    def _log(self) -> None:
        if time.monotonic() - self._logged >= self.LOG_EVERY_SECONDS:
            self._logged = time.monotonic()
            LOGGER.info("%s messages read, %s of %s files", f"{self._messages:,}", f"{self._files:,}", f"{self._of:,}")


@dataclass
class ReadLocalStream(beam.PTransform[PBegin, PCollection[Chunk]]):
    """Follow a local stream on the ``BundleBasedDirectRunner``; unbounded.

    Attributes:
        endpoint: Address of the ``LocalStreamEvents`` that announces its segments.
    """

    endpoint: str

    def expand(self, pbegin: PBegin) -> PCollection[Chunk]:
        """Send each segment as one element, so that the runner's cost of an element is paid once for many messages."""
        chunks: PCollection[Chunk] = (
            pbegin
            | "Segments" >> TestStream(coder=StrUtf8Coder(), endpoint=self.endpoint).with_output_types(str)
            | "ReadSegment" >> beam.ParDo(_ReadSegmentsFn(self.endpoint))
        )
        return chunks


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(Chunk)
class _ReadSegmentsFn(beam.DoFn):
    """Reads segments, and reports to the ``LocalStreamEvents`` that announced them, in the same process."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    def process(self, path: str, announced: Any = beam.DoFn.TimestampParam) -> Iterator[Chunk]:
        events, watermark, messages = _LISTENING[self._endpoint], announced.micros // 1000, 0
        with opened(path) as file:
            for packed in joined(packed_messages(file, path)):
                chunk = Chunk(bounded_messages(packed.messages, watermark, events.latest()))
                messages += len(chunk)
                yield chunk
        events.read(messages)


class LocalStreamEvents(service_api.TestStreamServiceServicer):
    """Announces the segments of a local stream, its watermark and the clock to Beam's local runner.

    The ``BundleBasedDirectRunner`` has no live source of its own, but its ``TestStream`` takes events from a service
    like this one. The watermark is the latest publish time of the messages that were read, less ``watermark_delay``. If
    the stream is idle, the watermark is the present, less the same delay, because every message to come is published
    later. A message that comes out of order by more has the watermark as its publish time; see ``publish_times``.

    A context manager: it listens on 127.0.0.1 from ``__enter__`` to ``__exit__``.

    Attributes:
        announced: The number of announced segments.
        segments: The number of these segments that have been read.
        messages: The number of messages in the segments that have been read.
        watermark: The newest announced watermark, in milliseconds. The runner reaches it when it has read all segments.
    """

    #: Seconds between polls of the directory, and so between clock events: the resolution of early firings.
    POLL_SECONDS = 0.1

    def __init__(self, stream: LocalStream, watermark_delay_ms: int, clock: Callable[[], float] = time.time) -> None:
        self._stream = stream
        self._current = stream.path
        self._delay = watermark_delay_ms
        self._clock = clock
        self.announced = self.segments = self.messages = 0
        self.watermark: int | None = None
        self._stopping = threading.Event()
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=1))
        service_api.add_TestStreamServiceServicer_to_server(self, self._server)

    def __enter__(self) -> Self:
        self.endpoint = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()
        _LISTENING[self.endpoint] = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del _LISTENING[self.endpoint]
        self._stopping.set()
        self._server.stop(grace=None)

    def latest(self) -> int:
        """Return the latest publish time that a message may have now, in milliseconds."""
        return LATEST if self._stream.simulated_clock else int(self._clock() * 1000)

    def read(self, messages: int) -> None:
        """Count a segment that has been read, and its messages."""
        self.segments += 1
        self.messages += messages

    def Events(self, request: Any, context: Any) -> Iterator[Event]:  # noqa: N802 (the name in the service)
        """Stream the events; end when the stream is closed and read, and only then.

        The runner takes the end of the events, and also an error, for the end of the input, and would fire every open
        window as complete. So if a segment cannot be read, this method announces it nevertheless, and the reader fails.
        """
        try:
            yield from self._events()
        except Exception:  # after any error, the job must fail and not finish
            yield _segment_event(self._current, None)
            self._stopping.wait()

    def _events(self) -> Iterator[Event]:
        clock = time.monotonic()
        for segment in self._stream.follow(self.POLL_SECONDS):
            elapsed = time.monotonic() - clock
            clock += elapsed
            yield Event(processing_time_event=Event.AdvanceProcessingTime(advance_duration=int(elapsed * 1e6)))
            published = None if self._stream.simulated_clock else self.latest()
            if segment is not None:
                self._current = segment
                self.announced += 1
                yield _segment_event(segment, self.watermark)
                published = bounded(last_publish_time(segment), 0, self.latest())
            if published is not None and (self.watermark is None or published - self._delay > self.watermark):
                self.watermark = published - self._delay
                yield Event(watermark_event=Event.AdvanceWatermark(new_watermark=self.watermark * 1000, tag=_TAG))


#: By endpoint. A reader that Beam has pickled finds here the service that announced its segments.
_LISTENING: dict[str, LocalStreamEvents] = {}


def _segment_event(segment: Path, watermark: int | None) -> Event:
    """Announce a segment at the watermark before it, so that the watermark waits until the segment is read."""
    element = TestStreamPayload.TimestampedElement(
        encoded_element=StrUtf8Coder().encode(str(segment)),
        timestamp=MIN_TIMESTAMP.micros if watermark is None else watermark * 1000,
    )
    return Event(element_event=Event.AddElements(elements=[element], tag=_TAG))

"""Where messages come from: an archive of files (bounded), or the embedded local stream (unbounded)."""

import concurrent.futures
import logging
import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import apache_beam as beam
import grpc
from apache_beam.coders import StrUtf8Coder
from apache_beam.portability.api import beam_interactive_api_pb2_grpc as service_api
from apache_beam.portability.api.org.apache.beam.model.pipeline.v1.beam_runner_api_pb2 import TestStreamPayload
from apache_beam.pvalue import PBegin, PCollection
from apache_beam.testing.test_stream import TestStream
from apache_beam.utils.timestamp import MIN_TIMESTAMP

from transforms.chunks import Chunk, chunked
from transforms.localstream import LocalStream, StreamError, last_publish_time, messages_of
from transforms.remote import fetched, is_remote, matching

LOGGER = logging.getLogger(__name__)

Event = TestStreamPayload.Event
#: The name of a TestStream's only output.
_TAG = "None"


def message_files(path: str | Path) -> list[str]:
    """Return the files of messages at ``path``: itself, or all ``*.avro`` below it, in order of name.

    Args:
        path: A path here, or a URL of another of Beam's file systems.

    Raises:
        StreamError, RemoteError: if there is none, or nobody answers.
    """
    if is_remote(str(path)):
        url = str(path).rstrip("/")
        found = matching(f"{url}/**.avro") or matching(url)
        if not found:
            raise StreamError(f"{path}: no such file, and no .avro file below it")
        return found
    local = Path(path)
    if local.is_file():
        return [str(local)]
    if not local.is_dir():
        raise StreamError(f"{path}: no such file or directory")
    found = [str(file) for file in sorted(local.rglob("*.avro")) if not file.name.startswith(".")]
    if not found:
        raise StreamError(f"{path}: holds no .avro file of messages; is this the stream's directory?")
    return found


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
            | "ReadFile" >> beam.ParDo(_ReadFilesFn())
        )
        return chunks


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(Chunk)
class _ReadFilesFn(beam.DoFn):
    """Reads files of messages, and logs from time to time how far it is."""

    LOG_EVERY_SECONDS = 5.0

    def __init__(self) -> None:
        self._files = self._messages = 0
        self._logged = -math.inf

    def setup(self) -> None:
        self._logged = time.monotonic()

    def process(self, path: str) -> Iterator[Chunk]:
        with fetched(path) if is_remote(path) else open(path, "rb") as file:
            for chunk in chunked(messages_of(file, path)):
                self._messages += len(chunk)
                yield chunk
        self._files += 1
        if time.monotonic() - self._logged >= self.LOG_EVERY_SECONDS:
            self._logged = time.monotonic()
            LOGGER.info("read %s messages of %s files", f"{self._messages:,}", f"{self._files:,}")


@dataclass
class ReadLocalStream(beam.PTransform[PBegin, PCollection[Chunk]]):
    """Follow a local stream on the ``BundleBasedDirectRunner``; unbounded.

    Attributes:
        endpoint: Address of the ``LocalStreamEvents`` that announces its segments.
    """

    endpoint: str

    def expand(self, pbegin: PBegin) -> PCollection[Chunk]:
        """One element for each segment, so that the runner's cost for an element is paid once for many messages."""
        chunks: PCollection[Chunk] = (
            pbegin
            | "Segments" >> TestStream(coder=StrUtf8Coder(), endpoint=self.endpoint).with_output_types(str)
            | "ReadSegment" >> beam.ParDo(_ReadFilesFn())
        )
        return chunks


class LocalStreamEvents(service_api.TestStreamServiceServicer):
    """Announces the segments of a local stream, its watermark and the clock to Beam's local runner.

    The ``BundleBasedDirectRunner`` has no live source of its own; its ``TestStream`` takes events from such a
    service. The watermark is the publish time of what has been read, less ``watermark_delay``; where the stream is
    idle it is the present, less the same, for whatever is published next is published later.

    A context manager: it listens on 127.0.0.1 from ``__enter__`` to ``__exit__``.
    """

    #: Seconds between looks at the directory, and so between clock events: the resolution of early firings.
    POLL_SECONDS = 0.1

    def __init__(self, stream: LocalStream, watermark_delay_ms: int) -> None:
        self._stream = stream
        self._current = stream.path
        self._delay = watermark_delay_ms
        self._stopping = threading.Event()
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=1))
        service_api.add_TestStreamServiceServicer_to_server(self, self._server)

    def __enter__(self) -> Self:
        self.endpoint = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._server.stop(grace=None)

    def Events(self, request: Any, context: Any) -> Iterator[Event]:  # noqa: N802 (the name in the service)
        """Stream the events; ends when the stream is closed and read, and only then.

        The runner takes the end of the events, and also an error, for the end of the input, and would fire every open
        window as complete. So what cannot be read is announced nevertheless, for the reader to fail on.
        """
        try:
            yield from self._events()
        except Exception:  # whatever it is, the job must fail and not finish
            yield _segment_event(self._current, None)
            self._stopping.wait()

    def _events(self) -> Iterator[Event]:
        clock = time.monotonic()
        watermark: int | None = None
        for segment in self._stream.follow(self.POLL_SECONDS):
            elapsed = time.monotonic() - clock
            clock += elapsed
            yield Event(processing_time_event=Event.AdvanceProcessingTime(advance_duration=int(elapsed * 1e6)))
            published = None if self._stream.simulated_clock else int(time.time() * 1000)
            if segment is not None:
                self._current = segment
                yield _segment_event(segment, watermark)
                published = last_publish_time(segment)
            if published is not None and (watermark is None or published - self._delay > watermark):
                watermark = published - self._delay
                yield Event(watermark_event=Event.AdvanceWatermark(new_watermark=watermark * 1000, tag=_TAG))


def _segment_event(segment: Path, watermark: int | None) -> Event:
    """Announce a segment at the watermark before it, so that the watermark waits until it has been read."""
    element = TestStreamPayload.TimestampedElement(
        encoded_element=StrUtf8Coder().encode(str(segment)),
        timestamp=MIN_TIMESTAMP.micros if watermark is None else watermark * 1000,
    )
    return Event(element_event=Event.AddElements(elements=[element], tag=_TAG))

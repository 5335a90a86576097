"""The source of a local stream, whose segments are read as they come."""

from collections.abc import Iterator
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.coders import StrUtf8Coder
from apache_beam.pvalue import PBegin, PCollection
from apache_beam.testing.test_stream import TestStream

from uldp.transforms.internals import Given
from uldp.transforms.io.chunks import Chunk, joined
from uldp.transforms.io.local.events import LocalStreamEvents
from uldp.transforms.io.message_files import opened, packed_messages
from uldp.transforms.io.publish_times import bounded_messages


@dataclass
class ReadLocalStream(beam.PTransform[PBegin, PCollection[Chunk]]):
    """Follow a local stream on the ``BundleBasedDirectRunner``; unbounded."""

    events: LocalStreamEvents  # what announces its segments

    def expand(self, pbegin: PBegin) -> PCollection[Chunk]:
        """Send each segment as one element, so that the runner's cost of an element is paid once for many messages."""
        chunks: PCollection[Chunk] = (
            pbegin
            | "Segments" >> TestStream(coder=StrUtf8Coder(), endpoint=self.events.endpoint).with_output_types(str)
            | "ReadSegment" >> beam.ParDo(_ReadSegmentsFn(self.events))
        )
        return chunks


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(Chunk)
class _ReadSegmentsFn(beam.DoFn):
    """Reads segments, and reports to the ``LocalStreamEvents`` that announced them, in the same process."""

    def __init__(self, events: LocalStreamEvents) -> None:
        self._events = events

    def start_bundle(self) -> None:
        self._messages: dict[str, int] = {}

    def process(self, path: str, announced: Given = beam.DoFn.TimestampParam) -> Iterator[Chunk]:
        events, watermark, messages = self._events, announced.micros // 1000, 0
        events.refuse(path, read=False)
        events.begin(path)
        if (missing := events.missing(path, watermark)) is not None:
            yield Chunk((), missing)
        else:
            with opened(path) as file:
                for packed in joined(packed_messages(file, path)):
                    chunk = Chunk(bounded_messages(packed.messages, watermark, events.latest()))
                    messages += len(chunk)
                    yield chunk
        events.refuse(path, read=True)
        self._messages[path] = messages

    def finish_bundle(self) -> None:
        """Report the whole bundle, because the runner tries a bundle again that has failed."""
        self._events.read(self._messages)

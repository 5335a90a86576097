"""What the sources of brokers have in common: a reader gives one chunk at a time, in bundles of bounded size."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Self

import apache_beam as beam
from apache_beam.coders import Coder, registry
from apache_beam.pvalue import PBegin, PCollection

from uldp.schemas.codec.packed import PackedMessages
from uldp.transforms.internals import ReadUnboundedSourceFn, Timestamp, UnboundedReader, UnboundedSource
from uldp.transforms.io.chunks import Chunk, ChunkCoder
from uldp.transforms.io.placement import key_group, wanted_key_group

#: Seconds between polls when there is no message.
POLL_SECONDS = 0.5
#: The limits of a bundle. The runner gets results and keeps the checkpoint mark only at the end of a bundle, but each
#: bundle has its cost.
_MAX_CHUNKS = 64
_MAX_SECONDS = 1.0


@dataclass(frozen=True)
class ChunkSource(UnboundedSource):
    """A source of chunks."""

    #: A number without a meaning, which changes the hash by which Flink places the reader.
    placement: int = field(default=0, kw_only=True)

    @abstractmethod
    def of_readers(self) -> Sequence[Self]:
        """Return the source of each reader."""

    def split(self, desired_num_splits: int, options: Any = None) -> Sequence[Self]:
        """Return this source alone, because each reader has a source of its own when the job begins."""
        return [self]

    def default_output_coder(self) -> Coder:
        """Return the coder of chunks."""
        return ChunkCoder()


class ChunkReader(UnboundedReader):
    """A reader whose ``advance`` sets ``_chunk``, of messages not before the watermark; see ``publish_times``."""

    _chunk = Chunk(())

    def start(self) -> bool:
        return self.advance()

    def get_current(self) -> Chunk:
        return self._chunk

    def get_current_timestamp(self) -> Timestamp:
        """Return the earliest publish time of its messages, and of those behind missing ones."""
        times = [each.before for each in self._chunk.missing]
        if len(self._chunk):
            times.append(int(PackedMessages.of(self._chunk.messages).publish_times.min()))
        return Timestamp(micros=min(times) * 1000)


def read_chunks(pbegin: PBegin, source: ChunkSource) -> PCollection[Chunk]:
    """Read chunks. Each reader's source is an element, by which Flink places it: equal ones would be on one worker."""
    read = ReadUnboundedSourceFn(POLL_SECONDS, _MAX_CHUNKS, _MAX_SECONDS)
    sources = pbegin | "CreateSources" >> beam.Create(_placed(source.of_readers()), reshuffle=False)
    chunks: PCollection[Chunk] = sources | "ReadChunks" >> beam.ParDo(read).with_output_types(Chunk)
    return chunks


def _placed(sources: Sequence[ChunkSource]) -> Iterator[ChunkSource]:
    """Give each source the first number by which Flink's hash, if it stays, spreads readers evenly over workers."""
    for reader, source in enumerate(sources):
        coder, wanted = registry.get_coder(type(source)), wanted_key_group(reader, len(sources))
        numbered = (replace(source, placement=number) for number in count())
        yield next(each for each in numbered if key_group(coder.encode(each)) == wanted)

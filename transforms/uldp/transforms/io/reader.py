"""What the sources of brokers have in common: a reader gives one chunk at a time, in bundles of bounded size."""

import apache_beam as beam
from apache_beam.coders import Coder
from apache_beam.pvalue import PBegin, PCollection

from uldp.schemas.codec.packed import PackedMessages
from uldp.transforms.internals import ReadFromUnboundedSource, Timestamp, UnboundedReader, UnboundedSource
from uldp.transforms.io.chunks import Chunk, ChunkCoder

#: Seconds between polls when there is no message.
POLL_SECONDS = 0.5
#: The limits of a bundle. The runner gets results and keeps the checkpoint mark only at the end of a bundle, but each
#: bundle has its cost.
_MAX_CHUNKS = 64
_MAX_SECONDS = 1.0


class ChunkSource(UnboundedSource):
    """A source of chunks."""

    def default_output_coder(self) -> Coder:
        """Return the coder of chunks."""
        return ChunkCoder()


class ChunkReader(UnboundedReader):
    """A reader whose ``advance`` sets ``_chunk``.

    No message in it may have a publish time before the announced watermark; see ``uldp.transforms.io.publish_times``.
    """

    _chunk = Chunk(())

    def start(self) -> bool:
        """Fetch the first chunk."""
        return self.advance()

    def get_current(self) -> Chunk:
        """Return the chunk."""
        return self._chunk

    def get_current_timestamp(self) -> Timestamp:
        """Return the earliest publish time of its messages."""
        return Timestamp(micros=int(PackedMessages.of(self._chunk.messages).publish_times.min()) * 1000)


def read_chunks(pbegin: PBegin, source: ChunkSource, *, spread: bool = True) -> PCollection[Chunk]:
    """Read the chunks of a source.

    Flink keys the splits of a source by the source, so that one worker reads all of them. So the chunks are spread over
    all workers for the steps that follow, unless ``spread`` is false.
    """
    read = ReadFromUnboundedSource(source, POLL_SECONDS, _MAX_CHUNKS, _MAX_SECONDS)
    chunks: PCollection[Chunk] = pbegin | "ReadChunks" >> read.with_output_types(Chunk)
    return chunks | "SpreadChunks" >> beam.Reshuffle() if spread else chunks

"""A topic of Kafka as a source of chunks; Beam's checkpoints alone have a position, a group's offsets show lag."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import apache_beam as beam
from apache_beam.coders import Coder
from apache_beam.pvalue import PBegin, PCollection

from uldp.transforms.internals import CheckpointMark
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.io.kafka.checkpoint import KafkaMark, KafkaMarkCoder
from uldp.transforms.io.kafka.reader import KafkaReader
from uldp.transforms.io.kafka.topic import KafkaTopic
from uldp.transforms.io.placement import KEY_GROUPS
from uldp.transforms.io.reader import ChunkSource, read_chunks


@dataclass(frozen=True)
class KafkaSource(ChunkSource):
    """A topic, or the partitions of one of its readers, read as chunks from the first message on.

    Attributes:
        delay_ms: How far out of order messages may come: one may follow a message that was published this much later.
        simulated_clock: Whether publish times come from a simulation. Then the latest publish time is the present, and
            one reader reads all partitions.
        stop_at_end: Whether to stop at the end that the topic had when reading began.
        share: A number r and the number n of all readers: a reader reads each partition whose number has the remainder
            r by n. So a partition that is added later has one reader too, and a job that resumes keeps its readers.
        readers: How many readers share the partitions at the most. Those on one worker take turns, and each may wait
            for a chunk; where there is none, a worker reads nothing.
    """

    topic: KafkaTopic
    delay_ms: int = 0
    simulated_clock: bool = False
    stop_at_end: bool = False
    share: tuple[int, int] = (0, 1)
    readers: int = 16

    def of_readers(self) -> Sequence["KafkaSource"]:
        """Ask a broker for the partitions, and divide them among readers; EndpointError as ``KafkaTopic.check``."""
        if self.share[1] > 1 or self.simulated_clock:
            return [self]
        n = min(self.readers, len(self.topic.check()), KEY_GROUPS)
        return [replace(self, share=(reader, n)) for reader in range(n)]

    def create_reader(self, options: Any, checkpoint_mark: CheckpointMark | None) -> KafkaReader:
        """Create a reader at the first message or at a mark. This costs nothing: some runners do it for each bundle."""
        mark = checkpoint_mark if isinstance(checkpoint_mark, KafkaMark) else KafkaMark({}, self.topic)
        return KafkaReader(self, {partition: replace(at) for partition, at in mark.positions.items()}, mark.known_until)

    def get_checkpoint_mark_coder(self) -> Coder:
        return KafkaMarkCoder(self.topic)


@dataclass
class ReadFromKafka(beam.PTransform[PBegin, PCollection[Chunk]]):
    """Read the messages of a topic, in chunks. Building the graph asks a broker for the partitions."""

    source: KafkaSource

    def expand(self, pbegin: PBegin) -> PCollection[Chunk]:
        """Read the chunks."""
        return read_chunks(pbegin, self.source)

"""A topic of Kafka as an endpoint."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.schemas.records import Message
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.io.endpoints import Access, Endpoint, Following
from uldp.transforms.io.json_rows import Keyed
from uldp.transforms.io.kafka.producer import KafkaProducer, WriteToKafka
from uldp.transforms.io.kafka.source import KafkaSource, ReadFromKafka
from uldp.transforms.io.kafka.topic import KafkaTopic


def parse(uri: str, config: Path | None = None) -> "KafkaEndpoint":
    """Read ``kafka:HOST:PORT[,HOST:PORT...]/TOPIC``, with the config of ``KafkaTopic``; EndpointError otherwise."""
    return KafkaEndpoint(KafkaTopic.parse(uri, config))


@dataclass(frozen=True)
class KafkaEndpoint(Endpoint):
    """A topic that is read from its beginning, and written to."""

    topic: KafkaTopic

    def __str__(self) -> str:
        return str(self.topic)

    def check(self, access: Access) -> None:
        self.topic.check(access)

    def identity(self) -> str:
        return self.topic.identity()

    def read_whole(self, pipeline: beam.Pipeline) -> PCollection[Chunk]:
        self.check("READ")
        chunks: PCollection[Chunk] = pipeline | "ReadKafka" >> ReadFromKafka(KafkaSource(self.topic, stop_at_end=True))
        # Reading ends where the topic ended when it began: no window needs to fire before.
        chunks.is_bounded = True
        return chunks

    def read(self, pipeline: beam.Pipeline, following: Following) -> PCollection[Message | Chunk]:
        clock, readers = following.simulated_clock, max(following.slots, KafkaSource.readers)
        source = KafkaSource(self.topic, following.delay_ms, simulated_clock=clock, readers=readers)
        followed: PCollection[Message | Chunk] = pipeline | "ReadKafka" >> ReadFromKafka(source)
        return followed

    def publish(self, records: PCollection[Keyed], *, native: bool) -> None:
        _ = records | "WriteToKafka" >> WriteToKafka(self.topic)

    @contextmanager
    def writing(self, *, simulated_clock: bool) -> Iterator[KafkaProducer]:
        self.check("WRITE")
        writer = KafkaProducer(self.topic)
        yield writer
        writer.close()

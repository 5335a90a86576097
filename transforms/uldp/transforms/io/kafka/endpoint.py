"""A topic of Kafka as an endpoint."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.records import Message
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.io.endpoints import Access, Endpoint, Following, records_of
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
    def writing(self, *, simulated_clock: bool) -> Iterator["TopicWriter"]:
        self.check("WRITE")
        writer = TopicWriter(KafkaProducer(self.topic))
        yield writer
        writer.close()


@dataclass(frozen=True)
class TopicWriter:
    """Appends messages to a topic, each with its publish time as the time that its sender chose."""

    producer: KafkaProducer
    simulated_clock: bool = True

    def append(self, messages: Sequence[Message] | EncodedMessages) -> None:
        """Hand messages over; ``close`` raises if the brokers refuse any."""
        for message in records_of(messages):
            headers = list(message.attributes.items())
            self.producer.send(message.data, headers=headers, timestamp=message.publish_time)

    def now(self) -> int:
        """Return this machine's time."""
        return int(time.time() * 1000)

    def flush(self) -> None:
        """Wait until the brokers have everything; EndpointError if they refused anything."""
        self.producer.flush()

    def give_up(self, seconds: float) -> None:
        """Wait for brokers no longer than so many seconds from now."""
        self.producer.give_up(seconds)

    def close(self) -> None:
        """Do as ``flush``, unless it gave up."""
        if not self.producer.gives_up:
            self.flush()

"""Keys and values as records of a Kafka topic."""

from dataclasses import dataclass

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.transforms.io.kafka.producer import KafkaProducer
from uldp.transforms.io.kafka.topic import KafkaTopic


@dataclass
class WriteToKafka(beam.PTransform[PCollection[tuple[bytes, bytes]], None]):
    """Write keys and values to a topic; a bundle ends when the brokers have all its records."""

    topic: KafkaTopic

    def expand(self, records: PCollection[tuple[bytes, bytes]]) -> None:
        """Write in one step."""
        _ = records | "WriteRecords" >> beam.ParDo(_WriteFn(self.topic))


class _WriteFn(beam.DoFn):
    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic

    def setup(self) -> None:
        self._producer = KafkaProducer(self._topic)

    def process(self, record: tuple[bytes, bytes]) -> None:
        key, value = record
        self._producer.send(value, key)

    def finish_bundle(self) -> None:
        self._producer.flush()

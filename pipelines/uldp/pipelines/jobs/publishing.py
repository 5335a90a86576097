"""Results as messages of a broker: each estimate as JSON, each rejected report as an Avro record with its reason."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.pipelines.results.read import to_json
from uldp.schemas.framing import encode_object
from uldp.schemas.records import Estimate, Rejected, iso
from uldp.transforms.io.kafka.source import WriteToKafka
from uldp.transforms.io.kafka.topic import KafkaTopic
from uldp.transforms.io.pubsub.source import PublishTo
from uldp.transforms.io.pubsub.subscription import Topic

#: Where a broker's messages can be published.
BrokerTopic = KafkaTopic | Topic
#: The key by which a message replaces another, and its body.
Keyed = tuple[bytes, bytes]


def parse_topic(text: str, kafka_config: Path | None = None) -> BrokerTopic:
    """Read ``kafka:HOST:PORT/TOPIC`` or ``pubsub:projects/P/topics/T``; see ``KafkaTopic`` for the config.

    Raises:
        ValueError: if it is neither.
    """
    return Topic.parse(text) if text.startswith("pubsub:") else KafkaTopic.parse(text, kafka_config)


def check_topic(topic: BrokerTopic) -> None:
    """Ask whether a topic is there, and, of Kafka, whether it can be written to.

    Raises:
        ValueError: if not; says what to do.
    """
    if isinstance(topic, KafkaTopic):
        topic.check("WRITE")
    else:
        topic.check()


def keyed_estimate(estimate: Estimate) -> Keyed:
    """Return an estimate as a line of ``uldp show --json``. All panes of a window by one estimator have one key."""
    support = estimate.support
    window = f"{iso(support.window_start)}/{iso(support.window_end)}"
    key = f"{support.collection}/{support.version}/{window}/{estimate.estimator}"
    return key.encode(), json.dumps(to_json(estimate)).encode()


def keyed_rejected(rejected: Rejected) -> Keyed:
    """Return a rejected report as ``rejected.avsc``, framed, under the digest of what it holds."""
    data = encode_object("rejected", rejected.to_avro())
    return hashlib.sha256(data).hexdigest()[:32].encode(), data


@dataclass
class PublishResults(beam.PTransform[PCollection[Any], None]):
    """Publish records of one kind. What a bundle that is tried again repeats has the same key and body.

    Attributes:
        topic: Where to.
        keyed: Returns the key and the body of a record.
        native: Whether the runner publishes to Pub/Sub with what it has itself.
    """

    topic: BrokerTopic
    keyed: Callable[[Any], Keyed]
    native: bool = False

    def expand(self, records: PCollection[Any]) -> None:
        """A key is Kafka's own, and an attribute in Pub/Sub."""
        pairs = records | "KeyRecords" >> beam.Map(self.keyed).with_output_types(Keyed)
        if isinstance(self.topic, KafkaTopic):
            _ = pairs | "WriteToKafka" >> WriteToKafka(self.topic)
        else:
            attributed = beam.MapTuple(_attributed).with_output_types(tuple[bytes, dict[str, str]])
            bodies = pairs | "KeyAsAttribute" >> attributed
            _ = bodies | "PublishTo" >> PublishTo(self.topic, self.native)


def _attributed(key: bytes, body: bytes) -> tuple[bytes, dict[str, str]]:
    return body, {"key": key.decode()}

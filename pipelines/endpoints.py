"""What ``--from`` names: a directory or file here, or the stream of a broker."""

from pathlib import Path

import apache_beam as beam
from apache_beam.pvalue import PCollection

from schemas.records import Message
from transforms.kafka import KafkaSource, ReadFromKafka
from transforms.kafkatopic import KafkaTopic
from transforms.pubsub import PubSubSource, ReadSubscription
from transforms.pubsubname import Subscription
from transforms.sources import ReadArchive, message_files

#: A stream that a broker keeps.
BrokerStream = KafkaTopic | Subscription
Source = Path | BrokerStream


class EndpointError(ValueError):
    """A source that cannot be used so; the message says what can."""


def parse_source(text: str) -> Source:
    """Read ``kafka:HOST:PORT/TOPIC``, ``pubsub:projects/P/subscriptions/S``, or a path.

    Raises:
        ValueError: if it begins like one of these, and is none.
    """
    if text.startswith("kafka:"):
        return KafkaTopic.parse(text)
    if text.startswith("pubsub:"):
        return Subscription.parse(text)
    return Path(text)


def check_whole(source: Source) -> None:
    """Look whether all of a source can be read.

    Raises:
        ValueError: if it is not there, or has no end.
    """
    if isinstance(source, Path):
        message_files(source)
    elif isinstance(source, Subscription):
        raise EndpointError(f"{source}: a subscription has no end to read to; follow it with uldp stream")
    else:
        source.check()


def read_whole(pipeline: beam.Pipeline, source: Source) -> PCollection[Message]:
    """Read all that is there now, which is bounded."""
    if isinstance(source, Path):
        archived: PCollection[Message] = pipeline | "ReadArchive" >> ReadArchive(source)
        return archived
    assert isinstance(source, KafkaTopic)
    messages: PCollection[Message] = pipeline | "ReadKafka" >> ReadFromKafka(KafkaSource(source, stop_at_end=True))
    # It ends where the topic ended when reading began: no window needs to fire before.
    messages.is_bounded = True
    return messages


def read_stream(pipeline: beam.Pipeline, source: BrokerStream, delay_ms: int, *, native: bool) -> PCollection[Message]:
    """Read what is there and all that comes; ``native`` by the runner's own source of Pub/Sub."""
    if isinstance(source, KafkaTopic):
        followed: PCollection[Message] = pipeline | "ReadKafka" >> ReadFromKafka(KafkaSource(source, delay_ms))
        return followed
    lent: PCollection[Message] = pipeline | "ReadPubSub" >> ReadSubscription(PubSubSource(source, delay_ms), native)
    return lent

"""What ``--from`` names: a directory or file, here or elsewhere, or the stream of a broker."""

import secrets
from dataclasses import dataclass
from pathlib import Path

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.schemas.records import Message
from uldp.transforms.io.archive import ReadArchive, archive_digest
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.io.kafka.source import KafkaSource, ReadFromKafka
from uldp.transforms.io.kafka.topic import KafkaTopic
from uldp.transforms.io.pubsub.source import PubSubSource, ReadSubscription
from uldp.transforms.io.pubsub.subscription import Subscription
from uldp.transforms.io.remote import is_remote

#: A stream that a broker keeps.
BrokerStream = KafkaTopic | Subscription


@dataclass(frozen=True)
class RemoteArchive:
    """A directory or file of messages on another of Beam's file systems."""

    url: str

    def __str__(self) -> str:
        return self.url


Source = Path | RemoteArchive | BrokerStream


class EndpointError(ValueError):
    """A source that cannot be used so; the message says what can."""


def parse_source(text: str, kafka_config: Path | None = None) -> Source:
    """Read ``kafka:HOST:PORT/TOPIC``, ``pubsub:projects/P/subscriptions/S``, a URL like ``gs://BUCKET/X``, or a path.

    Args:
        text: What to read.
        kafka_config: The file of settings of Kafka's client; see ``KafkaTopic``.

    Raises:
        ValueError: if it begins like one of these, and is none.
    """
    if text.startswith("kafka:"):
        return KafkaTopic.parse(text, kafka_config)
    if text.startswith("pubsub:"):
        return Subscription.parse(text)
    return RemoteArchive(text) if is_remote(text) else Path(text)


def named(source: Source) -> str:
    """Return the name of a source that is the same in each directory from which a user names it."""
    return str(source.absolute()) if isinstance(source, Path) else str(source)


def refuse_overlap(source: Source, out: str) -> None:
    """Refuse results in the directory that is read, or one inside of the other: the next job would read them too.

    Raises:
        EndpointError: if it is so.
    """
    if isinstance(source, Path) and not is_remote(out):
        one, other = source.resolve(), Path(out).resolve()
        overlap = one == other or one in other.parents or other in one.parents
    elif isinstance(source, RemoteArchive) and is_remote(out):
        one_url, other_url = (f"{url.rstrip('/')}/" for url in (source.url, out))
        overlap = one_url.startswith(other_url) or other_url.startswith(one_url)
    else:
        overlap = False
    if overlap:
        raise EndpointError(f"--from {source} and --to {out} overlap; choose a --to apart from what is read")


def content_of_whole(source: Source) -> str:
    """Return a name for all that is there now: other content, another name.

    A topic is read as far as it goes at the time, and in other pieces each time, so that no two readings are the same.

    Raises:
        ValueError: if the source is not there.
    """
    return archive_digest(str(source)) if isinstance(source, Path | RemoteArchive) else secrets.token_hex(16)


def read_whole(pipeline: beam.Pipeline, source: Source) -> PCollection[Chunk]:
    """Read all that is there now, which is bounded.

    Raises:
        ValueError: if the source is not there, or has no end.
    """
    if isinstance(source, Path | RemoteArchive):
        archived: PCollection[Chunk] = pipeline | "ReadArchive" >> ReadArchive(str(source))
        return archived
    if isinstance(source, Subscription):
        raise EndpointError(f"{source}: a subscription has no end to read to; follow it with uldp stream")
    source.check()
    chunks: PCollection[Chunk] = pipeline | "ReadKafka" >> ReadFromKafka(KafkaSource(source, stop_at_end=True))
    # It ends where the topic ended when reading began: no window needs to fire before.
    chunks.is_bounded = True
    return chunks


def read_stream(
    pipeline: beam.Pipeline, source: BrokerStream, delay_ms: int, *, simulated_clock: bool, native: bool
) -> PCollection[Message | Chunk]:
    """Read what is there and all that comes.

    Args:
        pipeline: Where to.
        source: What from.
        delay_ms: How long after a message one may come that was published before it.
        simulated_clock: Whether publish times are a simulation's, so that an idle stream says nothing about the time.
        native: Whether Pub/Sub is read by what the runner has itself.
    """
    if isinstance(source, KafkaTopic):
        kafka = KafkaSource(source, delay_ms, simulated_clock=simulated_clock)
        followed: PCollection[Message | Chunk] = pipeline | "ReadKafka" >> ReadFromKafka(kafka)
        return followed
    pubsub = PubSubSource(source, delay_ms, simulated_clock=simulated_clock)
    lent: PCollection[Message | Chunk] = pipeline | "ReadPubSub" >> ReadSubscription(pubsub, native)
    return lent

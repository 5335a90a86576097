"""The reader on librdkafka, against the broker that librdkafka has for tests: it removes what is beyond 5 MB."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import apache_beam as beam
import pytest

from tests import build
from tests.build import START
from tests.fakes.kafka import reader_of
from uldp.pipelines.jobs.kept_specs import keep_specs
from uldp.pipelines.jobs.progress import summary
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.errors import EndpointError
from uldp.schemas.records import Message
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.io.kafka.consumers import CONSUMERS
from uldp.transforms.io.kafka.endpoint import TopicWriter
from uldp.transforms.io.kafka.producer import KafkaProducer
from uldp.transforms.io.kafka.reader import KafkaReader
from uldp.transforms.io.kafka.source import KafkaSource
from uldp.transforms.io.kafka.topic import KafkaTopic
from uldp.transforms.io.results.write import WriteResults

kafka = pytest.importorskip("confluent_kafka", reason="pip install '.[kafka]'")

SPEC = build.spec(window={"size": "1h", "allowed_lateness": "1h"}, limits={"max_age": "3h"})
QUIET = {"log_level": 0}


@pytest.fixture
def topic() -> Iterator[KafkaTopic]:
    mock = kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "replaced", **QUIET})
    brokers = mock.list_topics(timeout=10).brokers.values()
    yield KafkaTopic(",".join(f"{each.host}:{each.port}" for each in brokers), "reports")
    CONSUMERS.close()


def send(topic: KafkaTopic, first: int, end: int, padding: int = 0) -> None:
    """Send reports of ``START``, each as a batch of its own, since the broker removes whole batches."""
    settings = {"bootstrap.servers": topic.servers, "batch.num.messages": 1, **QUIET}
    producer = kafka.Producer(settings)
    for number in range(first, end):
        body = build.report(number, number % 5, key=SPEC.key).encode()
        producer.produce(topic.name, body, partition=0, headers={"padding": bytes(padding)}, timestamp=START)
    assert producer.flush(30) == 0


def first_of(topic: KafkaTopic) -> int:
    client = kafka.Consumer({"bootstrap.servers": topic.servers, "group.id": "test", **QUIET})
    first, _ = client.get_watermark_offsets(kafka.TopicPartition(topic.name, 0), 10, cached=False)
    client.close()
    return int(first)


def read_until(reader: KafkaReader, chunks: list[Chunk], condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        if reader.advance():
            chunks.append(reader.get_current())


def offsets(chunks: list[Chunk]) -> list[int]:
    """The offsets of messages of the first partition."""
    return [int(message.source.split("/")[2]) for chunk in chunks for message in chunk.messages]


@contextmanager
def paused(source: KafkaSource) -> Iterator[None]:
    """Keep the connected client from what is sent meanwhile: it would fetch some, in the background, before it is gone.

    The client has no message in memory afterwards, and goes on behind the last that a reader took.
    """
    partition = kafka.TopicPartition(source.topic.name, 0)
    with CONSUMERS.acquire(source, source.topic) as connected:
        connected.client.pause([partition])
    yield
    with CONSUMERS.acquire(source, source.topic) as connected:
        connected.client.resume([partition])


@pytest.mark.parametrize("resumed", [False, True])
def test_a_topic_that_overtakes_the_job_is_accounted(topic: KafkaTopic, resumed: bool, tmp_path: Path) -> None:
    send(topic, 0, 200)
    source, chunks = KafkaSource(topic), list[Chunk]()
    reader = reader_of(source)
    read_until(reader, chunks, lambda: offsets(chunks) == list(range(200)))
    if resumed:
        CONSUMERS.close()
        coder = source.get_checkpoint_mark_coder()
        reader = reader_of(source, mark=coder.decode(coder.encode(reader.get_checkpoint_mark())))
    with nullcontext() if resumed else paused(source):
        send(topic, 200, 410, padding=45_000)
    first = first_of(topic)
    assert 201 < first < 410
    read_until(reader, chunks, lambda: offsets(chunks)[-1] == 409)
    reader.close()
    assert offsets(chunks) == [*range(200), *range(first, 410)]
    found = [(each.source, each.first, each.last) for chunk in chunks for each in chunk.missing]
    assert found == [("reports/0", 200, first - 1)]
    lost = first - 200
    keep_specs(str(tmp_path), [SPEC])
    with beam.Pipeline("FnApiRunner") as pipeline:
        _ = pipeline | beam.Create(chunks) | Aggregate([SPEC]) | WriteResults(str(tmp_path))
    assert f"received = {410 - lost} counted + 0 duplicate + 0 late + 0 rejected; {lost} messages missing" in summary(
        tmp_path
    )
    panes = newest(ResultsFolder(tmp_path).panes())
    assert {(pane.accounting.missing, pane.flags) for pane in panes if pane.n} == {(lost, ("missing_reports",))}


def test_a_producer_gives_up_when_no_broker_answers() -> None:
    with socket.socket() as closed:  # bound, and not listening: each connection is refused
        closed.bind(("127.0.0.1", 0))
        writer = TopicWriter(KafkaProducer(KafkaTopic(f"127.0.0.1:{closed.getsockname()[1]}", "reports")))
        writer.append([Message(b"value", 0)] * 100)
        began = time.monotonic()
        writer.give_up(0.5)
        with pytest.raises(EndpointError, match="reports: "):
            writer.flush()
        writer.close()
    assert 0.5 <= time.monotonic() - began < 30  # and not five minutes

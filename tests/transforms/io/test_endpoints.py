"""Endpoints: which URI names which, and what each of them refuses. Brokers themselves are in tests/cluster."""

from pathlib import Path

import apache_beam as beam
import pytest

from tests.fakes.kafka import Broker
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.errors import EndpointError
from uldp.schemas.records import SENDER, Message
from uldp.transforms.io.endpoints import Endpoint, Following, parse_endpoint
from uldp.transforms.io.files import FilesEndpoint
from uldp.transforms.io.kafka.endpoint import KafkaEndpoint
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError, read_messages
from uldp.transforms.io.pubsub.endpoint import SubscriptionEndpoint, TopicEndpoint

TOPIC, SUBSCRIPTION = "pubsub:projects/project/topics/reports", "pubsub:projects/project/subscriptions/reports"
KAFKA = "kafka:broker:9092/reports"
MESSAGES = [Message(b"one", 5_000, {SENDER: "b"}), Message(b"two", 6_000)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("stream", FilesEndpoint),
        ("archive/2026.avro", FilesEndpoint),
        ("gs://bucket/archive", FilesEndpoint),
        (KAFKA, KafkaEndpoint),
        ("kafka:one:9092,two:9093/reports", KafkaEndpoint),
        (SUBSCRIPTION, SubscriptionEndpoint),
        (TOPIC, TopicEndpoint),
    ],
)
def test_an_endpoint_is_known_by_how_its_uri_begins(text: str, kind: type[Endpoint]) -> None:
    endpoint = parse_endpoint(text)
    assert isinstance(endpoint, kind)
    assert str(endpoint) == text


@pytest.mark.parametrize(
    ("text", "refusal"),
    [(SUBSCRIPTION, "has no end, so .*; follow it with uldp stream"), (TOPIC, "read one of its subscriptions")],
)
def test_what_has_no_end_is_not_read_whole(text: str, refusal: str) -> None:
    with pytest.raises(EndpointError, match=refusal):
        parse_endpoint(text).read_whole(beam.Pipeline("FnApiRunner"))


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("archive", "cannot be followed; count its messages with uldp backfill"),
        (TOPIC, "read one of its subscriptions"),
    ],
)
def test_what_does_not_go_on_is_not_followed(text: str, refusal: str) -> None:
    with pytest.raises(EndpointError, match=refusal):
        parse_endpoint(text).read(beam.Pipeline("FnApiRunner"), Following(0))


@pytest.mark.parametrize(
    ("text", "access", "refusal"),
    [
        ("estimates", "WRITE", "not a topic; write kafka:HOST:PORT/TOPIC or pubsub:"),
        (SUBSCRIPTION, "WRITE", "write to its topic"),
        (TOPIC, "READ", "read one of its subscriptions"),
    ],
)
def test_access_that_an_endpoint_does_not_give_is_refused(text: str, access: str, refusal: str) -> None:
    with pytest.raises(EndpointError, match=refusal):
        parse_endpoint(text).check(access)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["archive", SUBSCRIPTION])
def test_what_takes_no_records_of_a_pipeline_refuses_them(text: str) -> None:
    records = beam.Pipeline("FnApiRunner") | beam.Create([(b"key", b"body")])
    with pytest.raises(EndpointError, match="takes no records"):
        parse_endpoint(text).publish(records, native=False)


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("gs://bucket/stream", "not a directory on this machine; name one, or a topic"),
        (SUBSCRIPTION, "cannot be written to; name a directory on this machine, or a topic"),
        (TOPIC, r"Pub/Sub sets publish times itself; add \?timestamp_attribute=NAME here"),
    ],
)
def test_what_cannot_take_a_simulation_refuses_it(text: str, refusal: str) -> None:
    with pytest.raises(EndpointError, match=refusal), parse_endpoint(text).writing(simulated_clock=True):
        pass


@pytest.mark.parametrize("simulated", [False, True])
def test_a_new_local_stream_is_closed_and_one_that_is_there_stays_open(simulated: bool, tmp_path: Path) -> None:
    endpoint = parse_endpoint(str(tmp_path / "stream"))
    with endpoint.writing(simulated_clock=simulated) as stream:
        assert stream.simulated_clock == simulated
        stream.append(EncodedMessages.of(MESSAGES))
    made = LocalStream.open(tmp_path / "stream")
    assert made.closed
    assert [(message.data, message.attributes) for message in read_messages(made.segments()[0])] == [
        (message.data, message.attributes) for message in MESSAGES
    ]
    there = LocalStream.create(tmp_path / "there")
    with parse_endpoint(str(there.path)).writing(simulated_clock=False) as stream:
        stream.append(MESSAGES)
    assert not there.closed
    with pytest.raises(StreamError, match="not an empty directory"), endpoint.writing(simulated_clock=True):
        pass


@pytest.mark.parametrize("messages", [MESSAGES, EncodedMessages.of(MESSAGES)], ids=["messages", "encoded"])
def test_a_topic_of_kafka_takes_messages_with_their_times(broker: Broker, messages: EncodedMessages) -> None:
    with parse_endpoint(KAFKA).writing(simulated_clock=True) as topic:
        topic.append(messages)
    assert [value for _, _, value in broker.written] == [b"one", b"two"]
    assert broker.options == [{"headers": [(SENDER, "b")], "timestamp": 5_000}, {"headers": [], "timestamp": 6_000}]

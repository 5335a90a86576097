"""Settings of Pub/Sub in a URI: where they arrive, and the ones that are refused."""

import sys
from types import SimpleNamespace
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.portability.api import beam_runner_api_pb2

from tests.fakes.pubsub import Client, Requests
from uldp.schemas.errors import EndpointError
from uldp.schemas.records import Message
from uldp.transforms.io.endpoints import Following, parse_endpoint
from uldp.transforms.io.pubsub.client import publish_time
from uldp.transforms.io.pubsub.endpoint import SubscriptionEndpoint, TopicEndpoint
from uldp.transforms.io.pubsub.source import PubSubSource, ReadSubscription
from uldp.transforms.io.pubsub.subscription import Subscription, Topic

NAME, TOPIC_NAME = "pubsub:projects/project/subscriptions/reports", "pubsub:projects/project/topics/reports"
SUBSCRIPTION, TOPIC = Subscription("project", "reports"), Topic("project", "reports")


@pytest.mark.parametrize(
    ("uri", "endpoint"),
    [
        (NAME, SubscriptionEndpoint(SUBSCRIPTION)),
        (f"{NAME}?pullers=4", SubscriptionEndpoint(SUBSCRIPTION, pullers=4)),
        (f"{NAME}?timestamp_attribute=sent%26at&id_label=a+b", SubscriptionEndpoint(SUBSCRIPTION, "sent&at", "a b")),
        (f"{NAME}?timestamp_attribute=%2Ftopics%2F", SubscriptionEndpoint(SUBSCRIPTION, "/topics/")),
        (f"{TOPIC_NAME}?timestamp_attribute=sent_at", TopicEndpoint(TOPIC, "sent_at")),
    ],
)
def test_settings_are_read_and_written(uri: str, endpoint: object) -> None:
    assert parse_endpoint(uri) == endpoint
    assert str(endpoint) == uri


@pytest.mark.parametrize(
    ("uri", "refusal"),
    [
        (f"{NAME}?", "is not NAME=VALUE&...; known settings: "),
        (f"{NAME}?pullers", "is not NAME=VALUE&...; known settings: "),
        (f"{NAME}?pullers=2&", "is not NAME=VALUE&...; known settings: "),
        (f"{NAME}?id_label=%ff", "is not NAME=VALUE&...; known settings: "),
        (f"{NAME}?puller=2", "unknown setting 'puller'; known settings: id_label, pullers, timestamp_attribute$"),
        (f"{TOPIC_NAME}?pullers=2", "unknown setting 'pullers'; known settings: timestamp_attribute$"),
        (f"{NAME}?pullers=2&pullers=3", "pullers comes twice; keep one"),
        (f"{NAME}?id_label=", "id_label has no value; write id_label=VALUE, or leave it out"),
        *((f"{NAME}?pullers={n}", "write a number from 1 to 100") for n in ("0", "101", "-1", "two", "1" * 99)),
        (f"{NAME}?timestamp_attribute=google", "no attribute can have this name"),
        (f"{TOPIC_NAME}?timestamp_attribute={'a' * 257}", "no attribute can have this name"),
        (f"{NAME}#pullers=2", "not one of Pub/Sub's subscriptions"),
    ],
)
def test_other_settings_are_refused(uri: str, refusal: str) -> None:
    with pytest.raises(EndpointError, match=refusal) as raised:
        parse_endpoint(uri)
    assert "\n" not in str(raised.value)


def test_settings_reach_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[ReadSubscription] = []

    def expand(reading: ReadSubscription, begin: Any) -> Any:
        read.append(reading)
        return begin | beam.Create([1])

    monkeypatch.setattr(ReadSubscription, "expand", expand)
    pipeline = beam.Pipeline("FnApiRunner")
    parse_endpoint(f"{NAME}?timestamp_attribute=t&pullers=7").read(pipeline, Following(5, simulated_clock=True))
    assert [(each.source, each.native, each.id_label) for each in read] == [
        (PubSubSource(SUBSCRIPTION, 5, "t", simulated_clock=True, pullers=7), False, None)
    ]


def test_dataflow_reads_with_the_settings_that_it_has() -> None:
    pipeline = beam.Pipeline("FnApiRunner")
    parse_endpoint(f"{NAME}?timestamp_attribute=t&id_label=i").read(pipeline, Following(0, native=True))
    (spec,) = (
        transform.spec
        for transform in pipeline.to_runner_api().components.transforms.values()
        if "pubsub_read" in transform.spec.urn
    )
    payload = beam_runner_api_pb2.PubSubReadPayload.FromString(spec.payload)
    assert (payload.timestamp_attribute, payload.id_attribute) == ("t", "i")


@pytest.mark.parametrize(
    ("setting", "following", "refusal"),
    [
        ("id_label=id", Following(0), "only Dataflow uses id_label; leave it out"),
        ("pullers=2", Following(0, native=True), "Dataflow chooses the number of its readers itself"),
        ("pullers=2", Following(0, simulated_clock=True), "one reader pulls all messages of a simulation"),
    ],
)
def test_a_setting_that_the_job_would_not_use_is_refused(setting: str, following: Following, refusal: str) -> None:
    with pytest.raises(EndpointError, match=refusal):
        parse_endpoint(f"{NAME}?{setting}").check_following(following)


@pytest.mark.parametrize("simulated", [False, True])
def test_an_attribute_holds_the_publish_times(client: Client, monkeypatch: pytest.MonkeyPatch, simulated: bool) -> None:
    requests = Requests()
    monkeypatch.setitem(sys.modules, "google.pubsub_v1", SimpleNamespace(PublisherClient=requests))
    client.answers = [None, SimpleNamespace(permissions=["pubsub.topics.publish"])]
    messages = [Message(b"one", 5_000, {"a": "b", "t": "1"}), Message(b"two", 1_767_258_000_500)]
    with parse_endpoint(f"{TOPIC_NAME}?timestamp_attribute=t").writing(simulated_clock=simulated) as topic:
        assert topic.simulated_clock
        topic.append(messages)
    ((_, request),) = requests.made
    sent: list[dict[str, Any]] = request["messages"]
    assert [each["attributes"] for each in sent] == [{"a": "b", "t": "5000"}, {"t": "1767258000500"}]
    assert [publish_time(each["attributes"]["t"], 0) for each in sent] == [each.publish_time for each in messages]

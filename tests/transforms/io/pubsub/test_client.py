"""What is asked of Pub/Sub's client library, and what is made of its answers."""

import sys
from types import SimpleNamespace

import grpc
import pytest

from tests.fakes.pubsub import NOW, SUBSCRIPTION, TOPIC, Answer, Client, Failure, Requests, received
from uldp.schemas.records import NO_ATTRIBUTES, SENDER, Message
from uldp.transforms.io.chunks import ChunkSize
from uldp.transforms.io.pubsub.checkpoint import Unavailable
from uldp.transforms.io.pubsub.client import MESSAGES_PER_PULL, Publisher, Puller, publish_time


def test_a_message_is_made_of_what_is_received(client: Client) -> None:
    client.answers = [received(NOW + 1, b"body", key="value", **{SENDER: "gateway"}), received(NOW + 1)]
    puller = Puller(SUBSCRIPTION)
    assert puller.pull() == (["ack"], [Message(b"body", NOW + 1, {SENDER: "gateway"}, "reports:17")])
    _, (bare,) = puller.pull()
    assert bare.attributes is NO_ATTRIBUTES


def test_fewer_messages_are_asked_for_where_they_are_large(client: Client) -> None:
    client.answers = [received(NOW, bytes(size)) for size in (0, 28_000, 9 * ChunkSize.BYTES)] + [
        Answer(received_messages=[])
    ] * 2
    puller = Puller(SUBSCRIPTION)
    for _ in range(5):
        puller.pull()
    assert [request["max_messages"] for _, request in client.requests][1:] == [MESSAGES_PER_PULL, 9, 1, 1]


def test_an_attribute_may_hold_the_publish_time(client: Client) -> None:
    client.answers = [received(NOW, time="5"), received(NOW, time="soon"), received(NOW)]
    puller = Puller(SUBSCRIPTION, "time")
    assert [puller.pull()[1][0].publish_time for _ in range(3)] == [5, NOW, NOW]


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("1767258000500", 1767258000500),
        ("221845391999999", 221845391999999),
        ("221845392000000", -7),
        ("2026-01-01T09:00:00Z", 1767258000000),
        ("2026-01-01T10:00:00.123456+01:00", 1767258000123),
        (None, -7),
        ("1.5", -7),
        ("2026-01-01T09:00:00", -7),
        ("1969-12-31T23:59:59Z", -7),
        ("0001-01-01T00:00:00+23:59", -7),
        ("²", -7),
        ("9" * 5000, -7),
    ],
)
def test_publish_times_that_are_none_are_not_taken(value: str | None, time: int) -> None:
    assert publish_time(value, -7) == time


def test_a_wait_without_an_answer_is_followed_by_a_question(client: Client) -> None:
    client.answers = [Failure(grpc.StatusCode.DEADLINE_EXCEEDED), Answer(received_messages=[])]
    assert Puller(SUBSCRIPTION).pull() == ([], [])
    assert [request["return_immediately"] for _, request in client.requests] == [False, True]


@pytest.mark.parametrize(
    "answers",
    [
        [Failure(grpc.StatusCode.UNAVAILABLE)],
        [Failure(grpc.StatusCode.DEADLINE_EXCEEDED), Failure(grpc.StatusCode.DEADLINE_EXCEEDED)],
    ],
)
def test_no_answer_is_not_taken_for_an_empty_one(client: Client, answers: list[Exception]) -> None:
    client.answers = [*answers]
    with pytest.raises(Unavailable):
        Puller(SUBSCRIPTION).pull()


@pytest.mark.parametrize("gives_up", [False, True])
def test_a_publisher_that_gives_up_sends_nothing_at_its_end(
    gives_up: bool, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = Requests()
    monkeypatch.setitem(sys.modules, "google.pubsub_v1", SimpleNamespace(PublisherClient=requests))
    writer = Publisher(TOPIC)
    writer.append([Message(b"value", 0)])
    if gives_up:
        writer.give_up(10)
    writer.close()
    assert len(requests.made) == (0 if gives_up else 1)


def test_a_publisher_makes_few_requests(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = Requests()
    monkeypatch.setitem(sys.modules, "google.pubsub_v1", SimpleNamespace(PublisherClient=requests))
    publisher = Publisher(TOPIC)
    publisher.flush()
    small: list[tuple[bytes, dict[str, str]]] = [(b"%d" % i, {"topic": "t"}) for i in range(2500)]
    large: list[tuple[bytes, dict[str, str]]] = [(bytes(1_000_000), {"a": "b" * 1_000_000})] * 4
    for data, attributes in small + large:
        publisher.publish(data, attributes)
    publisher.flush()
    publisher.flush()
    sizes = [len(request["messages"]) for _, request in requests.made]
    assert sizes == [1000, 1000, 502, 2]
    assert {request["topic"] for _, request in requests.made} == {TOPIC.path}
    assert [(m["data"], m["attributes"]) for _, request in requests.made for m in request["messages"]] == small + large

"""What Pub/Sub's subscriptions and topics are called, and what is said where they cannot be used."""

import sys
from types import SimpleNamespace

import grpc
import pytest

from tests.fakes.pubsub import (
    NOW,
    SUBSCRIPTION,
    TOPIC,
    Answer,
    Client,
    DefaultCredentialsError,
    Failure,
    GivenUp,
    received,
)
from uldp.schemas.errors import EndpointError
from uldp.transforms.io.pubsub.subscription import Subscription, Topic


@pytest.mark.parametrize(
    ("kind", "uri", "path"),
    [
        (Subscription, "pubsub:projects/example/subscriptions/s-1", "projects/example/subscriptions/s-1"),
        (
            Subscription,
            "pubsub:projects/a.org:project/subscriptions/a%2Bb",
            "projects/a.org:project/subscriptions/a%2Bb",
        ),
        (Topic, "pubsub:projects/example/topics/T_1.x", "projects/example/topics/T_1.x"),
    ],
)
def test_names_are_read_and_written(kind: type[Subscription] | type[Topic], uri: str, path: str) -> None:
    resource = kind.parse(uri)
    assert (str(resource), resource.path) == (uri, path)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "pubsub:",
        "projects/example/subscriptions/reports",
        "pubsub:projects/example/topics/reports",
        "pubsub:projects/short/subscriptions/reports",
        "pubsub:projects/example/subscriptions/1st",
        "pubsub:projects/example/subscriptions/größe",
        "pubsub:projects/example/subscriptions/reports\n",
    ],
)
def test_other_names_are_errors_that_say_what_to_write(uri: str) -> None:
    with pytest.raises(EndpointError, match="write pubsub:projects/PROJECT/subscriptions/NAME"):
        Subscription.parse(uri)


@pytest.mark.parametrize(
    ("failure", "line"),
    [
        (Failure(grpc.StatusCode.NOT_FOUND), "create it with: gcloud pubsub subscriptions create reports"),
        (
            Failure(grpc.StatusCode.PERMISSION_DENIED),
            "grant the job's account roles/pubsub.viewer and roles/pubsub.sub",
        ),
        (Failure(grpc.StatusCode.UNAUTHENTICATED), "no credentials; set GOOGLE_APPLICATION_CREDENTIALS or run"),
        (DefaultCredentialsError("none\nat all"), "no credentials; set GOOGLE_APPLICATION_CREDENTIALS or run"),
        (Failure(grpc.StatusCode.UNAVAILABLE), "pubsub.googleapis.com does not answer"),
        (GivenUp(Failure(grpc.StatusCode.UNAVAILABLE)), "pubsub.googleapis.com does not answer"),
        (Failure(grpc.StatusCode.INVALID_ARGUMENT), "refused"),
    ],
)
def test_a_check_says_in_one_line_what_to_do(client: Client, failure: Exception, line: str) -> None:
    client.answers = [failure]
    with pytest.raises(EndpointError, match=line) as raised:
        SUBSCRIPTION.check()
    assert "\n" not in str(raised.value)
    assert str(SUBSCRIPTION) in str(raised.value)


@pytest.mark.parametrize(
    ("topic", "endpoint", "line"),
    [
        ("_deleted-topic_", "", "the topic of the subscription was deleted"),
        (TOPIC.path, "https://example.org", "Pub/Sub pushes the messages of this subscription"),
    ],
)
def test_a_subscription_that_gives_nothing_is_no_source(client: Client, topic: str, endpoint: str, line: str) -> None:
    client.answers = [SimpleNamespace(topic=topic, push_config=SimpleNamespace(push_endpoint=endpoint))]
    with pytest.raises(EndpointError, match=line):
        SUBSCRIPTION.check()


@pytest.mark.parametrize("waiting", [True, False])
def test_a_subscription_that_may_be_looked_at_must_be_pulled_from_too(client: Client, waiting: bool) -> None:
    found = SimpleNamespace(topic=TOPIC.path, push_config=SimpleNamespace(push_endpoint=""))
    client.answers = [found, received(NOW) if waiting else Answer(received_messages=[]), None]
    SUBSCRIPTION.check()
    given_back = {"subscription": SUBSCRIPTION.path, "ack_ids": ["ack"], "ack_deadline_seconds": 0}
    assert client.requests[2:] == ([("modify_ack_deadline", given_back)] if waiting else [])
    client.answers = [found, Failure(grpc.StatusCode.PERMISSION_DENIED)]
    with pytest.raises(EndpointError, match=r"grant the job's account roles/pubsub.viewer and roles/pubsub.subscriber"):
        SUBSCRIPTION.check()


@pytest.mark.parametrize("held", [["pubsub.topics.publish"], Failure(grpc.StatusCode.UNIMPLEMENTED)])
def test_a_topic_that_may_be_published_to_is_fine(client: Client, held: object) -> None:
    """An emulator knows no permissions."""
    client.answers = [None, held if isinstance(held, Failure) else SimpleNamespace(permissions=held)]
    TOPIC.check()
    asked = {"resource": TOPIC.path, "permissions": ["pubsub.topics.publish"]}
    assert client.requests == [("get_topic", {"topic": TOPIC.path}), ("test_iam_permissions", asked)]


def test_a_topic_that_may_be_looked_at_must_be_published_to_too(client: Client) -> None:
    client.answers = [None, SimpleNamespace(permissions=[])]
    with pytest.raises(EndpointError, match=r"roles/pubsub.publisher \(missing: pubsub.topics.publish\)"):
        TOPIC.check()


def test_a_missing_library_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.cloud", None)
    with pytest.raises(EndpointError, match=r"pip install 'uldp-stream\[gcp\]"):
        SUBSCRIPTION.check()

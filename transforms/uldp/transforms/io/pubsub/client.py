"""Pulls from Pub/Sub and publishes to it, many messages in a request."""

import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import grpc

from uldp.collector.collections import YEAR_10000
from uldp.schemas.records import NO_ATTRIBUTES, Message
from uldp.transforms.io.chunks import ChunkSize
from uldp.transforms.io.pubsub.checkpoint import Unavailable
from uldp.transforms.io.pubsub.subscription import ANSWER_SECONDS, Subscription, Topic, library

#: The most that Pub/Sub gives for one request.
MESSAGES_PER_PULL = 1000
#: Seconds to wait for a message, and so the longest for which an empty subscription holds up a bundle.
PULL_SECONDS = 1.0
#: The most of a request, unless one message is larger; Pub/Sub takes twice the bytes.
MESSAGES_PER_REQUEST = 1000
BYTES_PER_REQUEST = 5_000_000
#: Seconds that a request may take with all its retries.
PUBLISH_SECONDS = 60.0


class Puller:
    """Pulls from one subscription.

    Attributes:
        subscription: Which.
    """

    def __init__(self, subscription: Subscription, timestamp_attribute: str | None = None) -> None:
        self.subscription = subscription
        self._timestamp_attribute = timestamp_attribute
        self._chunk_size = ChunkSize()
        with subscription.answers():
            self._client = library().SubscriberClient()
        # The library warns of what `pull` does, in each call.
        warnings.filterwarnings("ignore", message="The return_immediately flag", category=DeprecationWarning)

    def pull(self) -> tuple[list[str], list[Message]]:
        """Return ack ids and messages; none if the subscription answers that it has none to give now.

        While there are messages, waiting for them is what Pub/Sub advises. A wait that ends without an answer says
        nothing, neither that there are none, so then they are asked for without waiting.

        Raises:
            Unavailable: if there is no answer.
            PubSubError: if there will never be one.
        """
        try:
            with self.subscription.answers():
                answer = self._pull(PULL_SECONDS, return_immediately=False)
        except Unavailable as error:
            if getattr(error.__cause__, "grpc_status_code", None) != grpc.StatusCode.DEADLINE_EXCEEDED:
                raise
            with self.subscription.answers():
                answer = self._pull(PULL_SECONDS, return_immediately=True)
        received = type(answer).pb(answer).received_messages
        messages = [self._message(each.message) for each in received]
        self._chunk_size.learn(messages)
        return [each.ack_id for each in received], messages

    def _pull(self, seconds: float, *, return_immediately: bool) -> Any:
        request = {
            "subscription": self.subscription.path,
            "max_messages": self._chunk_size.messages(MESSAGES_PER_PULL),
            "return_immediately": return_immediately,
        }
        return self._client.pull(request=request, retry=None, timeout=seconds)

    def acknowledge(self, ack_ids: Sequence[str]) -> None:
        """Say that these need not come again. Of no effect on those that came again already."""
        request = {"subscription": self.subscription.path, "ack_ids": ack_ids}
        with self.subscription.answers():
            self._client.acknowledge(request=request, retry=None, timeout=ANSWER_SECONDS)

    def extend(self, ack_ids: Sequence[str], seconds: int) -> None:
        """Borrow these for so long from now; zero gives them back."""
        request = {"subscription": self.subscription.path, "ack_ids": ack_ids, "ack_deadline_seconds": seconds}
        with self.subscription.answers():
            self._client.modify_ack_deadline(request=request, retry=None, timeout=ANSWER_SECONDS)

    def _message(self, received: Any) -> Message:
        attributes = dict(received.attributes) or NO_ATTRIBUTES
        published = received.publish_time.seconds * 1000 + received.publish_time.nanos // 1_000_000
        if self._timestamp_attribute is not None:
            published = publish_time(attributes.get(self._timestamp_attribute), published)
        return Message(received.data, published, attributes, f"{self.subscription.name}:{received.message_id}")


def publish_time(value: str | None, otherwise: int) -> int:
    """Read a time that a sender stamped: milliseconds since 1970, or RFC 3339 with an offset from UTC.

    >>> publish_time("2026-01-01T09:00:00.5Z", 0), publish_time("1767258000500", 0), publish_time("noon", 7)
    (1767258000500, 1767258000500, 7)
    """
    if value is None:
        return otherwise
    try:
        stamped = int(value) if value.isdecimal() else _milliseconds(datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        return otherwise
    return stamped if 0 <= stamped < YEAR_10000 else otherwise


def _milliseconds(moment: datetime) -> int:
    if moment.tzinfo is None:
        raise ValueError("a time without an offset")
    return round(moment.timestamp() * 1000)


class Publisher:
    """Publishes to one topic, many messages in a request.

    Attributes:
        topic: Which.
    """

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        with topic.answers():
            self._client = library().PublisherClient()
        # The library's own method of this name works in threads that outlive a bundle, and an attribute that is called
        # like one of its parameters breaks it. This is the request itself.
        from google.pubsub_v1 import PublisherClient

        self._publish = PublisherClient.publish
        self._waiting: list[dict[str, Any]] = []
        self._bytes = 0

    def publish(self, data: bytes, attributes: Mapping[str, str]) -> None:
        """Publish with the next request, at ``flush`` at the latest."""
        size = len(data) + sum(len(name) + len(value) for name, value in attributes.items())
        if len(self._waiting) == MESSAGES_PER_REQUEST or self._bytes + size > BYTES_PER_REQUEST:
            self.flush()
        self._waiting.append({"data": data, "attributes": attributes})
        self._bytes += size

    def flush(self) -> None:
        """Wait until Pub/Sub has accepted all.

        Raises:
            Unavailable: if it does not answer for a minute.
            PubSubError: if it refuses a message.
        """
        if not self._waiting:
            return
        request = {"topic": self.topic.path, "messages": self._waiting}
        with self.topic.answers():
            self._publish(self._client, request=request, timeout=PUBLISH_SECONDS)
        self._waiting, self._bytes = [], 0

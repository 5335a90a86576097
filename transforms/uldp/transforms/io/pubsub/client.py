"""A client that pulls from Pub/Sub and one that publishes to it, many messages in a request."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import grpc

from uldp.collector.collections import YEAR_9000
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.records import Message, known_attributes
from uldp.transforms.io.chunks import ChunkSize
from uldp.transforms.io.endpoints import TopicWriter, records_of
from uldp.transforms.io.pubsub.checkpoint import Unavailable
from uldp.transforms.io.pubsub.subscription import ANSWER_SECONDS, Subscription, Topic, library, pull_method

#: The maximum number of messages that Pub/Sub returns for one pull.
MESSAGES_PER_PULL = 1000
#: Seconds to wait for a message, and so about the time for which an empty subscription delays a bundle.
PULL_SECONDS = 1.0
#: The limits of a publish request, unless one message is larger; Pub/Sub accepts twice as many bytes.
MESSAGES_PER_REQUEST = 1000
BYTES_PER_REQUEST = 5_000_000
#: Seconds that a publish request may take with all its retries.
PUBLISH_SECONDS = 60.0


class Puller:
    """Pulls from one subscription."""

    def __init__(self, subscription: Subscription, timestamp_attribute: str | None = None) -> None:
        self.subscription = subscription
        self._timestamp_attribute = timestamp_attribute
        self._chunk_size = ChunkSize()
        with subscription.answers():
            self._client = library().SubscriberClient()
            self._send_pull = pull_method(self._client)

    def pull(self) -> tuple[list[str], list[Message]]:
        """Return ack ids and messages; none if the subscription answers that it has none now.

        The first request waits for messages, as Pub/Sub advises; a second asks without waiting if none answers.
        Unavailable if Pub/Sub does not answer, EndpointError if a retry would not help.
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
        return self._send_pull(request=request, retry=None, timeout=seconds)

    def acknowledge(self, ack_ids: Sequence[str]) -> None:
        """Acknowledge messages, so that they do not come again. It has no effect on any that came again already."""
        request = {"subscription": self.subscription.path, "ack_ids": ack_ids}
        with self.subscription.answers():
            self._client.acknowledge(request=request, retry=None, timeout=ANSWER_SECONDS)

    def extend(self, ack_ids: Sequence[str], seconds: int) -> None:
        """Set the ack deadline of messages to ``seconds`` from now; zero gives them back to the subscription."""
        request = {"subscription": self.subscription.path, "ack_ids": ack_ids, "ack_deadline_seconds": seconds}
        with self.subscription.answers():
            self._client.modify_ack_deadline(request=request, retry=None, timeout=ANSWER_SECONDS)

    def _message(self, received: Any) -> Message:
        published = received.publish_time.seconds * 1000 + received.publish_time.nanos // 1_000_000
        if self._timestamp_attribute is not None:
            published = publish_time(received.attributes.get(self._timestamp_attribute), published)
        attributes = known_attributes(received.attributes)
        return Message(received.data, published, attributes, f"{self.subscription.name}:{received.message_id}")


def publish_time(value: str | None, otherwise: int) -> int:
    """Read a sender's time stamp: milliseconds since 1970, or RFC 3339 with an offset from UTC; else ``otherwise``.

    >>> publish_time("2026-01-01T09:00:00.5Z", 0), publish_time("1767258000500", 0), publish_time("noon", 7)
    (1767258000500, 1767258000500, 7)
    """
    if value is None:
        return otherwise
    try:
        stamped = int(value) if value.isdecimal() else _milliseconds(datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        return otherwise
    return stamped if 0 <= stamped < YEAR_9000 else otherwise


def _milliseconds(moment: datetime) -> int:
    if moment.tzinfo is None:
        raise ValueError("a time without an offset")
    return round(moment.timestamp() * 1000)


class Publisher(TopicWriter):
    """Publishes to one topic, many messages in a request.

    An attribute may hold the publish times of what is appended, in milliseconds since 1970; else Pub/Sub sets them.
    """

    def __init__(self, topic: Topic, timestamp_attribute: str | None = None) -> None:
        self.topic, self._timestamp_attribute = topic, timestamp_attribute
        self.simulated_clock = timestamp_attribute is not None
        with topic.answers():
            self._client = library().PublisherClient()
        # The library's own ``publish`` works in threads that outlive a bundle, and it breaks if an attribute has the
        # name of one of its parameters. The method below sends the request itself.
        from google.pubsub_v1 import PublisherClient

        self._publish = PublisherClient.publish
        self._waiting: list[dict[str, Any]] = []
        self._bytes = 0

    def append(self, messages: Sequence[Message] | EncodedMessages) -> None:
        """Queue messages as ``publish`` does."""
        for message in records_of(messages):
            attributes = dict(message.attributes)
            if self._timestamp_attribute is not None:
                attributes[self._timestamp_attribute] = str(message.publish_time)
            self.publish(message.data, attributes)

    def publish(self, data: bytes, attributes: Mapping[str, str]) -> None:
        """Queue a message for the next request; ``flush`` sends it at the latest."""
        size = len(data) + sum(len(name) + len(value) for name, value in attributes.items())
        if len(self._waiting) == MESSAGES_PER_REQUEST or self._bytes + size > BYTES_PER_REQUEST:
            self.flush()
        self._waiting.append({"data": data, "attributes": attributes})
        self._bytes += size

    def flush(self) -> None:
        """Wait until Pub/Sub has all messages; Unavailable after a minute, EndpointError if it refuses one."""
        if not self._waiting:
            return
        request = {"topic": self.topic.path, "messages": self._waiting}
        with self.topic.answers():
            self._publish(self._client, request=request, timeout=PUBLISH_SECONDS)
        self._waiting, self._bytes = [], 0

    def give_up(self, seconds: float) -> None:
        """Send nothing more; a request that is under way ends within its own minute."""
        self.gives_up = True

"""The client library of Pub/Sub, as far as it is used, and a queue: they answer what they are told to."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import grpc

from tests.build import START
from uldp.schemas.records import Message
from uldp.transforms.io.pubsub.checkpoint import PER_REQUEST, Leases, Unavailable
from uldp.transforms.io.pubsub.source import PubSubReader
from uldp.transforms.io.pubsub.subscription import Subscription, Topic

SUBSCRIPTION = Subscription("example", "reports")
TOPIC = Topic("example", "reports")
NOW = START


@dataclass
class Failure(Exception):  # noqa: N818 (stands for the library's)
    grpc_status_code: grpc.StatusCode


@dataclass
class GivenUp(Exception):  # noqa: N818 (stands for the library's)
    cause: Exception


class DefaultCredentialsError(Exception):
    """Named as that of the library of credentials."""


class Answer(SimpleNamespace):
    """An answer in the library's clothes."""

    @staticmethod
    def pb(answer: "Answer") -> "Answer":
        return answer


@dataclass
class Client:
    """The library and its clients, as far as they are used."""

    answers: list[Any] = field(default_factory=list)
    requests: list[tuple[str, Any]] = field(default_factory=list)
    subscribers: int = 0

    def SubscriberClient(self) -> "Client":  # noqa: N802 (the name in the library)
        self.subscribers += 1
        return self

    def PublisherClient(self) -> "Client":  # noqa: N802 (the name in the library)
        return self

    def __getattr__(self, method: str) -> Any:
        if method.startswith("__"):
            raise AttributeError(method)

        def answer(*, request: Any, retry: None, timeout: float) -> Any:
            self.requests.append((method, request))
            given = self.answers.pop(0)
            if isinstance(given, Exception):
                raise given
            return given

        return answer


@dataclass
class Requests:
    """The library's class of requests, which are made of an open client."""

    made: list[tuple[object, Any]] = field(default_factory=list)

    def publish(self, client: object, *, request: Any, timeout: float) -> None:
        self.made.append((client, request))


def received(published_ms: int, data: bytes = b"body", **attributes: str) -> Answer:
    seconds, ms = divmod(published_ms, 1000)
    stamp = SimpleNamespace(seconds=seconds, nanos=ms * 1_000_000 + 999_999)
    body = SimpleNamespace(data=data, attributes=attributes, publish_time=stamp, message_id="17")
    return Answer(received_messages=[SimpleNamespace(ack_id="ack", message=body)])


@dataclass
class Clock:
    """A clock that a test moves.

    Attributes:
        now: The time in seconds.
    """

    now: float = NOW / 1000

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Queue:
    """A subscription; each message's ack id is its body.

    Attributes:
        waiting: What each pull gives, or raises.
        acknowledged: The ack ids that were acknowledged.
        extended: Those whose deadline was set, and to how many seconds.
        away: Whether it does not answer.
        requests: How often it was asked.
    """

    waiting: list[Sequence[Message] | Exception] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    extended: list[tuple[list[str], int]] = field(default_factory=list)
    away: bool = False
    requests: int = 0

    def pull(self) -> tuple[list[str], list[Message]]:
        given = self.waiting.pop(0) if self.waiting else ()
        if isinstance(given, Exception):
            raise given
        return [message.data.decode() for message in given], list(given)

    def acknowledge(self, ack_ids: Sequence[str]) -> None:
        self._answer(ack_ids)
        self.acknowledged += ack_ids

    def extend(self, ack_ids: Sequence[str], seconds: int) -> None:
        self._answer(ack_ids)
        self.extended.append((list(ack_ids), seconds))

    def _answer(self, ack_ids: Sequence[str]) -> None:
        self.requests += 1
        assert 0 < len(ack_ids) <= PER_REQUEST
        if self.away:
            raise Unavailable

    @property
    def given_back(self) -> list[str]:
        """The ack ids of what the subscription may give to others at once."""
        return [each for ack_ids, seconds in self.extended if seconds == 0 for each in ack_ids]


class StillLeases(Leases):
    """Tended by nobody."""

    def keep_tending(self) -> None:
        """Start no thread."""


def queue_of(reader: PubSubReader) -> Queue:
    queue = reader._leases.queue
    assert isinstance(queue, Queue)
    return queue


def watermark(reader: PubSubReader) -> int:
    return int(reader.get_watermark().micros // 1000)


def commit(reader: PubSubReader) -> None:
    """Twice: a commit is believed with the next mark."""
    for _ in range(2):
        reader.get_checkpoint_mark().finalize_checkpoint()

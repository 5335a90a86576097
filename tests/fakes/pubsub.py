"""The client library of Pub/Sub, as far as it is used: it answers what it is told to."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import grpc

from tests.build import START
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

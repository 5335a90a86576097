"""Names of Google Cloud Pub/Sub's subscriptions and topics, its client, an extra, and errors with remedies."""

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import grpc

from uldp.schemas.errors import EndpointError
from uldp.schemas.extras import needed
from uldp.transforms.io.pubsub.checkpoint import Unavailable

#: Seconds to wait for an answer, except where a request has its own limit.
ANSWER_SECONDS = 9.0

#: Patterns of the names that Pub/Sub accepts.
_PROJECT, _NAME = "[a-z][a-z0-9.:-]{4,61}[a-z0-9]", "[A-Za-z][A-Za-z0-9._~+%-]{2,254}"
#: Errors after which a retry may help.
_TRANSIENT = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.INTERNAL,
}
#: The topic that Pub/Sub reports for a subscription after its topic was deleted.
_DELETED_TOPIC = "_deleted-topic_"


def library() -> Any:
    """Import the client library; EndpointError if it is not installed."""
    with needed("Pub/Sub", "gcp", refusal=EndpointError):
        from google.cloud import pubsub_v1  # type: ignore[attr-defined,unused-ignore]
    return pubsub_v1


def pull_method(client: Any) -> Callable[..., Any]:
    """Return the client's ``pull`` one layer below its warning: no scope of a filter is safe for several threads."""
    from google.api_core.gapic_v1.method import wrap_method
    from google.api_core.gapic_v1.routing_header import to_grpc_metadata

    send = wrap_method(client.transport.pull)

    def pull(*, request: dict[str, Any], retry: None, timeout: float) -> Any:
        route = to_grpc_metadata({"subscription": request["subscription"]})
        return send(request, retry=retry, timeout=timeout, metadata=[route])

    return pull


class UnknownMethodError(EndpointError):
    """A server answers, but does not know the method."""


@dataclass(frozen=True, slots=True)
class _Resource:
    project: str
    name: str

    KIND: ClassVar[str]
    #: The role that a job's account needs besides the permission to view.
    ROLE: ClassVar[str]

    @classmethod
    def parse(cls, uri: str) -> Self:
        """Read ``pubsub:projects/PROJECT/KIND/NAME``, of subscriptions or topics; EndpointError if it is none."""
        match = re.fullmatch(rf"pubsub:projects/({_PROJECT})/{cls.KIND}/({_NAME})", uri)
        if match is None:
            raise EndpointError(
                f"{uri!r}: not one of Pub/Sub's {cls.KIND}; write pubsub:projects/PROJECT/{cls.KIND}/NAME"
            )
        return cls(match[1], match[2])

    def __str__(self) -> str:
        return f"pubsub:{self.path}"

    @property
    def path(self) -> str:
        """The full name in Pub/Sub."""
        return f"projects/{self.project}/{self.KIND}/{self.name}"

    @contextlib.contextmanager
    def answers(self) -> Iterator[None]:
        """Turn the library's errors into Unavailable, if a retry may help, or EndpointError."""
        try:
            yield
        except Exception as error:
            # If the library gave up its own retries, the original error is the cause.
            code = getattr(getattr(error, "cause", error), "grpc_status_code", None)
            if code in _TRANSIENT:
                asked = os.environ.get("PUBSUB_EMULATOR_HOST") or "pubsub.googleapis.com"
                raise Unavailable(f"{self}: {asked} does not answer: {_first_line(error)}") from error
            if code is None and type(error).__name__ != "DefaultCredentialsError":
                raise
            kind = UnknownMethodError if code is grpc.StatusCode.UNIMPLEMENTED else EndpointError
            raise kind(f"{self}: {self._remedy(code)} ({_first_line(error)})") from error

    def _remedy(self, code: grpc.StatusCode | None) -> str:
        match code:
            case grpc.StatusCode.NOT_FOUND:
                command = f"gcloud pubsub {self.KIND} create {self.name} --project={self.project}"
                return f"does not exist; create it with: {command}"
            case grpc.StatusCode.PERMISSION_DENIED:
                return f"no permission; grant the job's account roles/pubsub.viewer and {self.ROLE}"
            case None | grpc.StatusCode.UNAUTHENTICATED:
                return (
                    "no credentials; set GOOGLE_APPLICATION_CREDENTIALS or run: gcloud auth application-default login"
                )
            case _:
                return "Pub/Sub refused the request; see its documentation of error codes"


class Subscription(_Resource):
    """The name of a subscription.

    >>> Subscription.parse("pubsub:projects/example/subscriptions/reports").path
    'projects/example/subscriptions/reports'
    """

    __slots__ = ()
    KIND = "subscriptions"
    ROLE = "roles/pubsub.subscriber"

    def check(self) -> None:
        """Check in ten seconds a request that messages can be pulled; EndpointError says what to do."""
        client = library().SubscriberClient
        found = _ask(self, client, "get_subscription", subscription=self.path)
        if found.topic == _DELETED_TOPIC:
            raise EndpointError(f"{self}: the topic of the subscription was deleted; create both again")
        if found.push_config.push_endpoint:
            raise EndpointError(f"{self}: Pub/Sub pushes the messages of this subscription; create a pull subscription")
        # The permission to view does not include the permission to pull. A message that comes is given back.
        pulled = _ask(self, client, "pull", subscription=self.path, max_messages=1, return_immediately=True)
        if taken := [each.ack_id for each in pulled.received_messages]:
            _ask(self, client, "modify_ack_deadline", subscription=self.path, ack_ids=taken, ack_deadline_seconds=0)


class Topic(_Resource):
    """The name of a topic.

    >>> str(Topic.parse("pubsub:projects/example/topics/reports"))
    'pubsub:projects/example/topics/reports'
    """

    __slots__ = ()
    KIND = "topics"
    ROLE = "roles/pubsub.publisher"
    PERMISSION = "pubsub.topics.publish"

    def check(self) -> None:
        """Check in ten seconds a request that messages can be published; EndpointError says what to do."""
        client = library().PublisherClient
        _ask(self, client, "get_topic", topic=self.path)
        # The permission to view does not include the permission to publish, and a trial would publish a message.
        try:
            held = _ask(self, client, "test_iam_permissions", resource=self.path, permissions=[self.PERMISSION])
        except UnknownMethodError:
            return  # an emulator, which permits everything to everyone
        if self.PERMISSION not in held.permissions:
            raise EndpointError(
                f"{self}: {self._remedy(grpc.StatusCode.PERMISSION_DENIED)} (missing: {self.PERMISSION})"
            )


def _ask(resource: _Resource, client: Any, method: str, /, **request: Any) -> Any:
    try:
        with resource.answers():
            opened = client()
            call = pull_method(opened) if method == "pull" else getattr(opened, method)
            return call(request=request, retry=None, timeout=ANSWER_SECONDS)
    except Unavailable as error:
        raise EndpointError(f"{error}; check the network, and PUBSUB_EMULATOR_HOST") from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]

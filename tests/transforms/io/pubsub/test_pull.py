"""Pulls of the real client library from a server of this process, which answers what it is told to."""

import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from tests.fakes.pubsub import SUBSCRIPTION
from uldp.transforms.io.pubsub import client as client_module
from uldp.transforms.io.pubsub.client import Puller
from uldp.transforms.io.pubsub.subscription import library

pubsub_v1 = pytest.importorskip("google.pubsub_v1", reason="pip install '.[gcp]'")

SERVICE = "google.pubsub.v1.Subscriber"
#: Seconds that a client waits for this server: no machine is so slow.
PATIENCE = 60.0


class Server:
    """Has nothing for a request that waits, and answers one that does not at once, unless it refuses them all.

    It ends the wait of the first itself, as the client does at its deadline: a deadline that passes on a clock might
    pass before the request is here.
    """

    def __init__(self) -> None:
        self.refuses: grpc.StatusCode | None = None
        self.routes: list[str] = []
        self.asked: list[bool] = []
        self.left: list[float] = []

    def pull(self, request: Any, context: Any) -> Any:
        self.asked.append(request.return_immediately)
        self.left.append(context.time_remaining())
        self.routes.append(dict(context.invocation_metadata())["x-goog-request-params"])
        if self.refuses is not None:
            context.abort(self.refuses, "refused")
        if not request.return_immediately:
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
        message = pubsub_v1.PubsubMessage(data=b"body", message_id="17")
        return pubsub_v1.PullResponse(received_messages=[{"ack_id": "ack", "message": message}])

    def serve(self) -> tuple[grpc.Server, int]:
        handler = grpc.unary_unary_rpc_method_handler(
            self.pull, pubsub_v1.PullRequest.deserialize, pubsub_v1.PullResponse.serialize
        )
        server = grpc.server(ThreadPoolExecutor(max_workers=4))
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, {"Pull": handler})])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        return server, port


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    made = Server()
    serving, port = made.serve()
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", f"127.0.0.1:{port}")
    monkeypatch.setattr(client_module, "PULL_SECONDS", PATIENCE)
    yield made
    serving.stop(grace=None).wait()


def test_a_pull_at_once_warns_of_nothing_and_changes_no_filter(server: Server) -> None:
    filters = list(warnings.filters)
    puller = Puller(SUBSCRIPTION)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        ack_ids, (message,) = puller.pull()
    assert (ack_ids, message.data, message.source) == (["ack"], b"body", "reports:17")
    assert server.asked == [False, True]
    assert all(left < 2 * PATIENCE for left in server.left)  # a pull without a deadline may wait for ever
    assert not [each for each in warned if "return_immediately" in str(each.message)]
    assert list(warnings.filters) == filters


def test_a_pull_is_routed_as_the_library_routes_it(server: Server) -> None:
    client = library().SubscriberClient()
    Puller(SUBSCRIPTION).pull()
    with pytest.raises(Exception, match="Deadline"):
        client.pull(request={"subscription": SUBSCRIPTION.path, "max_messages": 1}, retry=None, timeout=PATIENCE)
    waited, at_once, the_librarys = server.routes
    assert waited == at_once == the_librarys

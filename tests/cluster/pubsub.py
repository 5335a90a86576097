"""Pub/Sub on this machine: the server that Google's Go library has for tests, behind a proxy that can be cut.

It keeps ack deadlines and delivers again what was not acknowledged, over the real protocol; all in memory. It is built
with Go.
"""

import contextlib
import json
import socket
import threading
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
import pytest
from google.pubsub_v1 import PublisherClient, SubscriberClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

from tests.cluster.daemons import Daemon, Service, free_port, listens
from tests.downloads import built
from uldp.transforms.io.pubsub.subscription import Subscription, Topic

#: The shortest deadline that Pub/Sub takes, and this server.
ACK_DEADLINE_SECONDS = 10


def server_program() -> Path:
    """Return the server."""
    return built("pstest", Path(__file__).with_name("pstest"))


@dataclass
class Proxy:
    """Passes connections on to a port of 127.0.0.1, until it is cut; a context manager."""

    port: int
    _connections: list[socket.socket] = field(default_factory=list)
    _listening: socket.socket | None = None

    def __enter__(self) -> Self:
        self.own_port = free_port()
        self.restore()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()

    @property
    def address(self) -> str:
        """Where to connect to."""
        return f"127.0.0.1:{self.own_port}"

    def restore(self) -> None:
        """Take connections, again."""
        self._listening = socket.create_server(("127.0.0.1", self.own_port))
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def cut(self) -> None:
        """Break all connections, and take no more."""
        assert self._listening is not None
        # Closing alone does not wake the thread that waits in accept.
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._connections.clear()

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                server = socket.create_connection(("127.0.0.1", self.port))
                self._connections += [client, server]
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=_pass_on, args=pair, daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError), source, target:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@dataclass(frozen=True)
class Tally:
    """What became of all messages of all topics.

    Attributes:
        published: How many there are.
        delivered: How often they were delivered, together.
        acknowledged: How many of them were acknowledged.
    """

    published: int
    delivered: int
    acknowledged: int


@dataclass
class PubSubServer(Service):
    """The server with its proxy.

    Attributes:
        denied: A method, as ``Pull``, that nobody is permitted to call.
    """

    denied: str = ""

    def _start(self, stack: ExitStack) -> None:
        port, self._tally = free_port(), free_port()
        command = [str(server_program()), f"-port={port}", f"-tally={self._tally}", f"-denied={self.denied}"]
        server = stack.enter_context(Daemon(command, self.folder / "pstest.log"))
        server.wait_until(lambda: listens(port) and listens(self._tally), "Pub/Sub's server for tests")
        self.proxy = stack.enter_context(Proxy(port))
        channel = stack.enter_context(grpc.insecure_channel(f"127.0.0.1:{port}"))
        self._publisher = PublisherClient(transport=PublisherGrpcTransport(channel=channel))
        self._subscriber = SubscriberClient(transport=SubscriberGrpcTransport(channel=channel))

    @property
    def environment(self) -> Mapping[str, str]:
        """What makes clients connect to it, through the proxy."""
        return {"PUBSUB_EMULATOR_HOST": self.proxy.address}

    def set_in(self, patch: pytest.MonkeyPatch) -> None:
        """Let this process, and each that it starts from here on, connect to it."""
        for name, value in self.environment.items():
            patch.setenv(name, value)

    def create(self, name: str) -> tuple[Topic, Subscription]:
        """Create a topic and a subscription to it."""
        topic, subscription = Topic("project", name), Subscription("project", name)
        self._publisher.create_topic(name=topic.path)
        request = {"name": subscription.path, "topic": topic.path, "ack_deadline_seconds": ACK_DEADLINE_SECONDS}
        self._subscriber.create_subscription(request=request)
        return topic, subscription

    def publish(self, topic: Topic, bodies: Sequence[bytes]) -> None:
        """Publish, past the proxy."""
        for start in range(0, len(bodies), 1000):
            messages = [{"data": body} for body in bodies[start : start + 1000]]
            self._publisher.publish(request={"topic": topic.path, "messages": messages})

    def tally(self) -> Tally:
        """Ask what became of all messages, past the proxy."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._tally}/", timeout=10) as answer:
            return Tally(**json.load(answer))

    def pull(self, subscription: Subscription) -> Sequence[Any]:
        """Pull and acknowledge, past the proxy, what the subscription gives at once."""
        request = {"subscription": subscription.path, "max_messages": 1000}
        received = self._subscriber.pull(request=request).received_messages
        if received:
            ack_ids = [each.ack_id for each in received]
            self._subscriber.acknowledge(subscription=subscription.path, ack_ids=ack_ids)
        return [each.message for each in received]

"""Connections that wait for nobody are served, whatever all others do."""

import asyncio
import signal
import socket
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from tests import build
from tests.pipelines.intake.posting import Collecting, post
from tests.pipelines.intake.test_collect import now, write_spec
from tests.pipelines.serve.serving import Serving
from uldp.pipelines.web.connections import network_of

REQUEST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n"
IDLE, HALF, SLOW = b"", REQUEST[:20], REQUEST + b"ab"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer when the body is there."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


class Clients(ExitStack):
    """Connections that end with the test."""

    def connected(self, serving: Serving, host: str = "127.0.0.1") -> socket.socket:
        client = socket.create_connection(("127.0.0.1", serving.port), timeout=60, source_address=(host, 0))
        return self.enter_context(client)


def ended(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("begun", [IDLE, HALF, SLOW])
def test_the_oldest_that_waits_gives_way_to_a_new_one(begun: bytes) -> None:
    with Serving(app=echo, most=8) as serving, Clients() as clients:
        waiting = [clients.connected(serving) for _ in range(4)]
        for client in waiting:
            client.sendall(begun)
        assert post(serving.port, b"1234", path="/")[0] == 202
        assert ended(waiting[0])
        for client in waiting[2:]:  # the post took another place, and gave it back
            client.sendall((REQUEST + b"1234")[len(begun) :])
            assert client.recv(64).startswith(b"HTTP/1.1 202")


@pytest.mark.parametrize("begun", [IDLE, HALF, SLOW])
def test_many_that_wait_keep_nobody_out(begun: bytes) -> None:
    hosts = [f"127.0.0.{number}" for number in range(2, 6)]
    with Serving(app=echo, most=8) as serving, Clients() as clients:
        for number in range(200):
            with suppress(OSError):  # it may have given way already
                clients.connected(serving, hosts[number % 4]).sendall(begun)
            if number % 20 == 0:
                assert post(serving.port, b"1234", path="/")[0] == 202
        serving.wait(lambda connections: len(connections) <= 8)


def test_those_of_one_address_give_way_to_others_of_it_alone() -> None:
    with Serving(app=echo, most=8) as serving, Clients() as clients:
        quiet = clients.connected(serving, "127.0.0.2")
        loud = [clients.connected(serving, "127.0.0.3") for _ in range(40)]
        assert all(map(ended, loud[:30]))
        quiet.sendall(REQUEST + b"1234")
        assert quiet.recv(64).startswith(b"HTTP/1.1 202")


def test_a_request_that_is_worked_on_keeps_its_place() -> None:
    release = asyncio.Event()

    async def hold(scope: Scope, receive: Receive, send: Send) -> None:
        await release.wait()
        await echo(scope, receive, send)

    with Serving(app=hold, most=4) as serving, Clients() as clients:
        working = [clients.connected(serving) for _ in range(2)]
        for client in working:
            client.sendall(REQUEST + b"1234")
        serving.wait(lambda connections: sum(each.cycle is not None for each in connections) == 2)
        assert ended(clients.connected(serving))
        (loop,) = {each.loop for each in serving.connections}
        loop.call_soon_threadsafe(release.set)
        for client in working:
            assert client.recv(64).startswith(b"HTTP/1.1 202")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2", True),
    ],
)
def test_addresses_of_ipv6_are_counted_by_their_network(one: str, other: str, same: bool) -> None:
    assert (network_of(one) == network_of(other)) == same


@pytest.mark.skipif(sys.platform != "linux", reason="counts open files")
def test_more_connections_than_files_are_no_tracebacks(tmp_path: Path) -> None:
    write_spec(tmp_path / "spec.yaml")
    few = ["prlimit", "--nofile=60:60"]
    with Collecting(tmp_path / "spec.yaml", tmp_path / "posted", under=few) as collecting, ExitStack() as clients:
        for _ in range(100):
            clients.enter_context(socket.create_connection(("127.0.0.1", collecting.port), timeout=60))
        assert post(collecting.port, build.report(1, 3, now()).encode())[0] == 202
        _, _, err = collecting.stop(signal.SIGTERM)
    assert "a connection could not be taken: Too many open files" in err
    assert "Traceback" not in err

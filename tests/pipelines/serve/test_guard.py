"""Who may ask: hosts, tokens, methods, paths, connections that hang; and the address and the end of the command."""

import base64
import http.client
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from tests.listening import listeners_below
from tests.pipelines.command import Run, heeding_interrupts
from tests.pipelines.serve.serving import Serving
from uldp.pipelines.serve.app import Pieces
from uldp.pipelines.web import connections

TOKEN = "0123456789abcdef"


ADDRESSES = ("127.0.0.1:8077", "localhost", "LOCALHOST:1", "[::1]:8077", "192.0.2.7")
TRICKS = ("evil.example", "127.0.0.1.evil.example:8077", "localhost.evil.example", "", "a:b:c")


@pytest.mark.parametrize("host", [*ADDRESSES, *TRICKS])
def test_addresses_are_let_in_and_names_that_lead_here_by_a_trick_are_not(site: Serving, host: str) -> None:
    answer = site.get("/api/folders", Host=host)
    assert (answer.status, b"results" in answer.body) == ((200, True) if host in ADDRESSES else (421, False))


def test_a_name_is_let_in_if_it_was_given(results: Path) -> None:
    with Serving(results, names=["Stats.example"]) as named:
        assert named.get("/healthz", Host="stats.example:443").status == 200
        assert named.get("/healthz", Host="other.example").status == 421


@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics", "/api/folders", "/results/results/", "/nowhere"])
def test_nothing_is_told_without_the_token(results: Path, path: str) -> None:
    basic = [f"Basic {base64.b64encode(each).decode()}" for each in (b"me:wrong", TOKEN.encode(), b"\xff:\xff")]
    with Serving(results, token=TOKEN) as guarded:
        for wrong in ("", "Bearer", f"Bearer {TOKEN}x", "Bearer caf\xe9", "Basic !", f"Digest {TOKEN}", *basic):
            answer = guarded.get(path, Authorization=wrong)
            assert answer.status == 401
            assert answer.headers["www-authenticate"].startswith("Basic ")
        assert guarded.get(path).status == 401


def test_the_token_is_a_bearer_token_or_a_password(results: Path) -> None:
    with Serving(results, token=TOKEN) as guarded:
        password = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
        for right in (f"Bearer {TOKEN}", f"bearer  {TOKEN}", f"Basic {password}"):
            assert guarded.get("/api/folders", Authorization=right).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_is_written(site: Serving, method: str) -> None:
    assert site.get("/api/folders", method).status == 405


def test_a_request_has_no_body(site: Serving) -> None:
    assert site.get("/api/folders", body=b"{}").status == 400


@pytest.mark.parametrize(
    "path",
    [
        "/api/../results/state",
        "/api/%2e%2e/state",
        "/api/..%2f..%2fetc/estimates",
        "/results/%2e%2e/",
        "/results/results/../../etc/passwd",
        "/results//etc/",
        "/results/results/specs",
        "/api/results/state/../../x",
        "/api/%00/state",
    ],
)
def test_a_path_is_the_name_of_a_folder_that_is_served_or_nothing(site: Serving, path: str) -> None:
    assert site.get(path).status == 404


def test_answers_say_what_browsers_must_not_do(site: Serving) -> None:
    headers = site.get("/results/results/").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "access-control-allow-origin" not in headers


def closed_in_the_end(client: socket.socket, sent: bytes) -> bool:
    client.settimeout(30)
    try:
        client.sendall(sent)  # which may be too late already
        while client.recv(1 << 16):
            pass
    except (BrokenPipeError, ConnectionResetError):
        pass
    return True


def test_half_a_request_is_not_waited_for(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SECONDS", 0.2)
    with Serving(results) as serving, socket.create_connection(("127.0.0.1", serving.port)) as client:
        assert closed_in_the_end(client, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        monkeypatch.undo()  # this machine may take longer for a whole request
        assert serving.get("/healthz").status == 200


def test_nobody_is_waited_for_who_does_not_read(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more_than_all_buffers = Pieces(bytes(32 << 20))

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        monkeypatch.setattr(connections, "SECONDS", 0.2)  # the request is here, however long it took
        await more_than_all_buffers(scope, receive, send)

    with Serving(results, app=answer) as serving, socket.create_connection(("127.0.0.1", serving.port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(64).startswith(b"HTTP/1.1 200")
        serving.wait(lambda connections: not connections)


@contextmanager
def serving(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The command at a free port; yields its process and its port."""
    command = heeding_interrupts("serve", *arguments, "--port", "0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if line.startswith("serving at"))
            port = re.search(r":(\d+)/", line)
            assert port is not None
            yield process, int(port[1])
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_it_listens_here_alone_and_ends_when_it_is_told(results: Path, stop: signal.Signals) -> None:
    with serving(results) as (process, port):
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            connection.request("GET", "/results/results/")
            assert connection.getresponse().read().startswith(b"<!doctype html>")
        listeners = listeners_below(process.pid)
        assert {each.port for each in listeners} == {port}
        assert all(each.is_loopback for each in listeners)
        process.send_signal(stop)
        assert process.stdout is not None
        assert process.stdout.read() == "stopped\n"
        assert process.wait() == 0


def test_a_port_that_is_taken_is_one_clear_line(uldp: Run, results: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = uldp("serve", results, "--port", str(port))
    assert (code, err) == (1, f"error: port {port} of 127.0.0.1 is taken; name another by --port\n")


def test_others_need_a_token(uldp: Run, results: Path) -> None:
    code, _, err = uldp("serve", results, "--host", "0.0.0.0")
    assert code == 1
    assert err.startswith("error: --host '0.0.0.0': others reach this address, so a token is needed")


@pytest.mark.parametrize("token", ["short", "", "with a space in it", "x" * 15 + "é"])
def test_a_token_has_to_be_one(
    uldp: Run, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    (tmp_path / "token").write_text(token)
    code, _, err = uldp("serve", results, "--token-file", tmp_path / "token")
    assert (code, "a token has 16 characters or more" in err) == (1, True)
    monkeypatch.setenv("ULDP_SERVE_TOKEN", token)
    assert uldp("serve", results)[2].startswith("error: $ULDP_SERVE_TOKEN: a token has")

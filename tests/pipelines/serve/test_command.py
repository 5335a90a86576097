"""The command ``uldp serve``: its address, its end, and its mistakes; and a folder that grows while it is served."""

import http.client
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.listening import listeners_below
from tests.pipelines.command import Run, heeding_interrupts


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

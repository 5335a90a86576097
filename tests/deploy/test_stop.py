"""deploy/flink/stop.sh against a stand-in for Flink's REST interface."""

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tests.deploy.tools import DEPLOY

SCRIPT = DEPLOY / "flink" / "stop.sh"
SAVED = {"status": {"id": "COMPLETED"}, "operation": {"location": "file:/savepoints/1"}}
FAILED = {"status": {"id": "COMPLETED"}, "operation": {"failure-cause": {"stack-trace": "not all tasks run"}}}


class Flink(BaseHTTPRequestHandler):
    """Takes one job, and writes its savepoint while it is asked for the second time."""

    answers: list[Any]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = self.path == "/jobs/abc/stop" and body == {"drain": False}
        self._answer({"request-id": "r1"} if known else {"errors": ["Job not found"]})

    def do_GET(self) -> None:
        assert self.path == "/jobs/abc/savepoints/r1"
        self._answer(self.answers.pop(0))

    def _answer(self, body: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(body, separators=(",", ":")).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def flink() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Flink) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def stop(*arguments: str, answers: Any) -> tuple[int, str, str]:
    Flink.answers = [{"status": {"id": "IN_PROGRESS"}}, answers]
    done = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_it_prints_the_savepoint_and_submits_from_it_what_follows(flink: str) -> None:
    assert stop(flink, "abc", answers=SAVED) == (0, "file:/savepoints/1\n", "")
    submitted = "file:/savepoints/1\nstream --specs my specs --savepoint_path=file:/savepoints/1\n"
    assert stop(flink, "abc", "echo", "stream", "--specs", "my specs", answers=SAVED) == (0, submitted, "")


def test_it_submits_nothing_without_a_savepoint(flink: str) -> None:
    code, out, err = stop(flink, "abc", "echo", "submitted", answers=FAILED)
    assert (code, out) == (1, "")
    assert "error: the job goes on" in err
    assert "not all tasks run" in err


def test_it_says_what_flink_says_of_a_job_that_is_not_there(flink: str) -> None:
    code, out, err = stop(flink, "other", "echo", "submitted", answers=SAVED)
    assert (code != 0, out) == (True, "")
    assert "Job not found" in err

"""The command ``uldp collect`` in a process of its own, and devices that post to it."""

import http.client
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.pipelines.command import ULDP


class Collecting:
    """``uldp collect`` by a spec, or by a folder of specs; a context manager. ``under`` is a program that runs it."""

    def __init__(self, spec: Path, to: Path | str, *options: str, port: int = 0, under: Sequence[str] = ()) -> None:
        specs = "--specs" if spec.is_dir() else "--spec"
        self._command = [*under, str(ULDP), "collect", specs, str(spec), "--to", str(to), "--port", str(port), *options]

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.line = next((line for line in self.process.stdout if "/v1/" in line), "")
        if not self.line:
            assert self.process.stderr is not None
            raise AssertionError(self.process.stderr.read())
        self.port = int(self.line.partition("/v1/")[0].rpartition(":")[2])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(signal.SIGTERM)

    def stop(self, how: signal.Signals) -> tuple[int, str, str]:
        """Send a signal; return the exit code and what the command printed."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


def post(
    port: int,
    body: bytes | Iterable[bytes],
    method: str = "POST",
    path: str = "/v1/reports",
    headers: Mapping[str, Any] | None = None,
) -> tuple[int, Mapping[str, str], bytes]:
    """Send a request, and return status, headers and body of its answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, headers=dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read()
    finally:
        connection.close()

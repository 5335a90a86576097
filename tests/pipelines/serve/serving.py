"""A server in a thread of the tests, which real sockets reach, and results that it serves."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from starlette.types import ASGIApp

from uldp.pipelines.live.served import served
from uldp.pipelines.live.watch import Watch
from uldp.pipelines.serve.app import MOST_CONNECTIONS, application
from uldp.pipelines.web.server import bound, server_of


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


class Serving:
    """Serves folders at a free port; a context manager. Each request looks at the folders anew."""

    def __init__(
        self, *folders: Path, app: ASGIApp | None = None, most: int = MOST_CONNECTIONS, **settings: Any
    ) -> None:
        self.folders = served(folders)
        for each in self.folders.values():
            watch: Watch = each.watch
            watch.least, watch.share = 0.0, 1.0
        self._socket = bound("127.0.0.1", 0)
        self.port: int = self._socket.getsockname()[1]
        self._server = server_of(app or application(self.folders, **settings), most)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    @property
    def connections(self) -> Collection[Any]:
        """Those that are open."""
        return list(self._server.server_state.connections)

    def wait(self, condition: Callable[[Collection[Any]], bool]) -> None:
        """Wait until the connections of the server are as they should be."""
        ends = time.monotonic() + 60
        while not condition(self.connections):
            assert time.monotonic() < ends
            time.sleep(0.01)

    def get(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, headers=names)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read())
        finally:
            connection.close()

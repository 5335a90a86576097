"""BigQuery's methods as they look from outside: a server on this machine that answers what a test says."""

import gzip
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

#: Status and body of an answer, by the last part of the path of a request.
Answers = dict[str, tuple[int, Mapping[str, Any]]]


@dataclass
class Service:
    """A BigQuery: its answers, and the path and body of each request that it got."""

    answers: Answers = field(default_factory=dict)
    requests: list[tuple[str, Any]] = field(default_factory=list)

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Serve requests inside of the context; gives the URL."""
        with HTTPServer(("127.0.0.1", 0), self._handler()) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}"
            finally:
                server.shutdown()
                thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                path = self.path.partition("?")[0]
                service.requests.append((path, json.loads(body) if body else None))
                status, answer = service.answers[path.rpartition("/")[2]]
                encoded = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(encoded)))
                self.end_headers()
                self.wfile.write(encoded)

            do_GET = do_POST = _answer  # noqa: N815 (the names of the library)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        return Handler

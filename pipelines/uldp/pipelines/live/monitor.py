"""What a job shows of itself at a port of this machine: its metrics, and whether it goes on."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from uldp.pipelines.live.exposition import MEDIA_TYPE, Exposition
from uldp.pipelines.live.position import Position, now_ms
from uldp.pipelines.live.served import Served
from uldp.pipelines.web.apart import Apart
from uldp.pipelines.web.guard import Guard
from uldp.pipelines.web.server import bound, server_of, url_of

#: A runner that asks for no event for so many milliseconds stands still; it does not ask while it computes estimates.
STANDSTILL_MS = 600_000
_HOST, _MOST_CONNECTIONS = "127.0.0.1", 16


@contextmanager
def monitored(port: int, out: Path, private: Path | None, position: Callable[[], Position]) -> Iterator[str]:
    """Yield the URL, of this machine alone, of a job's metrics, while the context lasts; EndpointError if taken."""
    with bound(_HOST, port, option="--metrics-port") as opened:
        server = server_of(application(Served.of(out.name, out, private), position), _MOST_CONNECTIONS)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]}, name="metrics", daemon=True)
        thread.start()
        try:
            yield f"{url_of(opened)}metrics"
        finally:
            server.should_exit = True
            thread.join()


def application(served: Served, position: Callable[[], Position]) -> ASGIApp:
    """Return the application of ``monitored``."""
    exposition = Exposition([served], lambda _: position(), lambda _: True)
    apart = Apart(at_once=1)

    async def metrics(request: Request) -> Response:
        return Response(await apart.run(exposition.text), headers={"Content-Type": MEDIA_TYPE})

    async def health(request: Request) -> Response:
        silent = now_ms() - position().asked
        stands = silent > STANDSTILL_MS
        text = json.dumps({"status": "stands still" if stands else "ok", "silent_seconds": silent // 1000})
        return Response(text, 503 if stands else 200, media_type="application/json")

    return Guard(Starlette(routes=[Route("/metrics", metrics), Route("/healthz", health)]))

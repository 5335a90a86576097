"""The application: addresses that take messages, give tables to devices, and tell how the server is."""

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from uldp.collector.collections import ServedCollection
from uldp.mechanisms.devices.table import device_table
from uldp.pipelines.intake.commits import Commits, FullError, NotWrittenError
from uldp.pipelines.intake.edge import EdgeError, RateLimit, again, body_of, pass_over
from uldp.pipelines.intake.judging import Again, Refusal
from uldp.pipelines.intake.post_metrics import PostMetrics
from uldp.pipelines.intake.tokens import Tokens
from uldp.pipelines.live.exposition import MEDIA_TYPE
from uldp.pipelines.web.connections import network_of
from uldp.pipelines.web.server import MOST_HEADER_BYTES, is_loopback
from uldp.schemas.records import SENDER
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec

_NAME = re.compile(r"([a-z0-9-]{1,64})-v([1-9][0-9]{0,9})")


class Table(NamedTuple):
    """A table for devices as JSON, and the digest that it holds."""

    digest: str  # the digest that it holds
    text: str  # the table as JSON


class Tables:
    """Gives the table of a collection and version, as served now, which is computed once."""

    def __init__(self, served: Callable[[], Mapping[CollectionKey, ServedCollection]]) -> None:
        self._served = served
        self._made: dict[CollectionKey, tuple[CollectionSpec, Table | None]] = {}

    def get(self, name: str) -> Table | None:
        """Return the table of a name as ``places-v1``; None if there is none."""
        found = _NAME.fullmatch(name)
        key = (found[1], int(found[2])) if found else ("", 0)
        collection = self._served().get(key)
        if collection is None:
            return None
        spec, table = self._made.get(key, (None, None))
        if spec is not collection.spec:
            table = _table_of(collection.spec)
            self._made[key] = collection.spec, table
        return table


def _table_of(spec: CollectionSpec) -> Table | None:
    try:
        table = device_table(spec)
    except ValueError:  # a mechanism of another package, whose devices have no table
        return None
    return Table(table["digest"], json.dumps(table, separators=(",", ":"), ensure_ascii=False))


#: Where devices post.
PATH = "/v1/reports"
#: The seconds in which a message must have come.
BODY_SECONDS = 20.0
#: The seconds in which the rest of a message comes behind its answer: a proxy on this machine has it by then, and who
#: has no token holds a connection no longer.
_REST_SECONDS = 1.0
#: What a browser may send from the page of another origin, and what its page may read.
_METHODS, _SHOWN = ("GET", "HEAD", "POST"), ("ETag", "Retry-After")
_HEADERS = "authorization", "content-encoding", "content-type", "if-none-match"
#: What the server says of itself.
_OPENAPI = Path(__file__).with_name("openapi.json")
#: Whose word about the address of a client is taken: a proxy on this machine.
_PROXIES = "127.0.0.0/8, ::1"


@dataclass(frozen=True, eq=False)
class Intake:
    """Takes posts of who has one of ``tokens``, or of all, and of browsers on pages of ``origins``; ``*`` is any."""

    commits: Commits
    tokens: Tokens | None
    origins: Sequence[str]
    rate_limit: RateLimit = field(default_factory=lambda: RateLimit(1 << 40, 60.0))
    metrics: PostMetrics = field(default_factory=PostMetrics)
    tables: Tables = field(default_factory=lambda: Tables(dict))

    @cached_property
    def _others(self) -> Starlette:
        routes = [
            Route(PATH, _only_posts, methods=["POST"]),
            Route("/v1/tables/{name}", self._table),
            Route("/v1/openapi.json", _openapi),
            Route("/metrics", self._metrics),
            Route("/healthz", _healthy),
        ]
        return Starlette(routes=routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer. Posts take a short way: all else that Starlette does for a request costs as much as judging it."""
        if not scope["path"].startswith("/"):  # the absolute form, which servers have to understand
            scope = {**scope, "path": urlsplit(scope["path"]).path or "/"}
        is_post = scope["path"] == PATH and scope["method"] == "POST"
        await (await self._answer(scope, receive) if is_post else self._others)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        try:
            return await self._take(scope, receive)
        except EdgeError as error:
            made = _Early if error.rest else JSONResponse
            answer: Response = made({"error": str(error)}, error.status, error.headers)
        except TimeoutError:
            answer = _error(408, f"the message did not come in {BODY_SECONDS:g} seconds", {"Connection": "close"})
        except FullError:
            answer = _error(429, "too many messages wait; send this one again", again(1))
        except (NotWrittenError, asyncio.CancelledError):  # the server cancels what is left when it ends
            answer = _error(503, "the message is not written yet; send it again", again(1))
        self.metrics.refused(answer.status_code)
        return answer

    async def _take(self, scope: Scope, receive: Receive) -> Response:
        headers = dict(scope["headers"])
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADER_BYTES:
            raise EdgeError(431, "the headers are too long", {"Connection": "close"})
        sender = self._sender(headers)
        address = f"{network_of(scope['client'][0] if scope['client'] else '')} {sender or ''}"
        async with asyncio.timeout(BODY_SECONDS):
            data = await body_of(headers, receive, lambda number: self.rate_limit.take(address, number))
        began = time.monotonic()
        found = await self.commits.put(data, {} if sender is None else {SENDER: sender})
        if isinstance(found, Again | Refusal):
            status, refusal = (429, found.refusal) if isinstance(found, Again) else (422, found)
            self.metrics.refused(status, refusal.reason, len(data))
            return JSONResponse(refusal.to_json(), status, again(found.seconds) if isinstance(found, Again) else None)
        self.metrics.written(sender, len(data), time.monotonic() - began, 0 if found is None else found.late)
        return Response(status_code=202) if found is None else JSONResponse(found._asdict(), 202)

    async def _metrics(self, request: Request) -> Response:
        """The metrics, which name senders: they are for this machine alone."""
        if request.client is None or not is_loopback(request.client.host):
            return _error(403, "metrics are for clients of this machine", {})
        return Response(self.metrics.text(), headers={"Content-Type": MEDIA_TYPE})

    async def _table(self, request: Request) -> Response:
        """The table of a collection and version, which a page of a named origin may read too."""
        table = self.tables.get(request.path_params["name"])
        if table is None:
            return _error(404, "no table has this name; write COLLECTION-vVERSION", {})
        headers = {"ETag": f'"{table.digest}"', "Cache-Control": "public, max-age=300"}
        asked = request.headers.get("if-none-match", "")
        if asked == "*" or headers["ETag"] in (each.strip().removeprefix("W/") for each in asked.split(",")):
            return Response(status_code=304, headers=headers)
        return Response(table.text, media_type="application/json", headers=headers)

    def _sender(self, headers: dict[bytes, bytes]) -> str | None:
        """Return who sends a post, if tokens say so; EdgeError if nobody may send it."""
        # A browser sends some requests of any page without asking, so CORS alone would only hide the answer.
        origin = headers.get(b"origin")
        if origin is not None and "*" not in self.origins and origin.decode("latin-1") not in self.origins:
            raise EdgeError(403, "browsers may post from named origins alone; see --origin of uldp collect")
        if self.tokens is None:
            return None
        sender = self.tokens.sender(headers.get(b"authorization", b"").decode("latin-1"))
        if sender is None:
            raise EdgeError(401, "bring a token, as Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
        return sender


def application(intake: Intake) -> ASGIApp:
    """Return what answers browsers and proxies as well."""
    app: ASGIApp = intake
    if intake.origins:
        app = CORSMiddleware(
            app, allow_origins=intake.origins, allow_methods=_METHODS, allow_headers=_HEADERS, expose_headers=_SHOWN
        )
    return ProxyHeadersMiddleware(app, _PROXIES)  # type: ignore[arg-type, return-value]


async def _healthy(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _openapi(request: Request) -> Response:
    return Response(_OPENAPI.read_bytes(), media_type="application/json")


async def _only_posts(request: Request) -> Response:
    raise AssertionError("Intake takes posts itself")


class _Early(JSONResponse):
    """An answer before a message has come whole. It reads the rest behind it, or proxies take it for a failure."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(_REST_SECONDS):
                await pass_over(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _error(status: int, text: str, headers: dict[str, str]) -> Response:
    return JSONResponse({"error": text}, status, headers)

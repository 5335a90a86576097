"""The application: which path gives what, and how an error is answered."""

import json
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote as quoted

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from uldp.pipelines.live.exposition import MEDIA_TYPE, Exposition
from uldp.pipelines.live.position import Position
from uldp.pipelines.live.served import Served, is_running, served
from uldp.pipelines.serve.api import ANSWERS, LargeAnswerError, encoded
from uldp.pipelines.serve.pages import OF_A_PAGE, index, page, waiting
from uldp.pipelines.serve.query import Query
from uldp.pipelines.web.apart import Apart, BusyError
from uldp.pipelines.web.guard import Guard
from uldp.pipelines.web.server import bound, is_loopback, server_of, url_of
from uldp.schemas.errors import DataError, RequestError, UldpError
from uldp.schemas.file_errors import file_error_text
from uldp.schemas.specs.mistakes import printable, quote
from uldp.transforms.io.folders import Kind, kind_of

JSON, HTML = "application/json", "text/html; charset=utf-8"
#: So many bytes of answers are kept until a folder changes.
MOST_KEPT = 64 << 20
#: Bytes go out in pieces, so that one that a slow reader does not take fills no memory.
_PIECE = 1 << 16

Make = Callable[[], bytes]


class Pieces(Response):
    """A body that goes out piece by piece."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = memoryview(self.body)
        if scope["method"] != "HEAD":
            for start in range(0, len(body), _PIECE):
                await send(
                    {"type": "http.response.body", "body": bytes(body[start : start + _PIECE]), "more_body": True}
                )
        await send({"type": "http.response.body", "body": b""})


class Site:
    """The answers about some folders, by their names."""

    def __init__(self, folders: Mapping[str, Served], apart: Apart) -> None:
        self.folders = folders
        self._apart = apart
        self._exposition = Exposition(
            [*folders.values()], lambda served: Position.read(served.path), lambda served: is_running(served.path)
        )
        self._kept: OrderedDict[tuple[str, str], bytes] = OrderedDict()

    def routes(self) -> list[Route]:
        """Return the paths."""
        return [
            Route("/", self.index),
            Route("/healthz", self.health),
            Route("/metrics", self.metrics),
            Route("/api/folders", self.list),
            Route("/api/{folder}/state", self.state),
            Route("/api/{folder}/{answer}", self.answer),
            Route("/results/{folder}/", self.page),
            Route("/results/{folder}/state", self.state),
        ]

    async def index(self, request: Request) -> Response:
        """The list of folders, or the only one."""
        if len(self.folders) == 1:
            (name,) = self.folders
            return RedirectResponse(f"results/{quoted(name, safe='')}/")
        return Response(index(self.folders.values()), media_type=HTML)

    async def health(self, request: Request) -> Response:
        """Whether the folders can be read."""
        gone = [name for name, served in self.folders.items() if not served.path.is_dir()]
        text = json.dumps({"status": "gone" if gone else "ok", "gone": gone})
        return Response(text, 503 if gone else 200, media_type=JSON)

    async def metrics(self, request: Request) -> Response:
        """The metrics of all folders."""
        return Response(await self._apart.run(self._exposition.text), headers={"Content-Type": MEDIA_TYPE})

    async def list(self, request: Request) -> Response:
        """The names of the folders."""
        return Response(json.dumps({"folders": [{"folder": name} for name in self.folders]}), media_type=JSON)

    async def state(self, request: Request) -> Response:
        """The name of the state of a folder."""
        state = await self._apart.run(self._folder(request).watch.state)
        return Response(json.dumps({"state": state}), media_type=JSON, headers={"Cache-Control": "no-store"})

    async def page(self, request: Request) -> Response:
        """The page of a folder."""
        served, query = self._folder(request), _query(request, OF_A_PAGE)
        if kind_of(served.path) is Kind.EMPTY:
            return Response(waiting(served), 503, media_type=HTML, headers={"Cache-Control": "no-store"})
        return await self._fresh(request, served, HTML, lambda state: page(served, query, state))

    async def answer(self, request: Request) -> Response:
        """An answer of the API."""
        served, name = self._folder(request), request.path_params["answer"]
        if name not in ANSWERS:
            raise HTTPException(404, f"no answer has this name; there are state, {', '.join(ANSWERS)}")
        make, known = ANSWERS[name]
        query = _query(request, known)
        return await self._fresh(request, served, JSON, lambda state: encoded(make(served, query)))

    def _folder(self, request: Request) -> Served:
        name = request.path_params["folder"]
        if name not in self.folders:
            raise HTTPException(404, "no folder has this name; /api/folders lists them")
        return self.folders[name]

    async def _fresh(self, request: Request, served: Served, kind: str, make: Callable[[str], bytes]) -> Response:
        """Answer from what is kept, if the folder has not changed since; or only that the reader has it already."""
        state = await self._apart.run(served.watch.state)
        headers = {"ETag": f'"{state}"', "Cache-Control": "private, no-cache"}
        if f'"{state}"' in (
            tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")
        ):
            return Response(status_code=304, headers=headers)
        key = state, str(request.url.path) + "?" + request.url.query
        if (body := self._kept.get(key)) is None:
            body = await self._apart.run(lambda: make(state))
            self._kept[key] = body
            while sum(map(len, self._kept.values())) > MOST_KEPT:
                self._kept.popitem(last=False)
        return Pieces(body, media_type=kind, headers=headers)


def _query(request: Request, known: Collection[str]) -> Query:
    return Query(request.query_params.multi_items(), known)


def application(
    folders: Mapping[str, Served], *, names: Collection[str] = (), token: str | None = None, apart: Apart | None = None
) -> ASGIApp:
    """Return the application that serves folders, by name, behind a ``Guard``, with what computes answers apart."""
    site = Site(folders, apart or Apart())
    app = Starlette(
        routes=site.routes(),
        exception_handlers={UldpError: _refused, BusyError: _busy, OSError: _refused, HTTPException: _not_there},
    )
    return Guard(app, frozenset(name.lower() for name in names), token)


async def _refused(request: Request, error: Exception) -> Response:
    """Answer what a reader can mend as one line, which names what is wrong."""
    status = 413 if isinstance(error, LargeAnswerError) else 503 if isinstance(error, (DataError, OSError)) else 400
    return _line(request, file_error_text(error) if isinstance(error, OSError) else str(error), status)


async def _busy(request: Request, error: Exception) -> Response:
    answer = _line(request, str(error), 503)
    answer.headers["Retry-After"] = "5"
    return answer


async def _not_there(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _line(request, error.detail, error.status_code)


def _line(request: Request, text: str, status: int) -> Response:
    line = printable(" ".join(text.splitlines()))
    if request.url.path.startswith("/api/"):
        return Response(json.dumps({"error": line}), status, media_type=JSON)
    return PlainTextResponse(f"{line}\n", status)


#: The connections that readers may hold at once.
MOST_CONNECTIONS = 64


def serve(
    paths: Sequence[Path],
    *,
    host: str,
    port: int,
    names: Collection[str],
    token: str | None,
    say: Callable[[str], None],
    until: Callable[[Callable[[], None]], object],
) -> None:
    """Serve results folders until somebody ends it; RequestError if others could come without a token.

    EndpointError if the port, or any if 0, cannot be opened; ResultsError if a path is no directory.
    """
    if token is None and not is_loopback(host):
        raise RequestError(
            f"--host {quote(host)}: others reach this address, so a token is needed; write one of 16 characters or more"
            " to a file, and name it by --token-file"
        )
    folders = served(paths)
    with bound(host, port) as opened:
        server, url = server_of(application(folders, names=names, token=token), MOST_CONNECTIONS), url_of(opened)
        until(lambda: setattr(server, "should_exit", True))
        for name in folders:
            say(f"{folders[name].path}: {url}results/{name}/")
        say(f"serving at {url}; stop with Ctrl-C")
        server.run(sockets=[opened])
    say("stopped")

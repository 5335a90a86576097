"""The application: one address that takes messages, and one that says that the server lives."""

import asyncio
from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from uldp.pipelines.intake.commits import Commits, FullError, NotWrittenError
from uldp.pipelines.intake.judging import Refusal
from uldp.pipelines.intake.tokens import Tokens
from uldp.schemas.errors import RequestError
from uldp.schemas.records import SENDER

#: Where devices post.
PATH = "/v1/reports"
#: The bytes of a message that the server takes, and the seconds in which it must have come.
MOST_BYTES, BODY_SECONDS = 1 << 20, 20.0
#: What a browser may send from the page of another origin.
_METHODS, _HEADERS = ("POST",), ("authorization", "content-type")
#: The sender tries again after so many seconds.
_AGAIN = {"Retry-After": "1"}


class TooLargeError(RequestError):
    """A message has more bytes than the server takes."""


def application(commits: Commits, *, tokens: Tokens | None, origins: Sequence[str]) -> Starlette:
    """Make the application.

    Args:
        commits: Where posts go.
        tokens: Who may post, and as whom; None for everybody, as nobody.
        origins: Of which pages browsers may post; ``*`` for all.
    """

    async def post(request: Request) -> Response:
        # A browser sends some requests of any page without asking, so CORS alone would only hide the answer.
        origin = request.headers.get("origin")
        if origin is not None and "*" not in origins and origin not in origins:
            return _error(403, "browsers may post from named origins alone; see --origin of uldp collect", {})
        attributes: dict[str, str] = {}
        if tokens is not None:
            sender = tokens.sender(request.headers.get("authorization", ""))
            if sender is None:
                return _error(401, "bring a token, as Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
            attributes[SENDER] = sender
        try:
            async with asyncio.timeout(BODY_SECONDS):
                data = await _body(request)
            found = await commits.put(data, attributes)
        except TooLargeError:
            text = f"a message has {MOST_BYTES:,} bytes at the most; put fewer reports into a batch"
            return _error(413, text, {"Connection": "close"})
        except (TimeoutError, ClientDisconnect):
            return _error(408, f"the message did not come in {BODY_SECONDS:g} seconds", {"Connection": "close"})
        except FullError:
            return _error(429, "too many messages wait; send this one again", _AGAIN)
        except (NotWrittenError, asyncio.CancelledError):  # the server cancels what is left when it ends
            return _error(503, "the message is not written yet; send it again", _AGAIN)
        if isinstance(found, Refusal):
            return JSONResponse(found.to_json(), 422)
        return Response(status_code=202) if found is None else JSONResponse(found._asdict(), 202)

    async def healthy(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    routes = [Route(PATH, post, methods=["POST"]), Route("/healthz", healthy)]
    cors = Middleware(CORSMiddleware, allow_origins=origins, allow_methods=_METHODS, allow_headers=_HEADERS)
    return Starlette(routes=routes, middleware=[cors] if origins else [])


async def _body(request: Request) -> bytes:
    """Read the body.

    Raises:
        TooLargeError: as soon as it is known.
    """
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > MOST_BYTES:
        raise TooLargeError
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > MOST_BYTES:
            raise TooLargeError
    return bytes(data)


def _error(status: int, text: str, headers: dict[str, str]) -> Response:
    return JSONResponse({"error": text}, status, headers)

"""Who may ask: the name of the host in a request, and a token. It stands before everything else.

A page elsewhere can make its own name lead to this machine (DNS rebinding), and then read what the server answers. It
cannot choose the name that a browser sends for an address, so addresses and ``localhost`` are let in, and names only if
they were given.
"""

import base64
import binascii
import hmac
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Headers of every answer. The pages say in a policy of their own what they may load.
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"frame-ancestors 'none'; base-uri 'none'; form-action 'none'; object-src 'none'"),
)


@dataclass(frozen=True)
class Guard:
    """Lets requests through to an application."""

    app: ASGIApp  # the application
    names: Collection[str] = ()  # the names of hosts that requests may have besides addresses and ``localhost``
    #: What requests must bring, as a bearer token or as the password of any user; None for nothing.
    token: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *_HEADERS]}
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope))
        await (refusal or self.app)(scope, receive, with_headers)

    def _refusal(self, method: str, headers: Headers) -> PlainTextResponse | None:
        if not self._knows(headers.getlist("host")):
            text = "this name is none of the server's; use its address, or give the name to uldp serve by --name\n"
            return PlainTextResponse(text, 421)
        if self.token is not None and not _same(_brought(headers.get("authorization", "")), self.token):
            challenge = {"WWW-Authenticate": 'Basic realm="uldp", charset="UTF-8"'}
            return PlainTextResponse("bring the token, as a bearer token or as a password\n", 401, challenge)
        if method not in ("GET", "HEAD"):
            return PlainTextResponse("nothing can be written here\n", 405, {"Allow": "GET, HEAD"})
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return PlainTextResponse("a request has no body here\n", 400, {"Connection": "close"})
        return None

    def _knows(self, hosts: list[str]) -> bool:
        if len(hosts) != 1:
            return False
        name = _without_port(hosts[0]).lower()
        if name == "localhost" or name in self.names:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _brought(authorization: str) -> str:
    scheme, _, rest = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(rest.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, ValueError):
        return ""


def _same(brought: str, token: str) -> bool:
    """Compare in a time that says nothing of the token."""
    return hmac.compare_digest(brought.encode("utf-8", "surrogateescape"), token.encode())

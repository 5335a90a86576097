"""A server of HTTP at an address of this machine."""

import asyncio
import errno
import logging
import socket
from functools import partial
from ipaddress import ip_address
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from uldp.pipelines.web.connections import InTime, Places
from uldp.schemas.errors import EndpointError
from uldp.schemas.locks import system_module
from uldp.schemas.specs.mistakes import plain

#: Windows has no such limits.
_RESOURCE = system_module("resource")
_LOG = logging.getLogger(__name__)

#: The bytes of the headers of a request.
MOST_HEADER_BYTES = 16 << 10
#: An answer that is under way when the server ends has so many seconds.
_ENDING = 3
#: Connections that the kernel holds, and that are taken at once; for a moment these are open besides the others.
_BACKLOG = 128


def is_loopback(host: str) -> bool:
    """Return whether nobody elsewhere reaches an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound(host: str, port: int, option: str = "--port") -> socket.socket:
    """Open a port, or any if 0, of an address of this machine; EndpointError names the option if it cannot."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        opened = socket.socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind(address)
            opened.listen()  # whoever reads the URL may connect at once
        except BaseException:
            opened.close()
            raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise EndpointError(f"port {port} of {host} is taken; name another by {option}") from error
        raise EndpointError(
            f"{host} port {port}: {error.strerror or error}; name another by --host or {option}"
        ) from error
    return opened


def url_of(opened: socket.socket) -> str:
    """Return the URL of a port."""
    host, port = opened.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def server_of(app: ASGIApp, most_connections: int) -> uvicorn.Server:
    """Return a server, ended by SIGTERM and SIGINT in the main thread, of ``Places``: half of its files at most."""
    files = _RESOURCE.getrlimit(_RESOURCE.RLIMIT_NOFILE)[0] if _RESOURCE else -1
    places = Places(most_connections if files < 0 else min(most_connections, files // 2))
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # it warns of each request that is none
    config = uvicorn.Config(
        app,
        http=partial(InTime, places=places),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=_ENDING,
    )
    return _Server(config)


class _Server(uvicorn.Server):
    """Says in one line what the event loop would say in a traceback, as that no file can be opened any more."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        asyncio.get_running_loop().set_exception_handler(_say)
        await super().startup(sockets)


def _say(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if isinstance(error, OSError):
        _LOG.warning("a connection could not be taken: %s", plain(error.strerror or str(error)))
    else:
        loop.default_exception_handler(context)

"""A server of HTTP at an address of this machine."""

import errno
import socket
from ipaddress import ip_address

import uvicorn
from starlette.types import ASGIApp

from uldp.pipelines.web.connections import InTime
from uldp.schemas.errors import EndpointError

#: The bytes of the headers of a request.
MOST_HEADER_BYTES = 16 << 10
#: An answer that is under way when the server ends has so many seconds.
_ENDING = 3


def is_loopback(host: str) -> bool:
    """Return whether nobody elsewhere reaches an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound(host: str, port: int, option: str = "--port") -> socket.socket:
    """Open a port.

    Args:
        host: An address of this machine.
        port: The port; 0 for any.
        option: The option that names the port, for errors.

    Raises:
        EndpointError: if it is taken, or the address is none of this machine.
    """
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
    """Return a server, which ends at SIGTERM and SIGINT if it runs in the main thread."""
    config = uvicorn.Config(
        app,
        http=InTime,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=most_connections,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=_ENDING,
    )
    return uvicorn.Server(config)

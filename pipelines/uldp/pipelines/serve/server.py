"""The server: its address, its process, and its end."""

import errno
import socket
from collections.abc import Callable, Collection, Sequence
from ipaddress import ip_address
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from uldp.pipelines.serve.app import application
from uldp.pipelines.serve.connections import InTime
from uldp.pipelines.serve.served import served
from uldp.schemas.errors import EndpointError, RequestError
from uldp.schemas.specs.mistakes import quote

#: Bounds on what readers hold: connections at once, and the bytes of the headers of a request.
MOST_CONNECTIONS, MOST_HEADER_BYTES = 64, 16 << 10
#: An answer that is under way when the server ends has so many seconds.
_ENDING = 3


def is_loopback(host: str) -> bool:
    """Return whether nobody elsewhere reaches an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound(host: str, port: int) -> socket.socket:
    """Open a port.

    Raises:
        EndpointError: if it is taken, or the address is none of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        opened = socket.socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind(address)
            opened.listen(MOST_CONNECTIONS)  # whoever comes at once waits for the server to begin
        except BaseException:
            opened.close()
            raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise EndpointError(f"port {port} of {host} is taken; name another by --port") from error
        raise EndpointError(
            f"{host} port {port}: {error.strerror or error}; name another by --host or --port"
        ) from error
    return opened


def url_of(opened: socket.socket) -> str:
    """Return the URL of a port."""
    host, port = opened.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def server_of(app: ASGIApp) -> uvicorn.Server:
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
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=_ENDING,
    )
    return uvicorn.Server(config)


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
    """Serve results folders until somebody ends it.

    Args:
        paths: The folders.
        host: The address to listen at.
        port: The port; 0 for any.
        names: Further names that requests may have in their header ``Host``.
        token: What requests must bring; None for nothing.
        say: Called with each line of output.
        until: Called with what ends the server.

    Raises:
        RequestError: if others would reach the address, and there is no token.
        EndpointError: if the port cannot be opened.
        ResultsError: if a path is no directory.
    """
    if token is None and not is_loopback(host):
        raise RequestError(
            f"--host {quote(host)}: others reach this address, so a token is needed; write one of 16 characters or more"
            " to a file, and name it by --token-file"
        )
    folders = served(paths)
    with bound(host, port) as opened:
        server, url = server_of(application(folders, names=names, token=token)), url_of(opened)

        def end() -> None:
            server.should_exit = True

        until(end)
        for name in folders:
            say(f"{folders[name].path}: {url}results/{name}/")
        say(f"serving at {url}; stop with Ctrl-C")
        server.run(sockets=[opened])
    say("stopped")

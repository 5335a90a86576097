"""Beam's gRPC servers in this process, bound to the loopback interface.

Beam opens servers where it starts workers: several processes on this machine, a worker in the process of the command,
a worker pool. They authenticate nobody, and run any code that a caller sends. Beam binds them to all interfaces, and
has no option for another address.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc

#: All interfaces, as Beam writes them. Beam's own clients call the servers at ``localhost``.
_ALL_INTERFACES, _LOOPBACK = "[::]:", "localhost:"


@contextmanager
def loopback_servers() -> Iterator[None]:
    """Bind each gRPC server that this process opens inside of the context to the loopback interface."""
    make = grpc.server

    def server(*args: Any, **options: Any) -> grpc.Server:
        made = make(*args, **options)
        bind = made.add_insecure_port
        made.add_insecure_port = lambda address: bind(address.replace(_ALL_INTERFACES, _LOOPBACK))  # type: ignore[method-assign]
        return made

    grpc.server = server
    try:
        yield
    finally:
        grpc.server = make

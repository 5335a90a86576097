"""The server of warm processes: it imports what commands import, and forks for each request.

Run as ``python -m tests.warm.server SOCKET``. It says that it is ready, and ends when its standard input does.
"""

import atexit
import gc
import importlib
import os
import runpy
import select
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from typing import NoReturn, Self

from tests.unsynchronized import fsync

#: What commands and the programs of documents import, beside what these import themselves.
MODULES = (
    "apache_beam.runners.portability.fn_api_runner",
    "pandas",
    "uldp.pipelines.audit.audit",
    "uldp.pipelines.clients.verification",
    "uldp.pipelines.commands.jobs",
    "uldp.pipelines.jobs.local",
    "uldp.pipelines.report.page",
    "uldp.pipelines.results.compact",
    "uldp.pipelines.simulation.simulate",
)


@dataclass(frozen=True)
class Request:
    """A command, and the directory, environment and files (standard input, output and error) of who asks for it."""

    name: str
    arguments: list[str]
    folder: str
    environment: dict[str, str]
    files: list[int]

    @classmethod
    def receive(cls, connection: socket.socket) -> Self:
        """Read what ``client.ask`` has sent."""
        head, files, _, _ = socket.recv_fds(connection, 8, 3)
        size, data = int.from_bytes(head, "big"), b""
        while len(data) < size:
            data += connection.recv(size - len(data))
        name, folder, count, *texts = data.decode(errors="surrogateescape").split("\0")
        variables, arguments = texts[: int(count)], texts[int(count) :]
        return cls(name, arguments, folder, dict(each.split("=", 1) for each in variables), files)

    def enter(self) -> None:
        """Give this process all of that."""
        for number, file in enumerate(self.files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)

    def run(self) -> None:
        """Run the command."""
        if self.name == "python":
            sys.argv = self.arguments
            sys.path.insert(0, self.folder)
            runpy.run_path(self.arguments[0], run_name="__main__")
        else:
            sys.argv = [self.name, *self.arguments]
            cli.main()


def attend(connection: socket.socket, child: int) -> None:
    """Pass signals on to the command until it ends, and its exit code back; kill it where nobody waits any more."""
    ended = os.pidfd_open(child)
    while ended not in select.select([connection.fileno(), ended], [], [])[0]:
        for number in connection.recv(16) or [signal.SIGKILL]:
            os.kill(child, number)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.send(bytes([code if code >= 0 else 128 - code]))


def accept(path: str) -> Request | None:
    """Accept requests, and return each in a process of its own; in this one, None when standard input has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while 0 not in select.select([server.fileno(), 0], [], [])[0]:
            with server.accept()[0] as connection:
                if os.fork():
                    continue
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                request = Request.receive(connection)
                child = os.fork()
                if not child:
                    return request
                attend(connection, child)
                os._exit(0)
    return None


def end(code: int) -> NoReturn:
    """End this process as the interpreter does, but leave to the system the memory that it was born with.

    To free what the server has imported would write to each page of it, which takes longer than most commands do.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    from uldp.pipelines import cli

    for module in MODULES:
        importlib.import_module(module)
    os.fsync = fsync
    gc.freeze()  # a process need not look through what it was born with
    if (request := accept(sys.argv[1])) is not None:
        request.enter()
        try:
            request.run()
        except SystemExit as ended:
            if not isinstance(ended.code, int | None):
                raise
            end(ended.code or 0)
        end(0)

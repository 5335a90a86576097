"""What stands for ``uldp`` and ``python`` where processes are warm; it imports nothing that takes time."""

import os
import signal
import socket
import sys
from types import FrameType


def ask(path: str, name: str, arguments: list[str]) -> int:
    """Let the server run a command with all that this process has, and return its exit code.

    Signals are passed on. Where this process is killed, the server sees its connection close, and kills the command.
    """
    if name == "python" and (not arguments or arguments[0].startswith("-")):
        os.execv(sys.executable, ["python", *arguments])
    variables = [f"{key}={value}" for key, value in os.environ.items()]
    texts = [name, os.getcwd(), str(len(variables)), *variables, *arguments]
    request = "\0".join(texts).encode(errors="surrogateescape")
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        socket.send_fds(server, [len(request).to_bytes(8, "big")], [0, 1, 2])
        server.sendall(request)

        def pass_on(number: int, _: FrameType | None) -> None:
            server.send(bytes([number]))

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, pass_on)
        return server.recv(1)[0]

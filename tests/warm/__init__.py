"""Processes that start at once: a server imports the project, and forks for each command that a test runs.

A test that runs a command as users do pays two seconds for its imports, and the work of most takes less. What a start
itself does (imports, options of the interpreter, limits of a process) is not tested so: a test of that runs what is
installed.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_CLIENT = Path(__file__).with_name("client.py")
_START = "#!{python} -IS\n{client}\n\nsys.exit(ask({socket!r}, {name!r}, sys.argv[1:]))\n"


@contextmanager
def warm_processes(folder: Path, environment: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """Start a server; yields a directory with ``uldp`` and ``python``, which run in processes that it forks."""
    (path := folder / "bin").mkdir()
    socket, client = str(folder / "socket"), _CLIENT.read_text(encoding="utf-8")
    for name in ("uldp", "python"):
        (path / name).write_text(_START.format(python=sys.executable, client=client, socket=socket, name=name))
        (path / name).chmod(0o700)
    command = [sys.executable, "-m", "tests.warm.server", socket]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        command, cwd=root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        yield path
        server.stdin.close()

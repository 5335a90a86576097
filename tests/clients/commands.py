"""The clients that read tables as JSON, as commands: the programs of their tests."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.clients import commands

CLIENTS = [*commands("vectors")]


def run(client: str, program: str, *arguments: str | Path, lines: Iterable[Mapping[str, Any]] = ()) -> str:
    """Run a program of a client with lines of JSON as its input, and return what it prints."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    command = [*commands(program)[client], *map(str, arguments)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout

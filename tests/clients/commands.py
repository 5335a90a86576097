"""The clients in other languages, as commands: each follows the vectors, and is a fleet of devices."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[2] / "clients"


class Client(NamedTuple):
    """A client.

    Attributes:
        vectors: The command that follows the cases of a file, and prints what differs as JSON.
        fleet: The command whose devices report by a table, each what a line of its input says it holds.
    """

    vectors: tuple[str, ...]
    fleet: tuple[str, ...]


_TYPESCRIPT = FOLDER / "typescript" / "test"
CLIENTS = {
    "typescript": Client(("node", str(_TYPESCRIPT / "vectors.mjs")), ("node", str(_TYPESCRIPT / "fleet.mjs"))),
}


def run(command: tuple[str, ...], *arguments: str | Path, lines: Iterable[Mapping[str, Any]] = ()) -> str:
    """Run a command with lines of JSON as its input, and return what it prints."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([*command, *map(str, arguments)], input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout

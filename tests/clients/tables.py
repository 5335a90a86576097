"""The conformance vectors with the table of each case, for clients that compute by tables."""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance import vectors
from uldp.mechanisms.devices.table import device_table


def cases() -> Iterator[dict[str, Any]]:
    """Yield each case of each file of vectors, with its table."""
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(vectors.names() - {"messages.json", "functions.json"}):
            for case in vectors.read(name)["cases"]:
                yield case | {"table": device_table(vectors.load(case, Path(folder)))}


def write(path: Path) -> None:
    """Write the cases, one a line; integers from 2^53 on become text, because JavaScript would round them."""
    with path.open("w", encoding="utf-8") as file:
        for case in cases():
            file.write(json.dumps(_readable(case)) + "\n")


def _readable(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _readable(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_readable(value) for value in node]
    return str(node) if isinstance(node, int) and abs(node) > 1 << 53 else node


if __name__ == "__main__":
    write(Path(sys.argv[1]))

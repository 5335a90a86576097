"""The conformance vectors with the table of each case, for clients that compute by tables."""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance import vectors
from uldp.mechanisms.devices.table import device_table
from uldp.pipelines.clients.vectors import readable


def cases() -> Iterator[dict[str, Any]]:
    """Yield each case of each file of vectors, with its table."""
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(vectors.names() - {"messages.json", "functions.json"}):
            for case in vectors.read(name)["cases"]:
                yield case | {"table": device_table(vectors.load(case, Path(folder)))}


def write(path: Path) -> None:
    """Write the cases, one a line."""
    with path.open("w", encoding="utf-8") as file:
        for case in cases():
            file.write(json.dumps(readable(case)) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))

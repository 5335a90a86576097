"""A sink that a package from outside of this tree brings: a job writes rows to it, each once."""

import csv
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests import build
from tests.outside.conftest import Run
from uldp.transforms.io.local.stream import LocalStream

PACKAGE = Path(__file__).parent / "sqlite_rows"
PAGE = Path(__file__).parents[2] / "docs" / "own_sink.md"
SPEC = """
collection: c
version: 1
domain: {labels: [never, once, often]}
mechanism: {name: rr, epsilon: 1.0}
window: {size: 1h}
limits: {min_reports: 1}
"""
QUERY = "SELECT label, estimate, n, received FROM panes ORDER BY position"

#: One worker installs the package, and the others do not.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("outside")]


def test_the_page_shows_the_package() -> None:
    shown = re.findall(r"^```(?:python|toml)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert shown == [(PACKAGE / name).read_text(encoding="utf-8") for name in ("sqlite_rows.py", "pyproject.toml")]


def test_a_job_that_is_started_again_writes_each_row_once(uldp: Run, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(SPEC, encoding="utf-8")
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    stream.append([build.message(build.report(number, number % 3, build.START), build.START) for number in range(60)])
    stream.close()
    for _ in range(2):
        uldp("stream", "--spec", "c.yaml", "--from", "stream", "--to", "out", "--estimates-to", "sqlite:rows.db")
    uldp("export", "out", "--to", "rows.csv")
    with (tmp_path / "rows.csv").open(newline="") as file:
        exported = [(row["label"], row["estimate"], row["n"], row["received"]) for row in csv.DictReader(file)]
    with closing(sqlite3.connect(tmp_path / "rows.db")) as connection:
        written = [tuple(map(str, row)) for row in connection.execute(QUERY)]
    assert written == exported
    assert [label for label, *_ in written] == ["never", "once", "often"]

"""The rows of the shipped example in a database are those of ``uldp export``, also after kills of the job."""

import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.pipelines.command import SPEC, TRUTH, ULDP, Run
from uldp.schemas.rows import COLUMNS

#: One worker has the server of PostgreSQL.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgresql")]

KILLS = 3
QUERY = f"SELECT {', '.join(COLUMNS)} FROM "

Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream of the example."""
    folder = tmp_path_factory.mktemp("example")
    truth: list[str | Path] = ["--truth", TRUTH, "--users", "1200", "--to", folder / "stream"]
    subprocess.run([ULDP, "simulate", SPEC, *truth], check=True, capture_output=True)
    return folder / "stream"


def exported(uldp: Run, folder: Path) -> list[Row]:
    """The rows that ``uldp export`` writes of the results of a folder."""
    assert uldp("export", folder / "results", "--to", folder / "rows.parquet")[0] == 0
    return ordered(duckdb.connect().execute(f"{QUERY} '{folder / 'rows.parquet'}'").fetchall())


def ordered(rows: Sequence[Row]) -> list[Row]:
    """Rows in an order of their own, with times in UTC."""
    in_utc = (tuple(one.astimezone(UTC) if isinstance(one, datetime) else one for one in row) for row in rows)
    return sorted(in_utc, key=repr)


def check_labels(rows: Sequence[Row]) -> None:
    """Check that there is something to compare: the rows of three windows, with the labels of cells and tags."""
    assert len({row[list(COLUMNS).index("window_start")] for row in rows}) == 3
    assert {"360", "home"} <= {row[list(COLUMNS).index("label")] for row in rows}


def test_duckdb_has_the_rows_of_export_after_kills(stream: Path, tmp_path: Path, uldp: Run) -> None:
    """The log of DuckDB is there while a job writes: the job is killed at its first write, again and again."""
    log = tmp_path / "rows.duckdb.wal"
    command: list[str | Path] = [ULDP, "stream", "--spec", SPEC, "--from", stream, "--to", "results"]
    command += ["--estimates-to", "duckdb:rows.duckdb"]
    for _ in range(KILLS):
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as job:
            assert job.stdout is not None
            assert job.stdout.readline()  # the command has checked the file, and the job begins
            while job.poll() is None and not log.exists():
                pass
            job.kill()
        assert job.returncode == -9, "the job had ended before"
    subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        kept = ordered(connection.execute(f"{QUERY} estimates").fetchall())
    check_labels(kept)
    assert kept == exported(uldp, tmp_path)


def test_postgresql_has_the_rows_of_export(stream: Path, tmp_path: Path, postgresql: str, uldp: Run) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgresql) as connection:
        connection.execute("DROP TABLE IF EXISTS estimate_panes CASCADE")
    read = ("backfill", "--spec", SPEC, "--from", stream)
    assert uldp(*read, "--to", tmp_path / "results", "--estimates-to", postgresql)[0] == 0
    with psycopg.connect(postgresql) as connection:
        kept = ordered(connection.execute(f"{QUERY} estimates").fetchall())
    check_labels(kept)
    assert kept == exported(uldp, tmp_path)

"""The rows of the shipped example in a database are those of ``uldp export``, also after kills of the job."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from tests.pipelines.command import SPEC, TRUTH, ULDP, Run
from uldp.schemas.rows import COLUMNS
from uldp.transforms.io.endpoints import parse_endpoint

#: One worker has the server of PostgreSQL.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgresql")]

#: As many as the example has windows, of which the first begins at this hour.
KILLS = 3
FIRST_HOUR = 9
QUERY = f"SELECT {', '.join(COLUMNS)} FROM "

#: The command; its first write of rows says by a file that it has come to its commit, and stops there.
STOPS = """
import time
from pathlib import Path
import duckdb
from uldp.pipelines.cli import main

class Connection:
    def __init__(self, connection):
        self._connection = connection
    def __getattr__(self, name):
        return getattr(self._connection, name)
    def __enter__(self):
        self._connection.__enter__()
        return self
    def __exit__(self, *error):
        return self._connection.__exit__(*error)
    def commit(self):
        if {behind}:
            self._connection.commit()
        Path({writes!r}).touch()
        time.sleep(3600)

connect = duckdb.connect
duckdb.connect = lambda path, **options: Connection(connect(path, **options))
main()
"""

Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def stream(warm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream of the example."""
    folder = tmp_path_factory.mktemp("example")
    truth: list[str | Path] = ["--truth", TRUTH, "--users", "1200", "--to", folder / "stream"]
    subprocess.run([warm / "uldp", "simulate", SPEC, *truth], check=True, capture_output=True)
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


class DuckDB:
    """A file of DuckDB, in which the first write of a job lasts until the job is killed."""

    uri = "duckdb:rows.duckdb"

    def __init__(self, folder: Path) -> None:
        self._file, self._writes = folder / "rows.duckdb", folder / "writes"

    def command(self, number: int) -> list[str | Path]:
        """``uldp`` whose write stops before its commit or, each second time, behind it, while the log is there."""
        return [sys.executable, "-c", STOPS.format(writes=str(self._writes), behind=number % 2)]

    @contextmanager
    def writing(self, number: int) -> Iterator[Callable[[], bool]]:
        """Give a function that says whether a job writes."""
        self._writes.unlink(missing_ok=True)
        yield self._writes.exists
        assert self._file.with_suffix(".duckdb.wal").exists() or not number % 2

    def rows(self) -> list[Row]:
        """What the view shows."""
        with duckdb.connect(str(self._file)) as connection:
            return connection.execute(f"{QUERY} estimates").fetchall()


class PostgreSQL:
    """A database of PostgreSQL, in which a write of a window lasts for as long as a test wants."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._run("DROP TABLE IF EXISTS estimate_panes CASCADE")
        parse_endpoint(uri).check_estimates()
        self._run(
            "CREATE OR REPLACE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " PERFORM pg_advisory_xact_lock_shared(extract(hour FROM NEW.window_start AT TIME ZONE 'UTC')::bigint);"
            " RETURN NEW; END $$"
        )
        self._run("CREATE TRIGGER waits BEFORE INSERT ON estimate_panes FOR EACH ROW EXECUTE FUNCTION wait()")

    def command(self, number: int) -> list[str | Path]:
        """``uldp``."""
        return [ULDP]

    @contextmanager
    def writing(self, number: int) -> Iterator[Callable[[], bool]]:
        """Let the write of a window last, and give a function that says whether it has begun."""
        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", [FIRST_HOUR + number])
            waiting = "SELECT pid FROM pg_locks, pg_sleep(0.01) WHERE locktype = 'advisory' AND NOT granted"
            yield lambda: bool(connection.execute(waiting).fetchall())

    def rows(self) -> list[Row]:
        """What the view shows."""
        return self._run(f"{QUERY} estimates")

    def _run(self, sql: str) -> list[Row]:
        with psycopg.connect(self.uri) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(params=["duckdb", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> DuckDB | PostgreSQL:
    return DuckDB(tmp_path) if request.param == "duckdb" else PostgreSQL(request.getfixturevalue("postgresql"))


def test_a_database_has_the_rows_of_export_after_kills(
    database: DuckDB | PostgreSQL, stream: Path, tmp_path: Path, uldp: Run
) -> None:
    """The job is killed while it writes: DuckDB at its first write, PostgreSQL at that of each window in turn."""
    arguments: list[str | Path] = ["stream", "--spec", SPEC, "--from", stream, "--to", "results"]
    arguments += ["--estimates-to", database.uri]
    for number in range(KILLS):
        with (
            database.writing(number) as writes,
            subprocess.Popen([*database.command(number), *arguments], cwd=tmp_path, stdout=subprocess.PIPE) as job,
        ):
            assert job.stdout is not None
            assert job.stdout.readline()  # the command has checked the database, and the job begins
            while job.poll() is None and not writes():
                time.sleep(0.01)
            job.kill()
        assert job.returncode == -9, "the job had ended before"
    subprocess.run([ULDP, *arguments], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    kept = ordered(database.rows())
    check_labels(kept)
    assert kept == exported(uldp, tmp_path)

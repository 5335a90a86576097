"""Each damage of the table of rows in a database: the audit names the database, and the job mends it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from tests.faults.place import SEGMENTS, Place, messages, run_stream, stop_after_half, uldp, write_specs
from uldp.transforms.io.local.stream import LocalStream

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("postgresql")]

Run = Callable[[str], Sequence[tuple[Any, ...]]]
_TABLE = "estimate_panes"
#: The statements of each damage; ``older`` is the table as it was when half of the stream was there.
DAMAGES: Mapping[str, Sequence[str]] = {
    "removed": (f"DROP TABLE {_TABLE} CASCADE",),
    "emptied": (f"DELETE FROM {_TABLE}",),
    "restored": (f"DELETE FROM {_TABLE}", f"INSERT INTO {_TABLE} SELECT * FROM older"),
    "truncated": (f"DELETE FROM {_TABLE} WHERE window_start = (SELECT max(window_start) FROM {_TABLE})",),
}


def _in_duckdb(path: Path) -> Run:
    def run(sql: str) -> Sequence[tuple[Any, ...]]:
        with duckdb.connect(str(path)) as connection:
            return connection.execute(sql).fetchall()

    return run


def _in_postgresql(url: str) -> Run:
    def run(sql: str) -> Sequence[tuple[Any, ...]]:
        with psycopg.connect(url) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    return run


@pytest.fixture(params=["duckdb", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Run]:
    """The URI of an empty database, and a function that runs a statement there."""
    if request.param == "duckdb":
        return f"duckdb:{tmp_path / 'rows.duckdb'}", _in_duckdb(tmp_path / "rows.duckdb")
    url = request.getfixturevalue("postgresql")
    run = _in_postgresql(url)
    for table in (_TABLE, "older"):
        run(f"DROP TABLE IF EXISTS {table} CASCADE")
    return url, run


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_audit_names_a_damaged_table_and_the_job_mends_it(
    damage: str, database: tuple[str, Run], tmp_path: Path
) -> None:
    uri, run = database
    place = Place(tmp_path)
    write_specs(place)
    stream = LocalStream.create(place / "stream", simulated_clock=True)
    with stop_after_half(stream):
        assert run_stream(place, "live", "--estimates-to", uri).code == 1
    run(f"CREATE TABLE older AS SELECT * FROM {_TABLE}")
    for segment in range(SEGMENTS // 2, SEGMENTS):
        stream.append(list(messages(segment)))
    stream.close()
    assert run_stream(place, "live", "--estimates-to", uri).code == 0
    rows = sorted(map(repr, run("SELECT * FROM estimates")))
    assert rows
    audit = ("audit", place / "stream", place / "live", "--estimates-to", uri)
    assert uldp(*audit).code == 0
    for statement in DAMAGES[damage]:
        run(statement)
    ran = uldp(*audit)
    assert (ran.code, uri.partition(":")[0] in ran.err) == (1, True)
    ran = run_stream(place, "live", "--estimates-to", uri)
    assert ran.code == 0, ran.err
    assert sorted(map(repr, run("SELECT * FROM estimates"))) == rows
    assert uldp(*audit).code == 0

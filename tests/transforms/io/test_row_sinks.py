"""Sinks of rows of estimates: each row is there once, with its label, and a view shows the newest panes."""

import logging
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apache_beam as beam
import duckdb
import pytest

from tests import build
from tests.build import HOUR, START
from tests.pipelines.results.samples import ESTIMATE
from uldp.collector.shared_specs import SharedSpecs
from uldp.pipelines.jobs.publishing import PublishEstimates, Publishing
from uldp.schemas.errors import EndpointError
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import Accounting, Pane, PaneKind
from uldp.schemas.rows import COLUMNS, STORED_COLUMNS, rows
from uldp.transforms.io import row_sink
from uldp.transforms.io.duckdb import endpoint as duckdb_endpoint
from uldp.transforms.io.endpoints import Endpoint, parse_endpoint
from uldp.transforms.io.postgresql import endpoint as postgresql_endpoint
from uldp.transforms.io.row_sink import TABLE, VIEW, KeptPane, RowSink

#: One worker has the server.
pytestmark = pytest.mark.xdist_group("postgresql")

SPEC = build.spec(domain={"labels": ["red", "green", "blue"]})
SHARE = build.table("share", [0.2, 0.3, 0.5], [0.01, 0.02, 0.03], n=100)
HIDDEN = build.table("hidden", [0.4], [0.02], keys=("\x1b[2Jhome",), n=100)
EARLY = replace(
    ESTIMATE,
    tables=(SHARE, HIDDEN),
    pane=Pane(PaneKind.EARLY, 0),
    accounting=Accounting(80, 80),
    flags=(),
    epsilon=None,
)
ON_TIME = replace(EARLY, pane=Pane(PaneKind.ON_TIME, 1), accounting=Accounting(100, 100), tables=(HIDDEN, SHARE))
NEXT_HOUR = replace(ON_TIME, window_start=START + HOUR, window_end=START + 2 * HOUR)
OTHER = replace(ON_TIME, estimator="mle")
ALL = (EARLY, ON_TIME, NEXT_HOUR, OTHER)
NEWEST = ALL[1:]

Row = tuple[Any, ...]
#: Asks a sink for some columns of all panes, or of the view.
Query = Callable[[str], list[Row]]


def of_duckdb(path: Path) -> Query:
    def query(sql: str) -> list[Row]:
        with duckdb.connect(str(path)) as connection:
            return connection.execute(sql).fetchall()

    return query


def of_parquet(folder: Path) -> Query:
    def query(sql: str) -> list[Row]:
        with duckdb.connect() as connection:
            connection.execute(f"CREATE VIEW {TABLE} AS SELECT * FROM '{folder}/**/*.parquet'")
            connection.execute(
                f"CREATE VIEW {VIEW} AS SELECT {', '.join(COLUMNS)} FROM {TABLE} QUALIFY age = max(age) OVER"
                " (PARTITION BY collection, version, device_digest, window_start, window_end, estimator)"
            )
            return connection.execute(sql).fetchall()

    return query


def of_postgresql(url: str) -> Query:
    psycopg = pytest.importorskip("psycopg")

    def query(sql: str) -> list[Row]:
        with psycopg.connect(url) as connection:
            cursor = connection.execute(sql)
            found: list[Row] = cursor.fetchall() if cursor.description else []
            return found

    return query


def emptied(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Query]:
    """The URI of a place without a table, and what asks it."""
    match kind:
        case "duckdb":
            return f"duckdb:{tmp_path / 'e.duckdb'}", of_duckdb(tmp_path / "e.duckdb")
        case "parquet":
            return f"parquet:{tmp_path / 'rows'}", of_parquet(tmp_path / "rows")
        case _:
            uri: str = request.getfixturevalue("postgresql")
            query = of_postgresql(uri)
            query(f"DROP TABLE IF EXISTS {TABLE} CASCADE")
            return uri, query


@pytest.fixture(params=["duckdb", "parquet", "postgresql"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Endpoint, Query]:
    """A sink that is empty, after its check."""
    uri, query = emptied(request.param, request, tmp_path)
    endpoint = parse_endpoint(uri)
    Publishing(endpoint).check(here=True)
    return endpoint, query


def publish(endpoint: Endpoint, estimates: Sequence[Estimate]) -> None:
    with beam.Pipeline("FnApiRunner") as pipeline:
        made = pipeline | beam.Create(estimates, reshuffle=False).with_output_types(Estimate)
        _ = made | PublishEstimates(endpoint, [SPEC])


def expected(names: Sequence[str], *estimates: Estimate) -> list[Row]:
    return sorted((tuple(row[name] for name in names) for one in estimates for row in rows(one, SPEC)), key=repr)


def kept(query: Query) -> list[Row]:
    return sorted(query(f"SELECT {', '.join(STORED_COLUMNS)} FROM {TABLE}"), key=repr)


def newest(query: Query) -> list[Row]:
    return sorted(query(f"SELECT {', '.join(COLUMNS)} FROM {VIEW}"), key=repr)


def in_utc(table: Sequence[Row]) -> list[Row]:
    """Rows whose times compare with those of ``rows``, whatever zone a client shows them in."""
    return sorted(
        (tuple(cell.astimezone(UTC) if isinstance(cell, datetime) else cell for cell in row) for row in table), key=repr
    )


def test_each_row_is_there_once_however_often_it_is_written(sink: tuple[Endpoint, Query]) -> None:
    endpoint, query = sink
    for _ in range(2):
        publish(endpoint, ALL)
        publish(endpoint, [ON_TIME, ON_TIME])
        assert in_utc(kept(query)) == expected(list(STORED_COLUMNS), *ALL)
    assert {row[0] for row in query(f"SELECT label FROM {TABLE}")} == {"red", "green", "blue", "\ufffd[2Jhome"}


def test_the_view_shows_the_newest_pane_of_each_window(sink: tuple[Endpoint, Query]) -> None:
    endpoint, query = sink
    publish(endpoint, [NEXT_HOUR, ON_TIME, OTHER])
    publish(endpoint, [EARLY])
    assert in_utc(newest(query)) == expected(list(COLUMNS), *NEWEST)


def test_a_pane_that_is_written_again_is_replaced(sink: tuple[Endpoint, Query]) -> None:
    endpoint, query = sink
    other = replace(ON_TIME, tables=(replace(SHARE, values=SHARE.values[::-1].copy()), HIDDEN))
    publish(endpoint, [ON_TIME])
    publish(endpoint, [other])
    assert in_utc(kept(query)) == expected(list(STORED_COLUMNS), other)


def test_a_check_changes_nothing_that_is_there(sink: tuple[Endpoint, Query]) -> None:
    endpoint, query = sink
    publish(endpoint, ALL)
    Publishing(endpoint).check(here=True)
    assert in_utc(kept(query)) == expected(list(STORED_COLUMNS), *ALL)


def kept_panes(endpoint: Endpoint) -> set[KeptPane]:
    assert isinstance(endpoint, RowSink)
    panes = endpoint.panes()
    assert panes is not None
    return set(panes)


def test_a_place_tells_the_newest_panes(sink: tuple[Endpoint, Query]) -> None:
    endpoint, _ = sink
    assert kept_panes(endpoint) == set()
    publish(endpoint, ALL)
    found = kept_panes(endpoint)
    assert {KeptPane.of(each) for each in NEWEST} <= found <= {KeptPane.of(each) for each in ALL}


def test_a_place_that_is_gone_tells_nothing_and_stays_gone(sink: tuple[Endpoint, Query], tmp_path: Path) -> None:
    endpoint, query = sink
    if "postgresql" in str(endpoint):
        query(f"DROP TABLE {TABLE} CASCADE")
    for path in tmp_path.iterdir():
        path.unlink() if path.is_file() else shutil.rmtree(path)
    assert kept_panes(endpoint) == set()
    assert not list(tmp_path.iterdir())


def test_a_bundle_holds_few_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    written: list[int] = []

    class Counting(RowSink):
        def __str__(self) -> str:
            return "counting:"

        def write(self, estimates: Sequence[row_sink.Made]) -> None:
            written.append(len(estimates))

    monkeypatch.setattr(row_sink, "MAX_ROWS", 8)  # each estimate has 4
    fn = row_sink._WriteRowsFn(Counting(), SharedSpecs([SPEC]))
    fn.start_bundle()
    for revision in range(5):
        fn.process(replace(EARLY, pane=Pane(PaneKind.EARLY, revision)))
    fn.finish_bundle()
    assert written == [2, 2, 1]


# DuckDB lets one process at a time open a file.

HOLD = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.readline()"


@pytest.fixture
def held(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that has the file open until it reads a line."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "e.duckdb")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process


def test_a_file_that_another_program_has_open_is_refused(
    held: "subprocess.Popen[str]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_endpoint, "WAIT_SECONDS", 0.0)
    with pytest.raises(EndpointError, match=r"e\.duckdb: close the other program that has the file open \(IO Error"):
        parse_endpoint(f"duckdb:{tmp_path / 'e.duckdb'}").check_estimates()


def test_a_worker_and_the_check_before_it_wait_until_another_one_has_written(
    held: "subprocess.Popen[str]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def let_go(seconds: float) -> None:
        held.communicate("\n")

    endpoint = parse_endpoint(f"duckdb:{tmp_path / 'e.duckdb'}")
    monkeypatch.setattr(time, "sleep", let_go)
    with caplog.at_level(logging.WARNING):
        endpoint.check_estimates()
    assert [line.rpartition("; ")[2] for line in caplog.messages] == ["waiting 60 s for it"]
    publish(endpoint, [ON_TIME])
    assert held.returncode == 0
    assert len(kept(of_duckdb(tmp_path / "e.duckdb"))) == 4


# PostgreSQL may be restarted.


def refusing(times: int, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let the next connections be refused, and return the pauses between them, for which nobody waits."""
    psycopg = pytest.importorskip("psycopg")
    connect, left, pauses = psycopg.connect, iter(range(times)), list[float]()

    def refuse(*arguments: Any, **settings: Any) -> Any:
        if next(left, None) is None:
            return connect(*arguments, **settings)
        raise psycopg.OperationalError("connection refused")

    monkeypatch.setattr(psycopg, "connect", refuse)
    monkeypatch.setattr(time, "sleep", pauses.append)
    return pauses


def test_a_worker_waits_for_a_server_that_is_restarted(postgresql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = of_postgresql(postgresql)
    query(f"DROP TABLE IF EXISTS {TABLE} CASCADE")
    endpoint = parse_endpoint(postgresql)
    assert isinstance(endpoint, RowSink)
    endpoint.check_estimates()
    pauses = refusing(5, monkeypatch)
    endpoint.write([(ON_TIME, SPEC)])
    assert len(pauses) == 5
    assert len(kept(query)) == 4


def test_a_worker_gives_up_after_a_minute_and_a_command_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = parse_endpoint("postgresql://nobody@nowhere/nothing")
    assert isinstance(endpoint, RowSink)
    pauses = refusing(1000, monkeypatch)
    for ask in (endpoint.check_estimates, lambda: kept_panes(endpoint)):
        with pytest.raises(EndpointError, match="check that the server runs"):
            ask()
    assert pauses == []
    with pytest.raises(EndpointError, match="check that the server runs"):
        endpoint.write([(ON_TIME, SPEC)])
    assert 50 < sum(pauses) <= postgresql_endpoint.WAIT_SECONDS


@pytest.mark.parametrize(
    ("url", "recorded"),
    [
        ("postgresql://me:hush@h:5433/d", "postgresql://me@h:5433/d"),
        ("postgresql://h/d?password=hush&sslmode=require&ssl%70assword=hush", "postgresql://h/d?sslmode=require"),
        ("postgresql://me:hush@/d?host=/run/sock%20et", "postgresql://me@/d?host=/run/sock%20et"),
        ("postgresql://h/d?oauth_client_secret=hush", "postgresql://h/d"),
    ],
)
def test_what_a_job_records_of_a_url_holds_no_password(url: str, recorded: str) -> None:
    endpoint = parse_endpoint(url)
    assert isinstance(endpoint, RowSink)
    assert endpoint.recorded == recorded
    again = parse_endpoint(recorded)
    assert isinstance(again, RowSink)
    assert again.recorded == recorded


# Errors.


@pytest.mark.parametrize("uri", ["duckdb:", "duckdb::memory:", "duckdb:md:warehouse", "duckdb:s3://b/f"])
def test_duckdb_takes_files_of_this_machine(uri: str) -> None:
    with pytest.raises(EndpointError, match=f"^{uri}: not a file of this machine; write duckdb:FILE$"):
        parse_endpoint(uri)


def test_parquet_names_a_folder(tmp_path: Path) -> None:
    with pytest.raises(EndpointError, match=r"^parquet:: names no folder; write parquet:FOLDER$"):
        parse_endpoint("parquet:")
    (tmp_path / "file").touch()
    for place in ("file", "file/below"):
        with pytest.raises(EndpointError, match=r": (File exists|Not a directory); name a folder that can be written$"):
            parse_endpoint(f"parquet:{tmp_path / place}").check_estimates()


@pytest.mark.parametrize("content", [b"no database" * 1000, None])
def test_a_file_that_cannot_be_opened_is_named(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "e.duckdb" if content else tmp_path / "nowhere" / "e.duckdb"
    if content:
        path.write_bytes(content)
    with pytest.raises(
        EndpointError, match=rf"^duckdb:{re.escape(str(path))}: name another file \(IO Error: [^\n]*\)$"
    ):
        parse_endpoint(f"duckdb:{path}").check_estimates()


@pytest.mark.parametrize("kind", ["duckdb", "postgresql"])
def test_a_table_of_other_columns_is_refused(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    uri, query = emptied(kind, request, tmp_path)
    query(f"CREATE TABLE {TABLE} (device_digest text, age text)")
    with pytest.raises(EndpointError, match=rf": the table {TABLE} has no column table_name; "):
        parse_endpoint(uri).check_estimates()
    query(f"DROP TABLE {TABLE}")


@pytest.mark.parametrize("kind", ["duckdb", "postgresql"])
def test_a_table_that_takes_no_row_twice_is_refused_before_the_job_runs(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    uri, query = emptied(kind, request, tmp_path)
    parse_endpoint(uri).check_estimates()
    query(f"DROP VIEW {VIEW}")
    query(f"CREATE TABLE copy AS SELECT * FROM {TABLE}")  # which has no primary key
    query(f"DROP TABLE {TABLE}")
    query(f"ALTER TABLE copy RENAME TO {TABLE}")
    with pytest.raises(EndpointError, match=r"(?i)constraint|unique"):
        parse_endpoint(uri).check_estimates()
    query(f"DROP TABLE {TABLE} CASCADE")


def test_a_user_without_rights_is_told_which(postgresql: str) -> None:
    query = of_postgresql(postgresql)
    query(f"DROP TABLE IF EXISTS {TABLE} CASCADE")
    parse_endpoint(postgresql).check_estimates()
    query("CREATE ROLE reader LOGIN PASSWORD 'r'")
    with pytest.raises(EndpointError, match=rf"no permission; GRANT INSERT, UPDATE, SELECT ON {TABLE} to the user$"):
        parse_endpoint(re.sub("//.*@", "//reader:r@", postgresql)).check_estimates()
    query(f"GRANT INSERT, UPDATE, SELECT ON {TABLE} TO reader")
    parse_endpoint(re.sub("//.*@", "//reader:r@", postgresql)).check_estimates()


def test_no_message_has_the_password(postgresql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = postgresql.replace("secret", "hush") + "&application_name=hush"
    unreadable = postgresql.replace("a%20secret", "hush%zz")
    unknown = postgresql.replace("a%20secret", "hush") + "&hush=hush"
    for uri in (wrong, unreadable, unknown):
        endpoint = parse_endpoint(uri)
        with pytest.raises(EndpointError, match=r"^postgresql://uldp@/postgres: (check that|not a URL)") as error:
            endpoint.check_estimates()
        for text in (str(endpoint), repr(endpoint), endpoint.name, str(error.value)):
            assert "hush" not in text
    for uri in ("postgresql:hush@x/y", "postgresql://[hush/y", "postgresql://h:hush/y"):
        with pytest.raises(EndpointError, match=r"^postgresql: not a URL; write postgresql://USER@HOST/DATABASE$"):
            parse_endpoint(uri)


@pytest.mark.parametrize(
    ("uri", "library", "extra"),
    [
        ("duckdb:f", "duckdb", "duckdb"),
        ("parquet:f", "pyarrow.parquet", "export"),
        ("postgresql://h/d", "psycopg", "postgresql"),
        ("bigquery:project.uldp.estimate_panes", "google.cloud.bigquery", "gcp"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(
    uri: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(EndpointError, match=rf"pip install 'uldp-stream\[{extra}\].*'$"):
        parse_endpoint(uri).check_estimates()


def test_a_file_of_parquet_that_is_cut_is_not_there_and_a_copy_of_one_is_named(tmp_path: Path) -> None:
    endpoint = parse_endpoint(f"parquet:{tmp_path / 'rows'}")
    publish(endpoint, ALL)
    before = kept_panes(endpoint)
    path = next((tmp_path / "rows").rglob("*.parquet"))
    content = path.read_bytes()
    for cut in (b"", content[:-1]):
        path.write_bytes(cut)
        assert len(before - kept_panes(endpoint)) == 1
    path.write_bytes(content)
    path.with_name(f"copy-of-{path.name}").write_bytes(content)
    with pytest.raises(EndpointError, match=r"copy-of-.*, which no job has written; remove it"):
        kept_panes(endpoint)

"""Rows for BigQuery, the table and the view that they meet, and the requests that carry them."""

import json
import random
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, START
from tests.fakes.bigquery import Service
from uldp.pipelines.results.newest import newest
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import Accounting, Pane, PaneKind, Sender, Signals, Superseded
from uldp.transforms.io.bigquery import sink
from uldp.transforms.io.bigquery.rows import Row, estimate_row, estimates_table, insert_id
from uldp.transforms.io.bigquery.sink import WriteEstimatesToBigQuery
from uldp.transforms.io.bigquery.table import BigQueryError, new_client

DEPLOY = Path(__file__).parents[3] / "deploy" / "bigquery"
TABLE = "project.uldp.estimate_panes"
SPEC = build.spec(version=2, domain={"size": 2})


def row_of(one: Estimate) -> Row:
    return estimate_row(one, SPEC)


def estimate(estimator: str = "mle", **changes: Any) -> Estimate:
    support = build.pane([5, 1, 0], "late", 3, key=("c", 2), accounting=Accounting(received=8, counted=6, late=2))
    tags = {"home": (0.25, 0.125)}
    return build.estimate(
        replace(support, **changes), [0.75, 0.25], [0.5, 0.5], tags, mechanism="urr", estimator=estimator
    )


FULL = estimate(
    flags=("busy_sender",),
    supersedes=Superseded(2, 4),
    signals=Signals((1, 2), (3,), 4, Sender("0a", 7)),
)


NO_PRIVACY = replace(estimate(), epsilon=None, tables=estimate().tables[:1])


# Rows.


def table(name: str, shape: list[int], values: list[float], stderr: list[float], **fields: Any) -> Row:
    """A table without intervals from 6 reports, as BigQuery takes it."""
    empty: Row = {
        "of": [],
        "keys": [],
        "low": [],
        "high": [],
        "level": 0.95,
        "n": 6,
        "whole": False,
        "basis": "none",
        "simultaneous": False,
    }
    return empty | {"name": name, "shape": shape, "values": values, "stderr": stderr} | fields


def test_a_row_holds_all_of_an_estimate() -> None:
    assert row_of(FULL) == {
        "key": f"c/2/{START}/{START + HOUR}/mle",
        "age": "0000000000000008/1/2/00000003",
        "collection": "c",
        "version": 2,
        "channel": build.CHANNEL,
        "window_start": "2026-01-01T09:00:00Z",
        "window_end": "2026-01-01T10:00:00Z",
        "pane": {"kind": "late", "revision": 3},
        "mechanism": "urr",
        "epsilon": 1.0,
        "lasting_epsilon": None,
        "budget": None,
        "estimator": "mle",
        "n": 6,
        "tables": [
            table("share", [2], [0.75, 0.25], [0.5, 0.5], whole=True),
            table("hidden", [1], [0.25], [0.125], keys=["home"]),
            table("bound", [1], [0.5], [0.0]),
        ],
        "accounting": {"received": 8, "counted": 6, "duplicate": 0, "late": 2, "rejected": 0, "missing": 0},
        "flags": ["busy_sender"],
        "supersedes": {"revision": 2, "n": 4},
        "signals": {
            "early": [1, 2],
            "past": [3],
            "improbable_reports": 4,
            "busiest_sender": {"digest": "0a", "reports": 7},
        },
    }


def test_a_table_of_labelled_values_has_their_labels() -> None:
    row = estimate_row(FULL, build.spec(version=2, domain={"labels": ["red", "green"]}))
    assert [table["keys"] for table in row["tables"]] == [["red", "green"], ["home"], []]


@pytest.mark.parametrize(
    "other",
    [
        estimate(collection="d"),
        estimate(version=3),
        estimate(window_start=START - 1),
        estimate(window_end=START + HOUR + 1),
        estimate("empirical"),
    ],
)
def test_another_estimate_has_another_key(other: Estimate) -> None:
    assert row_of(other)["key"] != row_of(estimate())["key"]


def test_equal_rows_have_one_insert_id_and_others_have_others() -> None:
    rows = [row_of(one) for one in (estimate(), FULL, estimate(pane=Pane(PaneKind.LATE, 4)))]
    assert len({insert_id(row) for row in rows}) == 3
    assert insert_id(row_of(FULL)) == insert_id(dict(reversed(row_of(FULL).items())))
    assert all(len(insert_id(row)) <= 128 for row in rows)  # as BigQuery limits it


panes = st.builds(
    lambda kind, revision, received, incomplete, estimator: estimate(
        estimator,
        pane=Pane(kind, revision),
        accounting=Accounting(received=received, counted=received),
        flags=("incomplete",) if incomplete else (),
    ),
    st.sampled_from(PaneKind),
    st.integers(0, 300),
    st.integers(0, 20) | st.integers(0, 2**62),
    st.booleans(),
    st.sampled_from(["mle", "empirical"]),
)


@given(st.lists(panes, min_size=1, max_size=8))
def test_the_row_of_the_highest_age_is_the_pane_that_show_takes(fired: list[Estimate]) -> None:
    best: dict[str, Row] = {}
    for row in map(row_of, fired):
        if row["key"] not in best or row["age"] > best[row["key"]]["age"]:
            best[row["key"]] = row
    assert sorted(best.values(), key=lambda row: str(row["key"])) == [row_of(pane) for pane in newest(fired)]


# The table.


def assert_fits(row: Any, columns: Sequence[Mapping[str, Any]]) -> None:
    """What BigQuery checks of a row: every column and no other, of the type and mode that the table says."""
    assert row.keys() == {column["name"] for column in columns}
    kinds = {"STRING": str, "INTEGER": int, "FLOAT": float, "BOOLEAN": bool, "TIMESTAMP": str, "RECORD": dict}
    for column in columns:
        value = row[column["name"]]
        if value is None:
            assert column["mode"] == "NULLABLE", column["name"]
            continue
        assert isinstance(value, list) == (column["mode"] == "REPEATED"), column["name"]
        for item in value if isinstance(value, list) else [value]:
            assert type(item) is kinds[column["type"]], column["name"]
            if column["type"] == "RECORD":
                assert_fits(item, column["fields"])


@pytest.mark.parametrize("one", [FULL, estimate(), NO_PRIVACY])
def test_rows_fit_the_table(one: Estimate) -> None:
    assert_fits(json.loads(json.dumps(row_of(one))), estimates_table())


def fields(columns: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for column in columns:
        yield column
        yield from fields(column.get("fields", ()))


def test_every_column_says_what_it_is() -> None:
    assert all(0 < len(field["description"]) <= 1024 for field in fields(estimates_table()))


def test_the_table_that_is_shipped_is_the_table() -> None:
    shipped = json.loads((DEPLOY / "estimate_panes.json").read_text(encoding="utf-8"))
    assert shipped == estimates_table()


# The view.


def view_of(rows: Sequence[Row]) -> list[Row]:
    """What the shipped view shows of a table with these rows; SQLite knows all the SQL that is in it."""
    names = [column["name"] for column in estimates_table()]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("ATTACH ':memory:' AS uldp")
        connection.execute(f"CREATE TABLE uldp.estimate_panes ({', '.join(names)})")
        for row in rows:
            values = [json.dumps(row[name]) for name in names]
            connection.execute(f"INSERT INTO uldp.estimate_panes VALUES ({', '.join('?' * len(names))})", values)
        connection.executescript((DEPLOY / "estimates.sql").read_text(encoding="utf-8"))
        found = connection.execute("SELECT * FROM uldp.estimates")
        shown = [column[0] for column in found.description]
        assert shown == names
        return [dict(zip(shown, map(json.loads, values), strict=True)) for values in found]


@given(st.lists(panes, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_view_shows_the_newest_pane_once_however_rows_come(fired: list[Estimate], order: random.Random) -> None:
    rows = [row_of(pane) for pane in fired]
    sent = rows + order.sample(rows, order.randint(0, len(rows)))  # some of them twice
    order.shuffle(sent)
    shown = sorted(view_of(sent), key=lambda row: str(row["key"]))
    assert shown == [row_of(pane) for pane in newest(fired)]


# Requests.


class FakeClient:
    """Keeps what is inserted; refuses what ``refused`` names, and fails once when told to."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, list[Row], list[str]]] = []
        self.refused: set[str] = set()
        self.open = True

    def insert_rows_json(self, table: str, json_rows: Sequence[Row], row_ids: Sequence[str]) -> Sequence[Any]:
        refused = [index for index, row in enumerate(json_rows) if row["collection"] in self.refused]
        if refused:
            return [{"index": index, "errors": [{"reason": "invalid"}]} for index in refused]
        self.requests.append((table, list(json_rows), list(row_ids)))
        return []

    def close(self) -> None:
        self.open = False


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    fake = FakeClient()
    monkeypatch.setattr(sink, "new_client", lambda table: fake)
    return fake


def write(estimates: Sequence[Estimate]) -> None:
    with beam.Pipeline("FnApiRunner") as pipeline:
        created = pipeline | beam.Create(estimates, reshuffle=False).with_output_types(Estimate)
        _ = created | WriteEstimatesToBigQuery(TABLE, [SPEC])


def revisions(count: int) -> list[Estimate]:
    return [estimate(pane=Pane(PaneKind.EARLY, revision)) for revision in range(count)]


def test_rows_are_inserted_with_their_ids(client: FakeClient) -> None:
    write(revisions(3))
    ((table, rows, ids),) = client.requests
    assert table == TABLE
    assert rows == [row_of(one) for one in revisions(3)]
    assert ids == [insert_id(row) for row in rows]
    assert not client.open


def test_a_bundle_that_is_tried_again_sends_the_same_rows_under_the_same_ids(client: FakeClient) -> None:
    write(revisions(3))
    write(revisions(3))
    assert client.requests[0] == client.requests[1]


@pytest.mark.parametrize(
    ("limit", "most", "sizes"),
    [
        ("MAX_ROWS", 2, [2, 2, 1]),
        ("MAX_ROWS", 5, [5]),
        ("MAX_BYTES", 1, [1, 1, 1, 1, 1]),
        ("MAX_BYTES", 2 * len(json.dumps(row_of(revisions(1)[0]))), [2, 2, 1]),
    ],
)
def test_requests_are_of_a_size_that_is_taken(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(sink._InsertRowsFn, limit, most)
    write(revisions(5))
    assert [len(rows) for _, rows, _ in client.requests] == sizes
    assert [row for _, rows, _ in client.requests for row in rows] == [row_of(one) for one in revisions(5)]


def test_a_row_that_is_refused_fails_the_job(client: FakeClient) -> None:
    client.refused = {"c"}
    with pytest.raises(Exception, match=rf"{TABLE}: BigQuery refused 1 of 1 rows: .*invalid"):
        write([estimate()])


@pytest.mark.parametrize("table", ["", "uldp.estimates", "project:uldp.estimates", "project.uldp.a b", "Project.d.t"])
def test_a_table_has_three_parts(table: str) -> None:
    with pytest.raises(BigQueryError, match=r"write PROJECT\.DATASET\.TABLE"):
        WriteEstimatesToBigQuery(table, [SPEC])


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.cloud.bigquery", None)
    with pytest.raises(BigQueryError, match=r"pip install 'uldp-stream\[gcp\]'"):
        new_client(TABLE)


def test_the_client_library_sends_rows_with_their_ids(service: Service) -> None:
    service.answers["insertAll"] = 200, {"kind": "bigquery#tableDataInsertAllResponse"}
    write([FULL, NO_PRIVACY])
    ((path, body),) = service.requests
    rows = [row_of(FULL), row_of(NO_PRIVACY)]
    assert path.endswith("/projects/project/datasets/uldp/tables/estimate_panes/insertAll")
    assert body["rows"] == [{"insertId": insert_id(row), "json": row} for row in rows]

"""Rows for BigQuery: the table and the view that are shipped take and show them, and the requests that carry them."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apache_beam as beam
import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, START
from tests.fakes.bigquery import Service
from uldp.collector.shared_specs import SharedSpecs
from uldp.pipelines.results.newest import newest
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import Accounting, Pane, PaneKind
from uldp.schemas.rows import COLUMNS, STORED_COLUMNS, rows
from uldp.transforms.io.bigquery import endpoint
from uldp.transforms.io.bigquery.endpoint import BigQueryEndpoint, insert_id
from uldp.transforms.io.bigquery.table import columns
from uldp.transforms.io.json_rows import JsonRow, json_rows

DEPLOY = Path(__file__).parents[3] / "deploy" / "bigquery"
TABLE = "project.uldp.estimate_panes"
SPEC = build.spec(version=2, domain={"labels": ["red", "green"]})
#: The types of BigQuery by those of DuckDB, which is the engine of these tests.
TYPES = {
    "STRING": "VARCHAR",
    "INTEGER": "BIGINT",
    "FLOAT": "DOUBLE",
    "TIMESTAMP": "TIMESTAMP WITH TIME ZONE",
    "BOOLEAN": "BOOLEAN",
}


def estimate(estimator: str = "mle", **changes: Any) -> Estimate:
    support = build.pane([5, 1, 0], "late", 3, key=("c", 2), accounting=Accounting(received=8, counted=6, late=2))
    tags = {"home": (0.25, 0.125)}
    return build.estimate(
        replace(support, **changes), [0.75, 0.25], [0.5, 0.5], tags, mechanism="urr", estimator=estimator
    )


FULL = estimate(flags=("busy_sender",))
ROWS = len(list(rows(FULL, SPEC)))


def sent(*estimates: Estimate) -> list[JsonRow]:
    return [row for one in estimates for row in json_rows(one, SPEC)]


def expected(*estimates: Estimate) -> list[dict[str, Any]]:
    return [row for one in estimates for row in rows(one, SPEC)]


def in_order(table: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(table, key=repr)


class BigQuery:
    """The table and the view that are shipped, in another engine. It knows no insert ids."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("CREATE SCHEMA uldp")
        modes = {"REQUIRED": " NOT NULL", "NULLABLE": ""}
        shipped = json.loads((DEPLOY / "estimate_panes.json").read_text(encoding="utf-8"))
        typed = ", ".join(f"{each['name']} {TYPES[each['type']]}{modes[each['mode']]}" for each in shipped)
        self._connection.execute(f"CREATE TABLE uldp.estimate_panes ({typed})")
        self._connection.execute((DEPLOY / "estimates.sql").read_text(encoding="utf-8"))

    def clear(self) -> None:
        self._connection.execute("DELETE FROM uldp.estimate_panes")

    def insert(self, table: Sequence[JsonRow]) -> None:
        self._connection.register("batch", pa.Table.from_pylist(list(table)))
        self._connection.execute("INSERT INTO uldp.estimate_panes BY NAME SELECT * FROM batch")

    def shown(self, name: str) -> list[dict[str, Any]]:
        """The rows of the table or the view."""
        found = self._connection.execute(f"SELECT * FROM uldp.{name}")
        names = [column[0] for column in found.description]
        return [dict(zip(names, map(in_utc, row), strict=True)) for row in found.fetchall()]


def in_utc(value: object) -> object:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


@pytest.fixture(scope="module")
def whole() -> BigQuery:
    return BigQuery()


@pytest.fixture
def bigquery(whole: BigQuery) -> BigQuery:
    whole.clear()
    return whole


# The table and the view.


def test_the_table_that_is_shipped_has_the_columns_of_rows() -> None:
    shipped = json.loads((DEPLOY / "estimate_panes.json").read_text(encoding="utf-8"))
    missing = sorted(set(STORED_COLUMNS) - {each["name"] for each in shipped})
    assert not missing, f"add {missing} to deploy/bigquery/estimate_panes.json and estimates.sql"
    assert [{name: each[name] for name in ("name", "type", "mode")} for each in shipped] == columns()
    assert [each["name"] for each in columns()] == list(STORED_COLUMNS)


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


@given(st.lists(panes, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_view_shows_the_newest_pane_once_however_rows_come(
    whole: BigQuery, fired: list[Estimate], order: random.Random
) -> None:
    table = sent(*fired)
    table += order.sample(table, order.randint(0, len(table)))  # some of them twice
    order.shuffle(table)
    whole.clear()
    whole.insert(table)
    newest_rows = [{name: row[name] for name in COLUMNS} for row in expected(*newest(fired))]
    assert in_order(whole.shown("estimates")) == in_order(newest_rows)


def test_windows_and_estimators_are_apart(bigquery: BigQuery) -> None:
    apart = (
        estimate(),
        estimate("empirical"),
        estimate(version=3),
        estimate(collection="d"),
        estimate(device_digest="0" * 16),
        estimate(window_start=START - 1),
        estimate(window_end=START + HOUR + 1),
    )
    bigquery.insert(sent(*apart))
    assert len(bigquery.shown("estimates")) == len(apart) * ROWS


# Requests.


class FakeClient:
    """Keeps what is inserted; refuses the collection that ``refused`` names."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, list[JsonRow], list[str]]] = []
        self.refused: set[str] = set()
        self.open = True

    def insert_rows_json(self, table: str, json_rows: Sequence[JsonRow], row_ids: Sequence[str]) -> Sequence[Any]:
        refused = [index for index, row in enumerate(json_rows) if row["collection"] in self.refused]
        if refused:
            return [{"index": index, "errors": [{"reason": "invalid"}]} for index in refused]
        self.requests.append((table, list(json_rows), list(row_ids)))
        return []

    def close(self) -> None:
        self.open = False


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeClient]:
    fake = FakeClient()
    monkeypatch.setattr(endpoint, "new_client", lambda table: fake)
    yield fake
    assert not fake.open


def write(estimates: Sequence[Estimate]) -> None:
    with beam.Pipeline("FnApiRunner") as pipeline:
        created = pipeline | beam.Create(estimates, reshuffle=False).with_output_types(Estimate)
        BigQueryEndpoint(TABLE).publish_estimates(created, SharedSpecs([SPEC]), native=False)


def revisions(count: int) -> list[Estimate]:
    return [estimate(pane=Pane(PaneKind.EARLY, revision)) for revision in range(count)]


def test_a_bundle_that_is_tried_again_sends_the_same_rows_under_the_same_ids(client: FakeClient) -> None:
    write(revisions(3))
    write(revisions(3))
    first, again = client.requests
    assert first == again == (TABLE, sent(*revisions(3)), [insert_id(row) for row in sent(*revisions(3))])


def test_each_row_has_an_insert_id_of_its_own() -> None:
    ids = [insert_id(row) for row in sent(*revisions(3), estimate("empirical"), estimate(version=3))]
    assert len(set(ids)) == len(ids) == 5 * ROWS
    assert all(len(each) <= 128 for each in ids)  # as BigQuery limits it
    other = sent(replace(revisions(1)[0], epsilon=None))
    assert [insert_id(row) for row in other] == ids[:ROWS]


@pytest.mark.parametrize(
    ("limit", "most", "sizes"),
    [
        ("MAX_ROWS", 3, [3, 3, 2]),
        ("MAX_ROWS", 2 * ROWS, [2 * ROWS]),
        ("MAX_BYTES", 1, [1] * 2 * ROWS),
        ("MAX_BYTES", 3000, [3, 3, 2]),
    ],
)
def test_requests_are_of_a_size_that_is_taken(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(endpoint, limit, most)
    write(revisions(2))
    assert [len(rows) for _, rows, _ in client.requests] == sizes
    assert [row for _, rows, _ in client.requests for row in rows] == sent(*revisions(2))


def test_a_row_that_is_refused_fails_the_job(client: FakeClient) -> None:
    client.refused = {"c"}
    with pytest.raises(Exception, match=rf"bigquery:{TABLE}: refused {ROWS} of {ROWS} rows: .*invalid"):
        write([estimate()])


def test_the_client_library_sends_rows_with_their_ids(service: Service) -> None:
    service.answers["insertAll"] = 200, {"kind": "bigquery#tableDataInsertAllResponse"}
    write([FULL])
    ((path, body),) = service.requests
    assert path.endswith("/projects/project/datasets/uldp/tables/estimate_panes/insertAll")
    assert body["rows"] == [{"insertId": insert_id(row), "json": row} for row in sent(FULL)]

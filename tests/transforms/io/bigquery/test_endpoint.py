"""A table as an endpoint: it takes estimates, refuses everything else, and is checked before a job starts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

from tests.beams import needs_sources
from tests.build import HOUR, START
from tests.fakes.bigquery import Answers, Service
from tests.pipelines.jobs.graph import describe_graph
from uldp.pipelines.jobs.cluster import BrokerJob, cluster_options
from uldp.pipelines.jobs.outputs import Claim
from uldp.pipelines.jobs.publishing import Publishing
from uldp.pipelines.jobs.settings import JobSettings
from uldp.schemas.errors import EndpointError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.bigquery.endpoint import BigQueryEndpoint
from uldp.transforms.io.bigquery.table import PERMISSION, BigQueryError, check_table, columns
from uldp.transforms.io.endpoints import Following, parse_endpoint
from uldp.transforms.io.row_sink import KeptPane, RowSink

TABLE = "project.uldp.estimate_panes"
URI = f"bigquery:{TABLE}"
EXAMPLES = Path(__file__).parents[4] / "examples" / "manhattan"


@pytest.mark.parametrize("table", [TABLE, "example.com:project.uldp.estimate-panes"])
def test_a_table_has_a_uri(table: str) -> None:
    assert parse_endpoint(f"bigquery:{table}") == BigQueryEndpoint(table)
    assert str(BigQueryEndpoint(table)) == f"bigquery:{table}"


@pytest.mark.parametrize("name", ["", "uldp.estimates", "project.uldp.a b", f"{TABLE}?a=b", "//project/uldp/estimates"])
def test_another_form_is_refused(name: str) -> None:
    with pytest.raises(BigQueryError, match=r"not a table of BigQuery; write PROJECT\.DATASET\.TABLE"):
        parse_endpoint(f"bigquery:{name}")


def test_everything_but_estimates_is_refused() -> None:
    table, pipeline = parse_endpoint(URI), beam.Pipeline("FnApiRunner")
    records = pipeline | beam.Create([(b"key", b"body")])
    for use in (
        lambda: table.check("READ"),
        lambda: table.check("WRITE"),
        lambda: table.check_following(Following(0)),
        lambda: table.read(pipeline, Following(0)),
        lambda: table.read_whole(pipeline),
        lambda: table.publish(records, native=False),
        lambda: table.writing(simulated_clock=False),
    ):
        with pytest.raises(EndpointError, match=f"^{URI}: takes only estimates, from --estimates-to$"):
            use()


@needs_sources
@pytest.mark.parametrize("runner", ["FlinkRunner", "DataflowRunner"])
def test_a_job_inserts_rows_of_estimates(runner: str) -> None:
    pipeline = beam.Pipeline("FnApiRunner", cluster_options([f"--runner={runner}"]))
    specs = [CollectionSpec.load(EXAMPLES / "spec.yaml")]
    source = parse_endpoint("pubsub:projects/project/subscriptions/reports")
    BrokerJob(specs, source, JobSettings(publishing=Publishing(parse_endpoint(URI)))).build(
        pipeline, Claim("gs://b/r", "gs://b/r", 0)
    )
    assert "PublishEstimates/WriteRows: " in describe_graph(pipeline.to_runner_api())


# The check, against a server.


def table(fields: Sequence[Mapping[str, Any]]) -> tuple[int, Mapping[str, Any]]:
    project, dataset, name = TABLE.split(".")
    reference = {"projectId": project, "datasetId": dataset, "tableId": name}
    return 200, {"tableReference": reference, "schema": {"fields": fields}}


GRANTED = 200, {"permissions": [PERMISSION]}


@pytest.fixture
def table_service(service: Service) -> Service:
    """A BigQuery with the table, and the right to write to it."""
    service.answers |= {"estimate_panes": table(columns()), "estimate_panes:testIamPermissions": GRANTED}
    return service


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"estimate_panes": table([*columns(), {"name": "more", "type": "STRING"}])},
        {"estimate_panes:testIamPermissions": (404, {})},  # an emulator without permissions
        {"estimate_panes:testIamPermissions": (501, {})},
    ],
)
def test_a_table_that_takes_estimates_passes(table_service: Service, answers: Answers) -> None:
    table_service.answers |= answers
    parse_endpoint(URI).check_estimates()


@pytest.mark.parametrize(
    ("answers", "refusal"),
    [
        ({"estimate_panes": (404, {})}, "does not exist; create the table and its view from deploy/bigquery"),
        ({"estimate_panes": (403, {})}, "grant the job's account roles/bigquery.dataEditor"),
        ({"estimate_panes": (400, {})}, "BigQuery refused the request; see its documentation"),
        ({"estimate_panes:testIamPermissions": (200, {})}, rf"dataEditor on the table \(missing: {PERMISSION}\)"),
        ({"estimate_panes:testIamPermissions": (403, {})}, "grant the job's account roles/bigquery.dataEditor"),
        (
            {"estimate_panes": table(columns()[:-1])},
            f"has no column {columns()[-1]['name']}; create the table from deploy/bigquery",
        ),
    ],
)
def test_the_check_names_the_table_and_the_remedy(table_service: Service, answers: Answers, refusal: str) -> None:
    table_service.answers |= answers
    with pytest.raises(BigQueryError, match=f"^{URI}: .*{refusal}") as raised:
        check_table(TABLE)
    assert "\n" not in str(raised.value)


def test_no_answer_is_one_line(service: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", "http://127.0.0.1:1")
    with pytest.raises(BigQueryError, match=f"^{URI}: no answer; check the network, and BIGQUERY_EMULATOR_HOST"):
        check_table(TABLE)


def test_missing_credentials_are_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("google.cloud.bigquery", reason="pip install '.[gcp]'")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing.json"))
    with pytest.raises(BigQueryError, match=f"^{URI}: no credentials; set GOOGLE_APPLICATION_CREDENTIALS"):
        check_table(TABLE)


# Which panes it has.

KEPT = ("c", 1, "0123456789abcdef", START, START + HOUR, "mle", "0000000000000050/1/1/00000000")


def answered(*found: Sequence[object]) -> Answers:
    """What BigQuery answers to a query that finds these rows, under the id of a job that it chooses."""
    reference = {"projectId": "project", "jobId": "chosen", "location": "EU"}
    kinds = ("STRING", "INTEGER", "STRING", "INTEGER", "INTEGER", "STRING", "STRING")
    fields = [{"name": f"f{place}_", "type": kind} for place, kind in enumerate(kinds)]
    job = {
        "jobReference": reference,
        "status": {"state": "DONE"},
        "configuration": {"query": {"destinationTable": {"projectId": "p", "datasetId": "d", "tableId": "found"}}},
        "statistics": {"query": {}},
    }
    rows = [{"f": [{"v": str(value)} for value in row]} for row in found]
    whole = {"jobReference": reference, "jobComplete": True, "schema": {"fields": fields}, "totalRows": str(len(rows))}
    return {"jobs": (200, job), "chosen": (200, whole | {"rows": rows}), "data": (200, {"rows": rows})}


def test_it_tells_the_newest_panes_by_one_query(service: Service) -> None:
    service.answers |= answered(KEPT)
    sink = parse_endpoint(URI)
    assert isinstance(sink, RowSink)
    assert list(sink.panes() or ()) == [KeptPane.of_row(*KEPT)]
    (asked,) = (body for path, body in service.requests if path.endswith("/jobs"))
    assert asked["configuration"]["query"]["query"] == (
        "SELECT collection, version, device_digest, UNIX_MILLIS(window_start), UNIX_MILLIS(window_end), estimator,"
        f" max(age) FROM `{TABLE}` GROUP BY collection, version, device_digest, window_start, window_end, estimator"
    )


def test_who_may_run_no_queries_is_told_the_right(service: Service) -> None:
    service.answers["jobs"] = (403, {})
    sink = parse_endpoint(URI)
    assert isinstance(sink, RowSink)
    with pytest.raises(BigQueryError, match=f"^{URI}: no permission; grant the job's account roles/bigquery.jobUser"):
        list(sink.panes() or ())

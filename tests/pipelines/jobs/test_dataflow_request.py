"""The request that asks Dataflow for a job, as its own client posts it, at a stand-in of its HTTP API on this machine.

The stand-in parses what it gets as the message of Google's client library, which refuses what it does not know. So
this shows what is posted and staged, and nothing of what Dataflow makes of it.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api.org.apache.beam.model.pipeline.v1 import beam_runner_api_pb2 as api
from apache_beam.runners.runner import PipelineState

from tests.pipelines.jobs.graph import describe_graph
from tests.pipelines.jobs.test_graph import BITS, SYMBOLS, archive, assert_golden, batch, streaming

dataflow = pytest.importorskip("google.cloud.dataflow", reason="pip install '.[gcp]'")
pytest.importorskip("google.cloud.storage", reason="pip install '.[gcp]'")
pytest.importorskip(
    "apache_beam.runners.dataflow.internal.apiclient",
    reason="an older Beam needs its own extra, apache-beam[gcp]",
    exc_type=ImportError,
)

__all__ = ["archive"]  # the fixture
JOBS = "/v1b3/projects/project/locations/region/jobs"
IMAGE = "region-docker.pkg.dev/project/images/uldp-stream:1"


@dataclass
class StandIn:
    """An API that knows jobs: it takes one, and says that it runs.

    Attributes:
        jobs: The jobs that were posted, as the client library's message.
        asked: Method and path of each request.
        status: With what it answers a job that is posted.
    """

    status: int = 200
    jobs: list[Any] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    endpoint: str = ""

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, str]:
        self.asked.append((method, path))
        if method == "POST" and path == JOBS:
            if self.status != 200:
                return self.status, '{"error": {"message": "refused", "status": "PERMISSION_DENIED"}}'
            self.jobs.append(dataflow.Job.from_json(body))
        elif (method, path) != ("GET", f"{JOBS}/2026-1"):
            return 404, "{}"
        job = dataflow.Job(self.jobs[-1], id="2026-1", current_state=dataflow.JobState.JOB_STATE_RUNNING)
        return 200, dataflow.Job.to_json(job, use_integers_for_enums=False)


@contextmanager
def listening(stand_in: StandIn) -> Iterator[StandIn]:
    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, text = stand_in.answer(self.command, self.path.partition("?")[0], body)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = respond  # noqa: N815 (the names of the library)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        stand_in.endpoint = f"http://localhost:{server.server_port}"
        try:
            yield stand_in
        finally:
            server.shutdown()
            thread.join()


def run(api_of: StandIn, staged: Path, build: Callable[[beam.Pipeline], Any], *flags: str) -> Any:
    options = ["--runner=DataflowRunner", "--project=project", "--region=region", "--job_name=uldp", "--no_auth"]
    options += [f"--dataflow_endpoint={api_of.endpoint}", f"--staging_location={staged}", f"--temp_location={staged}"]
    options += [f"--sdk_container_image={IMAGE}", "--sdk_location=container", "--no_save_main_session"]
    pipeline = beam.Pipeline(options=PipelineOptions([*options, *flags]))
    build(pipeline)
    return pipeline.run()


@pytest.mark.parametrize("streams", [True, False], ids=["streaming", "batch"])
def test_the_request_is_a_job_of_the_clients_own_types(streams: bool, archive: Path, tmp_path: Path) -> None:
    staged = tmp_path / "staged"
    staged.mkdir()
    with listening(StandIn()) as stand_in:
        if streams:
            result = run(stand_in, staged, lambda pipeline: streaming(pipeline, SYMBOLS, BITS), "--streaming")
        else:
            result = run(stand_in, staged, lambda pipeline: batch(pipeline, archive, SYMBOLS, BITS))
        assert result.job_id() == "2026-1"
        assert result.state == PipelineState.RUNNING
    assert stand_in.asked[0] == ("POST", JOBS)
    (job,) = stand_in.jobs
    assert (job.name, job.type_) == (
        "uldp",
        dataflow.JobType.JOB_TYPE_STREAMING if streams else dataflow.JobType.JOB_TYPE_BATCH,
    )
    (pool,) = job.environment.worker_pools
    assert [image.container_image for image in pool.sdk_harness_container_images] == [IMAGE]
    # All is in the image; Beam adds a list of what is installed here.
    assert [package.name for package in pool.packages] == ["submission_environment_dependencies.txt"]
    options = dict(job.environment.sdk_pipeline_options)["options"]
    assert (options["project"], options["sdk_container_image"]) == ("project", IMAGE)
    # What workers would load is the graph of the golden files.
    (proto,) = staged.rglob("pipeline.pb")
    assert options["pipelineUrl"] == str(proto)
    graph = api.Pipeline.FromString(proto.read_bytes())
    assert_golden("streaming.txt" if streams else "batch.txt", describe_graph(graph))
    assert {each.urn for each in graph.components.environments.values()} == {"beam:env:docker:v1"}
    assert all(IMAGE.encode() in each.payload for each in graph.components.environments.values())


def test_a_refusal_is_an_error(tmp_path: Path) -> None:
    with listening(StandIn(status=403)) as stand_in, pytest.raises(Exception, match=re.escape("403")):
        run(stand_in, tmp_path, lambda pipeline: streaming(pipeline, SYMBOLS), "--streaming")
    assert stand_in.jobs == []


def test_the_stand_in_refuses_fields_that_there_are_not() -> None:
    with pytest.raises(Exception, match="no field named"):
        StandIn().answer("POST", JOBS, b'{"name": "uldp", "colour": "red"}')

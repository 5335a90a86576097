"""Dataflow's flex template, launched without Dataflow, and the graph that it stages, run by Prism.

The launcher itself is a program of Google's image, which is not here. It starts Python with the options that its log
shows in GoogleCloudPlatform/python-docs-samples#4891; so do these tests. A folder stands for the bucket.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api.org.apache.beam.model.pipeline.v1 import beam_runner_api_pb2 as api
from apache_beam.runners.portability.portable_runner import PortableRunner
from apache_beam.runners.runner import PipelineState
from apache_beam.utils.timestamp import MAX_TIMESTAMP
from google.cloud import dataflow
from google.pubsub_v1.types import PubsubMessage

from tests.cluster.daemons import free_port
from tests.cluster.devices import Devices, assert_counted_once, one_each, write_spec
from tests.cluster.flink import WorkerPool
from tests.cluster.following import Results
from tests.cluster.prism import PrismServer
from tests.cluster.pubsub import PubSubServer
from tests.deploy.dockerfile import STAGES
from tests.deploy.test_dataflow import PARAMETERS
from tests.downloads import ROOT
from uldp.schemas.specs.collection import CollectionSpec

BATCHES, EACH = 10, 100
SPEC = one_each(BATCHES * EACH)
SUBSCRIPTION = "projects/project/subscriptions/reports"
PUBSUB_READ = "beam:transform:pubsub_read:v1"
IMAGE = "region-docker.pkg.dev/project/images/uldp-stream:1"


@dataclass(frozen=True)
class Bucket:
    """What a launch leaves, in a folder."""

    folder: Path

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def job(self) -> Path:
        return self.folder / "staging" / "template_launches" / "1" / "job_object"

    @property
    def graph(self) -> Path:
        return self.folder / "staging" / "pipeline.pb"


def main_of_template() -> Path:
    """Return the file that the template's image names to its launcher, where it is here."""
    (template,) = (stage for stage in STAGES if stage.name == "template")
    environment = dict(value.split("=", 1) for instruction, value in template.instructions if instruction == "ENV")
    copied = [value.split() for instruction, value in template.instructions if instruction == "COPY"]
    (source,) = (words[0] for words in copied if words[-1] == environment["FLEX_TEMPLATE_PYTHON_PY_FILE"])
    return ROOT / source


def options(bucket: Bucket) -> list[str]:
    """Return what the launcher adds to the parameters of a template."""
    staging = bucket.job.parents[2]
    own = ["--runner=DataflowRunner", "--job_name=uldp", f"--temp_location={bucket.folder / 'tmp'}"]
    own += ["--service_account_email=uldp@project.iam.gserviceaccount.com", "--machine_type=n1-standard-1"]
    own += ["--project=project", f"--template_location={bucket.job}", f"--staging_location={staging}"]
    own += ["--region=region", f"--sdk_container_image={IMAGE}"]
    # Without these two, Beam asks Google for credentials, and for a bucket in place of the folder.
    return [*own, "--no_auth", f"--dataflow_endpoint=http://localhost:{free_port()}"]


def launch(bucket: Bucket, server: PubSubServer, parameters: Mapping[str, object]) -> subprocess.CompletedProcess[str]:
    """Do what the launcher does with the parameters of a template."""
    assert parameters.keys() == PARAMETERS.keys()
    bucket.job.parent.mkdir(parents=True)
    command = [sys.executable, str(main_of_template()), *options(bucket)]
    command += [f"--{name}={value}" for name, value in parameters.items()]
    environment = os.environ | server.environment
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)


def parameters(bucket: Bucket) -> dict[str, object]:
    """Write a spec into a bucket; returns the parameters of a launch."""
    return {"spec": write_spec(SPEC, bucket.folder), "from": f"pubsub:{SUBSCRIPTION}", "to": bucket.results}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PubSubServer]:
    with PubSubServer(tmp_path_factory.mktemp("pubsub")) as started:
        started.create("reports")
        yield started


@pytest.fixture(scope="module")
def launched(server: PubSubServer, tmp_path_factory: pytest.TempPathFactory) -> Bucket:
    bucket = Bucket(tmp_path_factory.mktemp("bucket"))
    done = launch(bucket, server, parameters(bucket))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == f"following pubsub:{SUBSCRIPTION} into {bucket.results}: one-each v1"
    return bucket


def test_the_launcher_finds_a_job_of_the_clients_own_types(launched: Bucket) -> None:
    job = dataflow.Job.from_json(launched.job.read_text(encoding="utf-8"))  # refuses what it does not know
    assert (job.name, job.type_) == ("uldp", dataflow.JobType.JOB_TYPE_STREAMING)
    (pool,) = job.environment.worker_pools
    assert [image.container_image for image in pool.sdk_harness_container_images] == [IMAGE]
    # All is in the image; Beam adds a list of what is installed here.
    assert [package.name for package in pool.packages] == ["submission_environment_dependencies.txt"]
    assert dict(job.environment.sdk_pipeline_options)["options"]["pipelineUrl"] == str(launched.graph)


def test_each_parameter_arrives(launched: Bucket) -> None:
    graph = api.Pipeline.FromString(launched.graph.read_bytes())
    assert api.PubSubReadPayload.FromString(source_of(graph).spec.payload).subscription == SUBSCRIPTION
    (kept,) = launched.results.glob("specs/*/spec.yaml")
    assert CollectionSpec.load(kept).model_dump() == SPEC.model_dump()


def source_of(graph: api.Pipeline) -> api.PTransform:
    """Return the one step that Dataflow runs itself."""
    found: api.PTransform
    (found,) = (each for each in graph.components.transforms.values() if each.spec.urn == PUBSUB_READ)
    return found


def as_pubsub_gives_it(body: bytes, published_ms: int) -> bytes:
    """Encode a message as Dataflow hands it to the step behind its source."""
    seconds, milliseconds = divmod(published_ms, 1000)
    published = {"seconds": seconds, "nanos": milliseconds * 1_000_000}
    encoded: bytes = PubsubMessage.serialize(PubsubMessage(data=body, message_id="1", publish_time=published))
    return encoded


def give(graph: api.Pipeline, batches: Iterable[Sequence[bytes]]) -> None:
    """Put messages in the place of a graph's subscription: each batch is published when it is made; then all ends."""
    source, payload = source_of(graph), api.TestStreamPayload()
    (output,) = source.outputs.values()
    payload.coder_id = graph.components.pcollections[output].coder_id
    for bodies in batches:
        now = time.time_ns() // 1_000_000
        given = payload.events.add().element_event
        for body in bodies:
            given.elements.add(encoded_element=as_pubsub_gives_it(body, now), timestamp=now)
        payload.events.add().watermark_event.new_watermark = now
    payload.events.add().watermark_event.new_watermark = MAX_TIMESTAMP.micros // 1000
    source.spec.urn, source.spec.payload = "beam:transform:teststream:v1", payload.SerializeToString()


@pytest.mark.nightly
def test_prism_counts_each_report_once_by_the_graph_that_was_staged(launched: Bucket, tmp_path: Path) -> None:
    """Two things are changed in the graph: what gives the messages, and where workers come from."""
    graph, devices = api.Pipeline.FromString(launched.graph.read_bytes()), Devices(SPEC)
    give(graph, (devices.batch(EACH) for _ in range(BATCHES)))
    (workers_of_graph,) = graph.components.environments.values()
    with PrismServer(tmp_path / "prism") as server, WorkerPool(tmp_path / "workers") as workers:
        external = api.ExternalPayload(endpoint={"url": workers.endpoint})
        workers_of_graph.urn, workers_of_graph.payload = "beam:env:external:v1", external.SerializeToString()
        here = ["--streaming", "--runner=PortableRunner", f"--job_endpoint={server.endpoint}"]
        result = PortableRunner().run_portable_pipeline(graph, PipelineOptions([*options(launched), *here]))
        assert result.wait_until_finish() == PipelineState.DONE
    results = Results(launched.results)
    assert results.total() == devices.sent
    assert_counted_once(devices, results)

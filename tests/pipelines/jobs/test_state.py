"""State that another version of this software wrote: a job that cannot read it is refused before it is submitted."""

import pickle
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests import build
from tests.beams import needs_sources
from tests.pipelines.jobs.conftest import SubmittedError
from uldp.pipelines.jobs.cluster import BrokerJob, cluster_options, follow_broker
from uldp.pipelines.jobs.identity import STATE, JobIdentity
from uldp.pipelines.process import run_apart
from uldp.pipelines.results.files import ResultsError
from uldp.transforms.internals import UnboundedSource
from uldp.transforms.io.endpoints import Endpoint
from uldp.transforms.io.kafka.endpoint import KafkaEndpoint
from uldp.transforms.io.kafka.source import KafkaSource
from uldp.transforms.io.kafka.topic import KafkaTopic
from uldp.transforms.io.pubsub.source import PubSubSource
from uldp.transforms.io.pubsub.subscription import Subscription

SPEC = build.spec(domain={"size": 3}, mechanism={"name": "rr", "epsilon": 1.0})
TOPIC = KafkaTopic("broker:9092", "reports")
FLINK = ["--runner=PortableRunner", "--job_endpoint=127.0.0.1:1"]
SAVEPOINT = "--savepoint_path=file:///savepoint"


pytestmark = pytest.mark.usefixtures("submitted")


def start(source: Endpoint, out: Path, *options: str) -> None:
    job = BrokerJob([SPEC], source)
    follow_broker(job, str(out), cluster_options([*FLINK, *options]), run_apart=run_apart)


def test_a_savepoint_of_another_layout_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    job = JobIdentity.of("stream", "kafka:broker:9092/reports", "topic", [SPEC], resumes=True, apart=True)
    kept = replace(job, state=STATE + 1).encode()
    (tmp_path / "job.json").write_bytes(kept)
    with pytest.raises(
        ResultsError,
        match=rf"state of version {STATE + 1}, and this is version {STATE}, which cannot read its savepoint; "
        r"leave out --savepoint_path, and choose another --to$",
    ):
        start(KafkaEndpoint(TOPIC), tmp_path, SAVEPOINT)
    assert (tmp_path / "job.json").read_bytes() == kept


@needs_sources
@pytest.mark.parametrize("options", [(), (SAVEPOINT,)])
def test_a_savepoint_of_this_layout_is_not(options: tuple[str, ...], tmp_path: Path) -> None:
    for given in ((), options):
        with pytest.raises(SubmittedError):
            start(KafkaEndpoint(TOPIC), tmp_path, *given)


class Paths(pickle.Unpickler):
    """Notes the classes of this project that pickled bytes name."""

    def __init__(self, pickled: bytes) -> None:
        super().__init__(BytesIO(pickled))
        self.found: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("uldp."):
            self.found.add(f"{module}.{name}")
        return super().find_class(module, name)


@pytest.mark.parametrize(
    ("source", "classes"),
    [
        (KafkaSource(TOPIC), {"kafka.source.KafkaSource", "kafka.topic.KafkaTopic"}),
        (PubSubSource(Subscription("p", "s")), {"pubsub.source.PubSubSource", "pubsub.subscription.Subscription"}),
    ],
)
def test_state_names_the_classes_of_this_version(source: UnboundedSource, classes: set[str]) -> None:
    """If one of these moves, a job cannot read the state of the version before: raise STATE with the path."""
    paths = Paths(pickle.dumps(source))
    paths.load()
    assert (STATE, paths.found) == (13, {f"uldp.transforms.io.{name}" for name in classes})

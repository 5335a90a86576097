"""Rejected reports as messages, each whole under its own key, and the graphs of jobs that publish."""

from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import pytest

from tests.beams import needs_sources
from tests.pipelines.jobs.graph import describe_graph
from uldp.pipelines.jobs.cluster import BrokerJob, cluster_options
from uldp.pipelines.jobs.outputs import Claim
from uldp.pipelines.jobs.publishing import Publishing, keyed_rejected
from uldp.pipelines.jobs.settings import JobSettings
from uldp.schemas.framing import SchemaStore
from uldp.schemas.rejected import Rejected
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.endpoints import parse_endpoint
from uldp.transforms.io.kafka.topic import KafkaTopic

REJECTED = Rejected("decode", "malformed", "why", (b"\xff\0",), {"a": "b"}, (5,), "topic/0/9", 1, "0.1")


def test_a_rejected_record_is_read_back_whole() -> None:
    ((_, body),) = keyed_rejected(REJECTED)
    name, record = SchemaStore.of("rejected").decode(body)
    assert name == "uldp.Rejected"
    assert record == REJECTED.to_avro()


def key_of(record: Rejected) -> bytes:
    ((key, _),) = keyed_rejected(record)
    return key


def test_messages_of_other_data_are_apart() -> None:
    both = replace(REJECTED, bodies=(b"a", b"b"), publish_times=(5, 6), runs=((9, 10), (12, 13)), reports=2)
    first = replace(REJECTED, bodies=(b"a",), publish_times=(5,))
    other = replace(REJECTED, bodies=(b"b",), publish_times=(6,), source="topic/0/12")
    assert [*keyed_rejected(both)] == [*keyed_rejected(first), *keyed_rejected(other)]


def test_its_key_is_of_its_place_its_reason_and_its_data() -> None:
    key = key_of(REJECTED)
    recut = replace(REJECTED, runs=((9, 11), (12, 13)), reports=3)
    for same in (replace(REJECTED, software="0.2", detail="because"), replace(REJECTED, publish_times=(6,)), recut):
        assert key_of(same) == key
    others = [
        replace(REJECTED, source="topic/0/8"),
        replace(REJECTED, reason="truncated"),
        replace(REJECTED, bodies=(b"\xff",)),
        replace(REJECTED, attributes={}),
        replace(REJECTED, source=""),
        replace(REJECTED, source="", publish_times=(6,)),  # without a number its key is of its time too
    ]
    assert len({key, *(key_of(other) for other in others)}) == 7


SPEC = Path(__file__).parents[3] / "examples" / "manhattan" / "spec.yaml"


#: What Beam may pickle: its own elements, before they are messages and after, the time of a chunk that is dealt out,
#: and the nothing that a writer gives.
PICKLED = (
    *("/ReshufflePerKey/Map(reify_metadata_default_window)", "/ReshufflePerKey/GroupByKey"),
    *("Map(decode)", "Map(_from_proto_str)", "ToPubsubMessage", "ParDo(_PubSubWriteDoFn)"),
    *("WriteCounts", "WriteEstimates", "WriteLate", "WriteRejected", "WriteMissing", "WriteRecords", "PublishRecords"),
)


@needs_sources
@pytest.mark.parametrize("source", ["kafka:b:9092/reports", "pubsub:projects/project/subscriptions/reports"])
@pytest.mark.parametrize("topic", ["kafka:b:9092/results", "pubsub:projects/project/topics/results"])
@pytest.mark.parametrize("runner", ["FlinkRunner", "DataflowRunner"])
def test_every_source_goes_with_every_topic_on_every_runner(
    source: str, topic: str, runner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KafkaTopic, "check", lambda *_: [0, 1])
    # The graph that the runner of the options would get; Dataflow's own looks for a bucket as soon as it is made.
    pipeline = beam.Pipeline("FnApiRunner", cluster_options([f"--runner={runner}"]))
    stream, to = parse_endpoint(source), parse_endpoint(topic)
    specs = [CollectionSpec.load(SPEC)]
    BrokerJob(specs, stream, JobSettings(publishing=Publishing(to, to))).build(
        pipeline, Claim("gs://b/r", "gs://b/r", 0)
    )
    graph = describe_graph(pipeline.to_runner_api())
    native = runner == "DataflowRunner"
    assert ("pubsub_read" in graph) == (native and source.startswith("pubsub:"))
    assert ("PublishTo/WriteMessages" in graph) == (native and topic.startswith("pubsub:"))
    pickled = {step.split(": ")[0] for step in graph.split("\n\n") if "Pickle" in step}
    assert {step for step in pickled if not step.endswith(PICKLED)} == set()

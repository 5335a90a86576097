"""Where Flink runs readers: by a hash that is that of its own classes, in equal shares for any number of workers."""

from collections.abc import Sequence

import apache_beam as beam
import pytest
from apache_beam.coders import registry
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor

from tests.beams import needs_sources
from tests.fakes.kafka import TOPIC as KAFKA
from tests.fakes.kafka import Broker
from uldp.transforms.io.endpoints import Following
from uldp.transforms.io.kafka.endpoint import KafkaEndpoint
from uldp.transforms.io.kafka.source import KafkaSource
from uldp.transforms.io.placement import key_group, wanted_key_group
from uldp.transforms.io.pubsub.source import PubSubSource
from uldp.transforms.io.pubsub.subscription import Subscription
from uldp.transforms.io.reader import ChunkSource

SOURCES = (KafkaSource(KAFKA, 10, share=(3, 19)), PubSubSource(Subscription("project", "name"), index=1))


@pytest.mark.parametrize(("n", "group"), [(0, 46), (1, 103), (127, 20), (128, 59), (300, 21), (20_000, 1)])
def test_key_groups_are_those_of_flink(n: int, group: int) -> None:
    """As ``FlinkKey`` of Beam 2.70 and ``KeyGroupRangeAssignment`` of Flink 1.19.3 have them for bytes 0, 1, 2, ..."""
    assert key_group(bytes(at % 256 for at in range(n))) == group


@pytest.mark.parametrize("source", SOURCES)
def test_a_worker_encodes_a_source_as_the_launcher_did(source: ChunkSource) -> None:
    """Otherwise its hash would be another."""
    coder = registry.get_coder(type(source))
    encoded = coder.encode(source)
    assert coder.encode(coder.decode(encoded)) == encoded


@needs_sources
@pytest.mark.parametrize(("slots", "readers"), [(0, 16), (4, 16), (20, 20)])
def test_each_reader_is_an_element_in_its_key_group(broker: Broker, slots: int, readers: int) -> None:
    broker.partitions = {each: [] for each in range(30)}
    graph = beam.Pipeline("FnApiRunner")
    _ = KafkaEndpoint(KAFKA).read(graph, Following(5, slots=slots))
    created = created_in(graph)
    assert [source.share for source in created] == [(reader, readers) for reader in range(readers)]
    groups = [key_group(registry.get_coder(KafkaSource).encode(source)) for source in created]
    assert groups == [wanted_key_group(reader, readers) for reader in range(readers)]


def created_in(graph: beam.Pipeline) -> Sequence[KafkaSource]:
    """Return the elements with which a graph begins."""
    found: list[Sequence[KafkaSource]] = []

    class Visitor(PipelineVisitor):
        def enter_composite_transform(self, node: AppliedPTransform) -> None:
            if isinstance(node.transform, beam.Create):
                found.append(node.transform.values)

    graph.visit(Visitor())
    (created,) = found
    return created

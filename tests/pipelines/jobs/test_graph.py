"""The graphs of the two jobs, against golden files: what changes there cannot be updated in place."""

import difflib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.coders import PickleCoder
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import PCollection

from tests import build
from tests.pipelines.jobs.graph import describe_graph
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.window import WindowSpec
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.read_archive import ReadArchive
from uldp.transforms.io.results.write import WriteResults
from uldp.transforms.panes import _FirePanesFn

GOLDEN = Path(__file__).parent / "golden"
UPDATE = "ULDP_UPDATE_GOLDEN"

SYMBOLS = build.spec(
    collection="symbols",
    domain={"size": 6},
    sensitive=[1, 2],
    mechanism={"name": "urr", "epsilon": 1.5},
    tags=[{"name": "home"}],
    window={"size": "1h", "early_every": "30s", "allowed_lateness": "1d"},
)
BITS = build.spec(
    collection="bits",
    version=2,
    domain={"size": 6},
    mechanism={"name": "oue", "epsilon": 1.0},
    window={"size": "1d", "period": "1h", "allowed_lateness": "10m"},
)


def message_of(received: Any) -> Message:
    return Message(received.data, int(received.publish_time.timestamp() * 1000), received.attributes)


def read_stream(pipeline: beam.Pipeline) -> PCollection[Message]:
    read = beam.io.ReadFromPubSub(subscription="projects/project/subscriptions/reports", with_attributes=True)
    messages: PCollection[Message] = (
        pipeline | "Read" >> read | "ToMessage" >> beam.Map(message_of).with_output_types(Message)
    )
    return messages


def streaming(pipeline: beam.Pipeline, *specs: CollectionSpec) -> None:
    _ = read_stream(pipeline) | "Aggregate" >> Aggregate(specs) | "WriteResults" >> WriteResults("gs://bucket/results")


def stream_of_both(pipeline: beam.Pipeline) -> None:
    streaming(pipeline, SYMBOLS, BITS)


def batch(pipeline: beam.Pipeline, archive: Path, *specs: CollectionSpec) -> None:
    aggregated = pipeline | "ReadArchive" >> ReadArchive(archive) | "Aggregate" >> Aggregate(specs)
    _ = aggregated | "WriteResults" >> WriteResults("gs://bucket/results")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    stream = LocalStream.create(tmp_path / "archive", simulated_clock=True)
    for number in range(2):  # one file alone would not be spread over workers
        stream.append([Message(Report("symbols", 1, bytes(16), 0, 0).encode(), number)])
    stream.close()
    return stream.path


def graph(build: Callable[[beam.Pipeline], Any]) -> str:
    pipeline = beam.Pipeline("FnApiRunner", options=PipelineOptions([]))
    build(pipeline)
    return describe_graph(pipeline.to_runner_api())


def assert_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get(UPDATE):
        path.write_text(text, encoding="utf-8")
    golden = path.read_text(encoding="utf-8")
    diff = "\n".join(difflib.unified_diff(golden.splitlines(), text.splitlines(), name, "now", lineterm=""))
    if diff:
        pytest.fail(
            "the graph is another one; a job that runs the old one cannot be updated in place, but has to be drained:\n"
            f"{diff}\nif it is meant, say so there, and accept it: "
            f"{UPDATE}=1 pytest tests/pipelines/jobs/test_graph.py",
            pytrace=False,
        )


def test_the_graph_of_a_stream_is_as_it_was() -> None:
    assert_golden("streaming.txt", graph(stream_of_both))


def test_the_graph_of_a_backfill_is_as_it_was(archive: Path) -> None:
    assert_golden("batch.txt", graph(lambda pipeline: batch(pipeline, archive, SYMBOLS, BITS)))


def test_another_coder_of_state_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(UPDATE, raising=False)
    monkeypatch.setattr(_FirePanesFn.SLICES, "coder", PickleCoder())
    with pytest.raises(pytest.fail.Exception, match="cannot be updated in place") as refused:
        assert_golden("streaming.txt", graph(stream_of_both))
    assert "+  state slices: read_modify_write, PickleCoder" in str(refused.value).splitlines()


def test_a_new_collection_of_a_stream_is_no_change() -> None:
    more = BITS.model_copy(update={"collection": "more", "window": WindowSpec.model_validate({"size": "7h"})})
    assert graph(lambda pipeline: streaming(pipeline, SYMBOLS, BITS, more)) == graph(stream_of_both)

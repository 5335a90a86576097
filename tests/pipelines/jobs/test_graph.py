"""The graphs of the two jobs, against golden files: what changes there cannot be updated in place."""

import difflib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.coders import BytesCoder, PickleCoder, VarIntCoder
from apache_beam.coders.typecoders import registry
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import AsSingleton, PCollection
from apache_beam.runners.runner import PipelineState
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.trigger import AccumulationMode, AfterAny, AfterCount, AfterProcessingTime, Repeatedly
from apache_beam.transforms.userstate import BagStateSpec, SetStateSpec, TimerSpec, on_timer
from apache_beam.transforms.window import SlidingWindows

from tests import build
from tests.pipelines.jobs.graph import describe_graph
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.window import WindowSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.count import SumCounts
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


# What the golden files notice, and what they need not.


def refusal(build: Callable[[beam.Pipeline], Any], golden: str = "streaming.txt") -> set[str]:
    """The lines of the failure of a test that compares a graph with its golden file."""
    with pytest.raises(pytest.fail.Exception, match="cannot be updated in place") as refused:
        assert_golden(golden, graph(build))
    return set(str(refused.value).splitlines())


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(UPDATE, raising=False)


@pytest.mark.usefixtures("compared")
def test_another_label_is_noticed() -> None:
    def gather(pipeline: beam.Pipeline) -> None:
        _ = read_stream(pipeline) | "Gather" >> Aggregate([SYMBOLS, BITS]) | "WriteResults" >> WriteResults("gs://b/r")

    assert {"-Aggregate/Estimate/EstimateWindow: pardo", "+Gather/Estimate/EstimateWindow: pardo"} <= refusal(gather)


@pytest.mark.usefixtures("compared")
def test_another_coder_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._coders, Statistic, PickleCoder)
    assert {"-  out unbounded, StatisticCoder", "+  out unbounded, PickleCoder"} <= refusal(stream_of_both)


@pytest.mark.usefixtures("compared")
def test_another_coder_of_accumulators_is_noticed(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SumCounts, "get_accumulator_coder", lambda self: PickleCoder())
    lines = refusal(lambda pipeline: batch(pipeline, archive, SYMBOLS, BITS), "batch.txt")
    assert {"-  accumulator: PartialCoder", "+  accumulator: PickleCoder"} <= lines


@pytest.mark.usefixtures("compared")
def test_another_coder_of_state_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_FirePanesFn.SLICES, "coder", PickleCoder())
    lines = refusal(stream_of_both)
    assert {
        "-  state slices: read_modify_write, PartialCoder",
        "+  state slices: read_modify_write, PickleCoder",
    } <= lines


@pytest.mark.usefixtures("compared")
def test_an_archive_is_no_stream(archive: Path) -> None:
    assert "+ReadArchive/ReadFile: pardo" in refusal(lambda pipeline: batch(pipeline, archive, SYMBOLS, BITS))


def test_a_new_collection_of_a_stream_is_no_change() -> None:
    more = BITS.model_copy(update={"collection": "more", "window": WindowSpec.model_validate({"size": "7h"})})
    assert graph(lambda pipeline: streaming(pipeline, SYMBOLS, BITS, more)) == graph(stream_of_both)


# The text of a graph.


class _Keyed(beam.DoFn):
    WAITING = BagStateSpec("waiting", BytesCoder())
    SEEN = SetStateSpec("seen", VarIntCoder())
    WAKE = TimerSpec("wake", TimeDomain.REAL_TIME)

    def process(
        self,
        element: tuple[str, int],
        waiting: Any = beam.DoFn.StateParam(WAITING),
        seen: Any = beam.DoFn.StateParam(SEEN),
        wake: Any = beam.DoFn.TimerParam(WAKE),
    ) -> None:
        """Never run."""

    @on_timer(WAKE)
    def wake_up(self) -> None:
        """Never run."""


def keyed(pipeline: beam.Pipeline) -> None:
    pairs = pipeline | "Start" >> beam.Impulse() | "Key" >> beam.Map(str).with_output_types(tuple[str, int])
    keyed_fn = _Keyed()  # type: ignore[no-untyped-call]
    least = pairs | "Keyed" >> beam.ParDo(keyed_fn).with_output_types(int)
    _ = pairs | "Sided" >> beam.Map(max, AsSingleton(least)).with_output_types(int)


def test_a_step_says_all_that_an_update_depends_on() -> None:
    _, stateful, sided, _ = graph(keyed).split("\n\n")
    assert stateful.splitlines() == [
        "Keyed: pardo",
        "  in Key",
        "  out bounded, varint",
        "  state seen: set, varint",
        "  state waiting: bag, bytes",
        "  timer ts-wake: processing_time, timer(string_utf8, global_window)",
    ]
    assert sided.splitlines() == [
        "Sided: pardo",
        "  in Key",
        "  side input python_side_input0, iterable: Keyed",
        "  out bounded, varint",
    ]


def test_a_composite_that_does_nothing_is_no_step() -> None:
    @beam.ptransform_fn
    def idle(pcollection: PCollection[bytes]) -> PCollection[bytes]:
        return pcollection

    def build(pipeline: beam.Pipeline) -> None:
        _ = pipeline | "Start" >> beam.Impulse() | "Idle" >> idle() | "Len" >> beam.Map(len).with_output_types(int)

    assert graph(build).split("\n\n")[0].splitlines() == ["Len: pardo", "  in Start", "  out bounded, varint"]


EITHER = "element_count(element_count 5), after_processing_time(timestamp_transforms(delay(delay_millis 7000)))"
REST = (
    "merge_status non_merging, accumulation_mode discarding, output_time end_of_window, "
    "closing_behavior emit_always, allowed_lateness 3000, on_time_behavior fire_always"
)


def test_sliding_windows_and_triggers_are_spelled_out() -> None:
    def slide(pipeline: beam.Pipeline) -> None:
        _ = (
            pipeline
            | "Start" >> beam.Impulse()
            | "Slide"
            >> beam.WindowInto(
                SlidingWindows(60, 20),
                trigger=Repeatedly(AfterAny(AfterCount(5), AfterProcessingTime(7))),
                accumulation_mode=AccumulationMode.DISCARDING,
                allowed_lateness=3,
            )
        )

    assert graph(slide).splitlines()[:6] == [
        "Slide: window_into",
        "  in Start",
        "  out bounded, bytes",
        "    sliding_windows(size(seconds 60), offset, period(seconds 20))",
        f"    trigger repeat(subtrigger(after_any(subtriggers({EITHER}))))",
        f"    {REST}",
    ]


# Dataflow's own translation, without a network.


@pytest.mark.parametrize("streams", [True, False], ids=["streaming", "batch"])
def test_dataflow_takes_the_job(streams: bool, archive: Path) -> None:
    for library in ("google.cloud.dataflow", "google.cloud.storage"):
        pytest.importorskip(library, reason="pip install '.[gcp]'")
    runner = "apache_beam.runners.dataflow.internal.apiclient"
    pytest.importorskip(runner, reason="an older Beam needs its own extra, apache-beam[gcp]", exc_type=ImportError)
    flags = ["--runner=DataflowRunner", "--dry_run=True", "--no_save_main_session", "--project=project"]
    flags += ["--region=region", "--temp_location=gs://bucket/temporary", "--job_name=uldp"]
    pipeline = beam.Pipeline(options=PipelineOptions([*flags, "--streaming"] if streams else flags))
    if streams:
        streaming(pipeline, SYMBOLS, BITS)
    else:
        batch(pipeline, archive, SYMBOLS, BITS)
    result = pipeline.run()
    assert result.state == PipelineState.DONE
    graph_of_job = describe_graph(result.job.proto_pipeline)  # type: ignore[attr-defined]
    assert_golden("streaming.txt" if streams else "batch.txt", graph_of_job)

"""Jobs that follow a broker's stream, on a runner that keeps state in checkpoints: Flink, Dataflow."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

from pipelines.endpoints import BrokerStream, read_stream
from pipelines.jobs import JOB_SERVERS, LOCAL_RUNNER, JobError, pipeline_options
from pipelines.outputs import prepare_results, send_specs
from pipelines.publishing import BrokerTopic, PublishResults, keyed_estimate, keyed_rejected
from schemas.collection import CollectionSpec
from transforms.aggregate import Aggregate
from transforms.sinks import WriteResults

#: What each runner has to be told, so that nothing is lost and a job can be updated. What a user says comes after it.
_ALWAYS = ("--streaming", "--no_save_main_session")
_FLINK = (
    # Without, a failure would begin anew, and nothing is ever acknowledged to a broker.
    "--checkpointing_interval=10000",
    "--checkpointing_mode=EXACTLY_ONCE",
    # Of elements that are chunks of messages. A bundle's cost is paid for each; what is in it waits for its end.
    "--max_bundle_size=1000",
    "--max_bundle_time_mills=500",  # Beam's spelling
    # Two savepoints must not differ in it.
    "--max_parallelism=128",
)
#: The runner that reads Pub/Sub by itself.
_DATAFLOW = "DataflowRunner"


def cluster_options(arguments: Sequence[str]) -> PipelineOptions:
    """Parse arguments for Beam, and add what this project's jobs need of the runner that they name.

    Raises:
        JobError: if one is no option of Beam's, or they name no runner that can follow a broker's stream.
    """
    runner = pipeline_options(arguments).view_as(StandardOptions).runner
    if runner in (None, LOCAL_RUNNER):
        raise JobError(
            "a broker's stream needs a runner that takes checkpoints: add --runner=FlinkRunner"
            " --flink_master=HOST:PORT, or --runner=DataflowRunner; or read what is there with uldp backfill"
        )
    return pipeline_options([*_ALWAYS, *(_FLINK if runner in JOB_SERVERS else ()), *arguments])


def build(
    pipeline: beam.Pipeline,
    specs: Sequence[CollectionSpec],
    source: BrokerStream,
    out: str,
    *,
    watermark_delay_ms: int,
    simulated_clock: bool = False,
    estimates_to: BrokerTopic | None = None,
    rejected_to: BrokerTopic | None = None,
) -> None:
    """Build the graph: read, aggregate, write results, and publish those for which a topic is named."""
    native = pipeline.options.view_as(StandardOptions).runner == _DATAFLOW
    messages = read_stream(pipeline, source, watermark_delay_ms, simulated_clock=simulated_clock, native=native)
    aggregated: Any = messages | "Aggregate" >> Aggregate(specs, simulated_clock=simulated_clock)
    _ = aggregated | "WriteResults" >> WriteResults(out)
    if estimates_to is not None:
        _ = aggregated.estimates | "PublishEstimates" >> PublishResults(estimates_to, keyed_estimate, native)
    if rejected_to is not None:
        _ = aggregated.rejected | "PublishRejected" >> PublishResults(rejected_to, keyed_rejected, native)


def follow_broker(
    specs: Sequence[CollectionSpec],
    source: BrokerStream,
    out: str,
    options: PipelineOptions,
    *,
    watermark_delay_ms: int,
    simulated_clock: bool,
    estimates_to: BrokerTopic | None,
    rejected_to: BrokerTopic | None,
    say: Callable[[str], None],
) -> None:
    """Follow a broker's stream into ``out``, a folder or URL that all workers share, until the job ends.

    Raises:
        JobError, KafkaError, PubSubError, ResultsError: before anything is run.
    """
    for endpoint in (source, estimates_to, rejected_to):
        if endpoint is not None:
            endpoint.check()
    if "://" in out:
        send_specs(out, specs)
    else:
        out = str(Path(out).absolute())
        prepare_results(Path(out), specs)
    pipeline = beam.Pipeline(options=options)
    build(
        pipeline,
        specs,
        source,
        out,
        watermark_delay_ms=watermark_delay_ms,
        simulated_clock=simulated_clock,
        estimates_to=estimates_to,
        rejected_to=rejected_to,
    )
    result = pipeline.run()
    say(f"{source}: followed into {out}")
    try:
        result.wait_until_finish()
    except KeyboardInterrupt:
        say("the job goes on without this command; stop it by the runner's own means")
        raise

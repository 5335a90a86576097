"""Jobs that follow a broker's stream: on a runner that keeps state in checkpoints, or on Prism, in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import apache_beam as beam
import grpc
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.runner import PipelineResult

from uldp.collector.admission import Admission
from uldp.collector.shared_specs import SharedSpecs
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.local import DATAFLOW, JOB_SERVERS, LOCAL_RUNNER, PRISM, pipeline_options, runs_here
from uldp.pipelines.jobs.loopback import loopback_servers
from uldp.pipelines.jobs.outputs import Claim, claimed_both
from uldp.pipelines.jobs.progress import Heartbeat, following, marked_incomplete, progress_of
from uldp.pipelines.jobs.settings import DEFAULTS, JobSettings
from uldp.pipelines.jobs.spec_folder import SpecFolder
from uldp.pipelines.jobs.spec_watch import begin_watch
from uldp.pipelines.jobs.submission import latest_read, submitted
from uldp.pipelines.jobs.written import mark_open_windows
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.aggregated import Aggregated
from uldp.transforms.io.endpoints import Endpoint, Following
from uldp.transforms.io.folders import is_remote
from uldp.transforms.io.placement import KEY_GROUPS
from uldp.transforms.io.results.write import WriteResults

#: Options that each runner needs so that no report is lost and a job can be updated. A user's own options follow them.
_ALWAYS = ("--streaming", "--no_save_main_session")
_FLINK = (
    # Without checkpoints, a job starts over after a failure, and never acknowledges a message to the broker.
    "--checkpointing_interval=10000",
    "--checkpointing_mode=EXACTLY_ONCE",
    # Keep the last checkpoint if a job is cancelled or loses its JobManager. --savepoint_path starts a job from it.
    "--externalized_checkpoints_enabled",
    "--retain_externalized_checkpoints_on_cancellation",
    # The elements are chunks of messages. Each bundle has a fixed cost; its elements wait for its end.
    "--max_bundle_size=1000",
    "--max_bundle_time_mills=500",  # Beam's spelling
    # Between two steps of a task, Beam encodes each element and decodes it again, so that no step can change what
    # another one sees. None changes an element: to the JVM they are bytes.
    "--faster_copy",
    # Flink passes the watermark on only between bundles. Without this option a source that always has more messages
    # left no gap between them, and a job of one slot fired no window. The output of a bundle that is open at a
    # checkpoint would also wait in the checkpoint until the next element or watermark arrives.
    "--finish_bundle_before_checkpointing",
    # A job cannot start from a savepoint that was taken with another value.
    f"--max_parallelism={KEY_GROUPS}",
)
#: Prism's default log does not help a user.
_PRISM = ("--prism_log_level=error",)
#: Seconds between two lines that say that the job runs. It may run for months.
_BEAT_SECONDS = 60.0


def cluster_options(arguments: Sequence[str]) -> PipelineOptions:
    """Parse Beam's arguments, and add what jobs need on their runner; RequestError if none can follow a broker."""
    runner = pipeline_options(arguments).view_as(StandardOptions).runner
    if runner in (None, LOCAL_RUNNER):
        raise RequestError(
            "a broker's stream needs a runner that takes checkpoints: for Flink, add --runner=PortableRunner"
            " --job_endpoint=HOST:PORT of its job server; for Dataflow, --runner=DataflowRunner; Kafka on this machine"
            " is followed by --runner=PrismRunner --prism_location=FILE; docs/running.md shows each; or count the"
            " messages that are there now with uldp backfill"
        )
    own = _FLINK if runner in JOB_SERVERS else _PRISM if runner == PRISM else ()
    return pipeline_options([*_ALWAYS, *own, *arguments])


def is_received_here(source: Endpoint, arguments: Sequence[str]) -> bool:
    """Return whether this machine receives and follows a job's stream; RequestError at an unknown option, or Prism."""
    if not source.needs_checkpoints:
        return False
    _refuse_memory(source, PipelineOptions([*arguments]))
    return runs_here(pipeline_options(arguments))


def _refuse_memory(source: Endpoint, options: PipelineOptions) -> None:
    if source.needs_checkpoints and options.view_as(StandardOptions).runner == PRISM:
        raise RequestError(
            f"{source}: --runner={PRISM} would acknowledge messages that it keeps only in memory; leave out --runner to"
            " follow the subscription on this machine, or use Flink or Dataflow"
        )


@dataclass(frozen=True)
class BrokerJob:
    """A job that follows a broker's stream."""

    specs: Sequence[CollectionSpec] | SharedSpecs  # the collections to serve
    source: Endpoint  # the stream
    settings: JobSettings = DEFAULTS

    def following(self, options: PipelineOptions) -> Following:
        """Return how a job with these options follows the stream."""
        native = options.view_as(StandardOptions).runner == DATAFLOW
        # An option of Flink, whose job server refuses what is not a number.
        slots = str(options.get_all_options(retain_unknown_options=True).get("parallelism"))
        delay, simulated = self.settings.watermark_delay_ms, self.settings.simulated_clock
        return Following(delay, simulated, native, int(slots) if slots.isdecimal() else 0)

    def check(self, options: PipelineOptions) -> None:
        """Ask for the stream and for the endpoints of estimates and rejected reports; see ``Endpoint.check``."""
        self.source.check_following(self.following(options))
        self.settings.publishing.check(here=options.view_as(StandardOptions).runner == PRISM)
        workers, shards = self.following(options).slots, self.settings.decisive["shards"]
        if workers > shards:
            self.settings.say(
                f"warning: of {workers:,} workers, {shards:,} remove copies and count: ids are in {shards:,} shards; a"
                " new job may have more by --shards"
            )

    def build(self, pipeline: beam.Pipeline, claim: Claim) -> None:
        """Build the graph: read, aggregate, write results, and publish estimates and rejected reports."""
        following = self.following(pipeline.options)
        messages = self.source.read(pipeline, following)
        aggregated: Aggregated = messages | "Aggregate" >> claim.keyed(self.settings.aggregate(self.specs))
        _ = aggregated | "WriteResults" >> WriteResults(claim.results, claim.private, self.settings.newest_only)
        self.settings.publishing.publish(aggregated, self.specs, native=following.native)


def follow_broker(
    job: BrokerJob,
    out: str,
    options: PipelineOptions,
    *,
    run_apart: Callable[[beam.Pipeline], PipelineResult],
    folder: SpecFolder | None = None,
) -> None:
    """Follow a broker's stream into ``out``, a folder or URL that all workers share, until the job ends.

    ``run_apart`` starts Prism, which must outlive a Ctrl-C until this job has ended. Specs of a ``folder`` change while
    a job runs on Prism, in this process; a cluster counts by those of the submission. RequestError, EndpointError or
    ResultsError before the pipeline runs.
    """
    source, settings, begun = job.source, job.settings, [*job.specs]
    private, say = settings.private, settings.say
    lines: Sequence[str] = ()
    in_memory = options.view_as(StandardOptions).runner == PRISM
    _refuse_memory(source, options)
    job.check(options)
    pipeline = beam.Pipeline(options=options)  # before the claim: Beam's file systems take their options from it
    # An option of Flink's job server, which Beam's Python SDK does not know.
    from_savepoint = "savepoint_path" in options.get_all_options(drop_default=True, retain_unknown_options=True)
    latest = latest_read(out, private, from_savepoint=from_savepoint)
    hot = folder if in_memory else None
    if not in_memory:
        specs, lines = submitted(begun, folder, out, latest, simulated_clock=settings.simulated_clock)
        begun = [*specs]
        job = replace(job, specs=begun)
    content, named = source.identity(), begun if hot is None else ()
    identity = JobIdentity.of("stream", source, content, named, resumes=not in_memory, **settings.decisive)
    key, keep = settings.sender_key, hot is None
    claiming = claimed_both(out, private, begun, identity, from_savepoint=from_savepoint, sender_key=key, keep=keep)
    with claiming as claim, loopback_servers():
        if hot is not None:
            found, watch = begin_watch(hot, Admission.of(begun), say, anew=latest is None)
            if latest is None or not settings.simulated_clock:
                found.look_while_reading(watch, latest)
            else:
                say(f"{hot.path}: not read: nobody knows what the run before has read of a simulation")
            job = replace(job, specs=found)
        settings.publishing.complete(claim.results, say)
        job.build(pipeline, claim)
        for line in lines:
            say(line)
        say(following(job.specs, source, claim.results))
        result = run_apart(pipeline) if in_memory else pipeline.run()
        _follow(result, claim.results, in_memory=in_memory, say=say)


def _follow(result: PipelineResult, out: str, *, in_memory: bool, say: Callable[[str], None]) -> None:
    """Wait until a job ends or the user stops this command."""
    here = None if is_remote(out) else Path(out)
    try:
        with Heartbeat(say, partial(progress_of, here), _BEAT_SECONDS):
            result.wait_until_finish()
    except KeyboardInterrupt:
        if in_memory:
            result.cancel()
            if here is not None and (marked := mark_open_windows(here)):
                say(marked_incomplete(marked))
        else:
            say("the job continues without this command; stop it with the tools of the runner")
        raise
    except grpc.RpcError as error:
        fate = "the job ended too" if in_memory else "the job continues on the cluster"
        raise RequestError(f"the job server no longer answers; {fate}") from error

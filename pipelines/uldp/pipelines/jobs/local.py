"""The two jobs: backfill an archive, follow a stream. The same graph, other sources."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    DirectOptions,
    PipelineOptions,
    PrismRunnerOptions,
    StandardOptions,
)
from apache_beam.pvalue import PCollection

from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.outputs import claimed, mark_open_windows
from uldp.pipelines.jobs.progress import (
    Heartbeat,
    announce_pane,
    announce_stopped,
    following,
    marked_incomplete,
    position,
)
from uldp.schemas.collection import CollectionSpec
from uldp.transforms.aggregate import Aggregate, Aggregated
from uldp.transforms.io.archive import LocalStreamEvents, ReadLocalStream
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.io.endpoints import Endpoint, EndpointError
from uldp.transforms.io.files import FilesEndpoint
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.results import WriteResults

#: What people type for "on this machine". Beam would try another engine each day; each job names the one it needs.
LOCAL_RUNNER = "DirectRunner"
#: Runners behind a job server, which has options that Python does not know.
JOB_SERVERS = frozenset({"FlinkRunner", "PortableRunner"})
#: A local runner in a program of its own, whose state ends with the command.
PRISM = "PrismRunner"


class JobError(ValueError):
    """A job that cannot be started as asked; the message says what to change."""


def pipeline_options(arguments: Sequence[str]) -> PipelineOptions:
    """Parse arguments for Beam.

    Raises:
        JobError: if one is no option of Beam's, unless the runner has options of its own; or if the runner is Prism and
            none says where that is, for Beam would download it.
    """
    stray = next((argument for argument in arguments[:1] if not argument.startswith("--")), None)
    if stray is not None:
        raise JobError(f"unexpected argument {stray!r}; see --help")
    options = PipelineOptions(list(arguments))
    if options.view_as(StandardOptions).runner in JOB_SERVERS:
        return options  # the server knows others than this process does
    known = options.get_all_options(retain_unknown_options=False)
    unknown = sorted(options.get_all_options(retain_unknown_options=True).keys() - known.keys())
    if unknown:
        raise JobError(f"unknown option --{unknown[0]}; neither uldp nor Beam has it, see --help")
    if options.view_as(StandardOptions).runner == PRISM:
        prism = options.view_as(PrismRunnerOptions).prism_location
        if prism is None or not Path(prism).is_file():
            raise JobError(
                f"--runner={PRISM} needs --prism_location=FILE, and {prism or 'that'} is not there; build one with:"
                f" go install github.com/apache/beam/sdks/v2/go/cmd/prism@v{beam.__version__}"
            )
    return options


def backfill(
    specs: Sequence[CollectionSpec], source: Endpoint | Path, out: str | Path, options: PipelineOptions
) -> None:
    """Aggregate an archive or all that a topic holds into ``out``; each window has one pane, and nothing is late.

    Args:
        specs: The collections to serve.
        source: The endpoint to read; a path is one of files.
        out: A directory, or a URL of another of Beam's file systems.
        options: Beam's.

    Raises:
        JobError, EndpointError, StreamError, RemoteError, KafkaError, ResultsError: before anything is run.
    """
    local = options.view_as(StandardOptions).runner in (None, LOCAL_RUNNER)
    several = local and options.view_as(DirectOptions).direct_num_workers != 1
    whole = FilesEndpoint(str(source)) if isinstance(source, Path) else source
    refuse_overlap(whole, str(out))
    with ExitStack() as stack:
        spill = Path(stack.enter_context(TemporaryDirectory(prefix="uldp-"))) if several else None
        pipeline = beam.Pipeline("FnApiRunner" if local else None, options)
        messages, aggregate = whole.read_whole(pipeline), Aggregate(specs, spill=spill)
        job = JobIdentity.of("backfill", whole.name, whole.content(), specs)
        results = stack.enter_context(claimed(str(out), specs, job))
        stack.enter_context(pipeline)  # it runs when this context ends, before the others do
        aggregated = messages | "Aggregate" >> aggregate
        _ = aggregated | "WriteResults" >> WriteResults(results)


def follow(
    specs: Sequence[CollectionSpec],
    source: Path,
    out: Path,
    options: PipelineOptions,
    *,
    watermark_delay_ms: int,
    say: Callable[[str], None],
) -> None:
    """Follow a local stream into ``out`` until it is closed; say each pane as it fires.

    If it is stopped before, or fails, windows that are open then are marked incomplete.

    The local runner keeps its state in memory. A job that is started again reads the stream from its beginning and
    comes to the same counts; panes replace those of the run before as soon as they hold as much.

    Raises:
        JobError, StreamError, ResultsError: before anything is run.
    """
    runner = options.view_as(StandardOptions).runner
    if runner not in (None, LOCAL_RUNNER):
        raise JobError(f"--runner={runner} cannot follow a local stream; leave it out, or backfill the directory")
    stream = LocalStream.open(source)
    aggregate = Aggregate(specs, simulated_clock=stream.simulated_clock)
    endpoint = FilesEndpoint(str(source))
    refuse_overlap(endpoint, str(out))
    options.view_as(StandardOptions).streaming = True
    pipeline = beam.Pipeline("BundleBasedDirectRunner", options)
    job = JobIdentity.of("stream", endpoint.name, stream.id, specs)
    with ExitStack() as stack:
        stack.enter_context(claimed(str(out), specs, job))
        say(following(specs, source, out))
        events = stack.enter_context(LocalStreamEvents(stream, watermark_delay_ms))
        beat = stack.enter_context(Heartbeat(say, partial(_position, specs, events)))
        messages: PCollection[Chunk] = pipeline | "ReadLocalStream" >> ReadLocalStream(events.endpoint)
        aggregated: Aggregated = messages | "Aggregate" >> aggregate
        _ = aggregated | "WriteResults" >> WriteResults(str(out))
        labels = {spec.key: spec.labels for spec in specs}
        _ = aggregated.estimates | "Announce" >> beam.Map(partial(announce_pane, beat, labels))
        stopping = frozenset(spec.key for spec in specs if spec.limits.when_exceeded == "stop")
        _ = aggregated.counts | "AnnounceStopped" >> beam.Map(partial(announce_stopped, beat, stopping))
        result = pipeline.run()
        try:
            result.wait_until_finish()
        except BaseException:
            # Before the events end: the runner would take that for the end of the stream, and fire all open windows.
            result.cancel()
            with suppress(OSError):  # on a full disk, what ended the job is what there is to say
                if marked := mark_open_windows(out):
                    say(marked_incomplete(marked))
            raise


def refuse_overlap(source: Endpoint, out: str) -> None:
    """Refuse results in the directory that is read, or one inside of the other: the next job would read them too.

    Raises:
        EndpointError: if it is so.
    """
    if source.overlaps(out):
        raise EndpointError(f"--from {source} and --to {out} overlap; choose a --to apart from what is read")


def _position(specs: Sequence[CollectionSpec], events: LocalStreamEvents) -> str:
    return position(
        [spec.window for spec in specs],
        messages=events.messages,
        segments=events.segments,
        ahead=events.announced - events.segments,
        watermark=events.watermark,
    )

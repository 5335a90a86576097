"""The two jobs, backfilling an archive and following a stream: the same graph with different sources."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from traceback import format_exception

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, PrismRunnerOptions, StandardOptions
from apache_beam.pvalue import PCollection
from apache_beam.runners.runner import PipelineResult, PipelineState

from uldp.collector.admission import Admission
from uldp.collector.shared_specs import SharedSpecs
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.loopback import loopback_servers
from uldp.pipelines.jobs.outputs import Claim, claimed_both
from uldp.pipelines.jobs.progress import (
    Heartbeat,
    announce_stopped,
    early,
    following,
    marked_incomplete,
    pane_lines,
    position,
)
from uldp.pipelines.jobs.resuming import Unwritten, has_begun, reach_of, resume_points
from uldp.pipelines.jobs.settings import DEFAULTS, JobSettings
from uldp.pipelines.jobs.spec_folder import SpecFolder
from uldp.pipelines.jobs.spec_watch import SpecWatch, begin_watch
from uldp.pipelines.jobs.written import mark_open_windows
from uldp.pipelines.live.position import Position, PositionFile, now_ms
from uldp.pipelines.results.records import keep_left_out
from uldp.schemas.errors import EndpointError, RequestError
from uldp.schemas.estimate import Estimate
from uldp.schemas.extras import needed
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.window import WindowSpec
from uldp.transforms.aggregated import Aggregated
from uldp.transforms.clock import clock_of_test_stream
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.io.durable_files import remove_file
from uldp.transforms.io.endpoints import Endpoint
from uldp.transforms.io.files import FilesEndpoint
from uldp.transforms.io.folders import below, is_remote
from uldp.transforms.io.local.events import LocalStreamEvents
from uldp.transforms.io.local.journal import JOURNAL
from uldp.transforms.io.local.lighter_runner import (
    copied_state,
    copied_steps,
    full_bundles,
    next_timers,
    remembered_specs,
    small_state,
)
from uldp.transforms.io.local.read_stream import ReadLocalStream
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError
from uldp.transforms.io.results.signing import write_journal
from uldp.transforms.io.results.write import WriteResults
from uldp.transforms.per_process import PerProcess

#: The runner name that users give to run on this machine. Beam would choose an engine behind this name, and its choice
#: changes between versions, so each job names the engine that it needs.
LOCAL_RUNNER = "DirectRunner"
#: Runners behind a job server. The server has options that Beam's Python SDK does not know.
JOB_SERVERS = frozenset({"FlinkRunner", "PortableRunner"})
#: Google's runner, which has connectors of its own.
DATAFLOW = "DataflowRunner"
#: A local runner that is a separate program; it loses its state when the command ends.
PRISM = "PrismRunner"


def pipeline_options(arguments: Sequence[str]) -> PipelineOptions:
    """Parse arguments for Beam; RequestError for an option that Beam does not know, or Prism without its binary."""
    stray = next((argument for argument in arguments[:1] if not argument.startswith("--")), None)
    if stray is not None:
        raise RequestError(f"unexpected argument {stray!r}; see --help")
    options = PipelineOptions(list(arguments))
    if options.view_as(StandardOptions).runner in JOB_SERVERS:
        return options  # the job server knows options that this process does not know
    known = options.get_all_options(retain_unknown_options=False)
    unknown = sorted(options.get_all_options(retain_unknown_options=True).keys() - known.keys())
    if unknown:
        raise RequestError(f"unknown option --{unknown[0]} for uldp and for Beam; see --help")
    if options.view_as(StandardOptions).runner == PRISM:
        prism = options.view_as(PrismRunnerOptions).prism_location
        if prism is None or not Path(prism).is_file():
            raise RequestError(
                f"--runner={PRISM} needs --prism_location=FILE, and {prism or 'the file'} does not exist; build Prism"
                f" with: go install github.com/apache/beam/sdks/v2/go/cmd/prism@v{beam.__version__}"
            )
    return options


def runs_here(options: PipelineOptions) -> bool:
    """Return whether options name no runner but that of this machine."""
    return options.view_as(StandardOptions).runner in (None, LOCAL_RUNNER)


def backfill(
    specs: Sequence[CollectionSpec],
    source: Endpoint | Path,
    out: str | Path,
    options: PipelineOptions,
    settings: JobSettings = DEFAULTS,
) -> None:
    """Aggregate an archive or all messages of a topic into ``out``; each window has one pane, and no report is late.

    RequestError, EndpointError, StreamError or ResultsError before the pipeline runs; StreamError that names all files
    if messages cannot be decoded.
    """
    runner, private, publishing = options.view_as(StandardOptions).runner, settings.private, settings.publishing
    local = runner in (None, LOCAL_RUNNER)
    # The steps of a pipeline that write a journal take a tenth of the time of a small backfill.
    in_process = local and options.view_as(DirectOptions).direct_running_mode != "multi_processing"
    journal: PerProcess[list[bytes]] | None = PerProcess(list) if in_process else None
    whole = FilesEndpoint(str(source)) if isinstance(source, Path) else source
    refuse_overlap(whole, str(out), private)
    publishing.check(here=runner in (None, LOCAL_RUNNER, PRISM))
    with ExitStack() as stack:
        stack.enter_context(remembered_specs())
        pipeline = beam.Pipeline("FnApiRunner" if local else None, options)
        aggregate = settings.aggregate(specs, here=local)
        messages = whole.read_whole(pipeline)
        job = JobIdentity.of("backfill", whole.name, whole.content(), specs, apart=not local, **settings.decisive)
        over = partial(_is_over, pipeline) if job.apart else lambda: True
        key = settings.sender_key
        claim = stack.enter_context(claimed_both(str(out), private, specs, job, sender_key=key, is_over=over))
        keep_left_out(claim.results, whole.left_out())
        remove_file(below(claim.results, JOURNAL))  # that of an earlier run: only a run that ends signs
        stack.enter_context(loopback_servers())
        stack.enter_context(_naming_all_damage(whole))
        with pipeline:  # it runs when this context ends
            aggregated = messages | "Aggregate" >> claim.keyed(aggregate)
            hold = None if journal is None else partial(_hold, journal)
            write = WriteResults(claim.results, claim.private, written=hold, sign=journal is None)
            _ = aggregated | "WriteResults" >> write
            publishing.publish(aggregated, specs, native=runner == DATAFLOW)
        if journal is not None:
            write_journal(claim.results, journal.value)
        if publishing.sinks and not is_remote(claim.results):
            # What this run has not written, by an estimator of another spec.
            publishing.complete(claim.results, settings.say)


class _AnnouncePanes(beam.DoFn):
    """Prints the lines of the panes of each bundle."""

    def __init__(self, say: Callable[[str], None], specs: SharedSpecs) -> None:
        self._say, self._specs = say, specs

    def start_bundle(self) -> None:
        self._panes = list[Estimate]()

    def process(self, estimate: Estimate) -> None:
        self._panes.append(estimate)

    def finish_bundle(self) -> None:
        for line in pane_lines(self._panes, self._specs):
            self._say(line)


def _hold(journal: PerProcess[list[bytes]], lines: bytes) -> None:
    journal.value.append(lines)


def _is_over(pipeline: beam.Pipeline) -> bool:
    """Return whether a runner says that the job of a pipeline has ended. Of a job that it did not name, none knows."""
    result: PipelineResult | None = getattr(pipeline, "result", None)
    return result is not None and PipelineState.is_terminal(result.state)


@contextmanager
def _naming_all_damage(source: Endpoint) -> Iterator[None]:
    """Name all damaged files of a source if a job has failed because of one: the user then mends all at once."""
    try:
        yield
    except Exception as error:
        # A runner with several workers raises an error of its own, with the traceback of the worker as text.
        if StreamError.__name__ in "".join(format_exception(error)) and (damage := source.damage()):
            raise StreamError("\n".join(damage)) from error
        raise


def follow(
    specs: Sequence[CollectionSpec] | SpecFolder,
    source: Path,
    out: Path,
    options: PipelineOptions,
    settings: JobSettings = DEFAULTS,
    *,
    settled: Callable[[], int | None] | None = None,
    clock: Callable[[], float] = time.time,
) -> None:
    """Aggregate a local stream into ``out`` until the stream is closed, and announce each pane when it fires.

    If the job is stopped earlier or fails, it marks the windows that are still open as incomplete.

    A job that is started again goes on, see ``uldp.pipelines.jobs.resuming``, and arrives at the same counts. Its panes
    replace the panes of the earlier run once they have received as many reports. It publishes again the panes of
    windows that can still change, under the same keys. Specs of a folder may change while the job runs; see
    ``uldp.collector.admission``. For ``settled``, see ``LocalStreamEvents``; for ``clock``, ``LocalStream``.
    RequestError, StreamError or ResultsError before the pipeline runs.
    """
    runner = options.view_as(StandardOptions).runner
    if runner not in (None, LOCAL_RUNNER):
        raise RequestError(f"--runner={runner} cannot follow a local stream; leave it out, or run uldp backfill")
    stream = LocalStream.open(source, clock)
    settings = replace(settings, simulated_clock=stream.simulated_clock)
    private, publishing, say = settings.private, settings.publishing, settings.say
    folder = specs if isinstance(specs, SpecFolder) else None
    begun = specs.found() if isinstance(specs, SpecFolder) else [*SharedSpecs.of(specs)]
    endpoint = FilesEndpoint(str(source))
    refuse_overlap(endpoint, str(out), private)
    publishing.check(here=True)
    options.view_as(StandardOptions).streaming = True
    pipeline = beam.Pipeline("BundleBasedDirectRunner", options)
    # The specs of a folder come and go: each collection has an identity of its own there.
    decisive = begun if folder is None else ()
    job = JobIdentity.of("stream", endpoint.name, stream.id, decisive, **settings.decisive)
    with ExitStack() as stack:
        stack.enter_context(remembered_specs())
        key, keep = settings.sender_key, folder is None
        claim = stack.enter_context(claimed_both(str(out), private, begun, job, sender_key=key, keep=keep))
        watch: SpecWatch | None = None
        if folder is None:
            shared = SharedSpecs.of(begun)
        else:
            shared, watch = begin_watch(folder, Admission.of(begun), say, anew=not has_begun(claim))
        points = stack.enter_context(resume_points(shared, stream, claim, settings.watermark_delay_ms, say))
        publishing.complete(claim.results, say)
        stack.enter_context(points.journal)
        for changed in (small_state, copied_state, copied_steps, full_bundles, next_timers, clock_of_test_stream):
            stack.enter_context(changed())
        say(following(shared, source, out))
        windows = [spec.window for spec in shared]

        def look(latest: int) -> list[WindowSpec] | None:
            if watch is None or not watch.look(latest):
                return None
            points.reach = max(points.reach, reach_of(shared))
            return [spec.window for spec in shared]

        def warn(early_ms: int) -> None:
            say(f"warning: {early(early_ms)}; set the clock of this machine")

        serving = LocalStreamEvents(stream, settings.watermark_delay_ms, windows, points, warn, settled, look)
        events = stack.enter_context(serving)
        beat = stack.enter_context(Heartbeat(say, partial(_position, shared, events)))
        position = partial(_where, events, folder, now_ms())
        stack.enter_context(PositionFile(Path(claim.results), position))
        if settings.metrics_port is not None:
            url = stack.enter_context(_monitored(settings.metrics_port, claim, position))
            say(f"metrics at {url}")
        messages: PCollection[Chunk] = pipeline | "ReadLocalStream" >> ReadLocalStream(events)
        aggregated: Aggregated = messages | "Aggregate" >> claim.keyed(settings.aggregate(shared, here=True))
        if points.start is not None:
            aggregated = Unwritten.after(points.start, shared).of(aggregated)
        publishing.publish(aggregated, shared, native=False)
        hold = points.journal.hold
        _ = aggregated | "WriteResults" >> WriteResults(claim.results, claim.private, settings.newest_only, hold)
        _ = aggregated.estimates | "Announce" >> beam.ParDo(_AnnouncePanes(beat, shared))
        _ = aggregated.counts | "AnnounceStopped" >> beam.Map(partial(announce_stopped, beat, shared))
        result = pipeline.run()
        try:
            result.wait_until_finish()
            events.check_whole()
            points.journal.commit()
        except BaseException:
            # Cancel before the events end: the runner would take their end for the end of the stream, and fire all
            # open windows.
            result.cancel()
            with suppress(OSError):  # on a full disk, report the error that ended the job instead
                if marked := mark_open_windows(out):
                    say(marked_incomplete(marked))
            raise


def refuse_overlap(source: Endpoint, out: str, private: str | None = None) -> None:
    """Raise EndpointError if results are in the directory that is read, or around it: the next job would read them."""
    for option, folder in (("--to", out), ("--private-to", private)):
        if folder is not None and source.overlaps(folder):
            raise EndpointError(
                f"--from {source} and {option} {folder} overlap; "
                f"choose a {option} that is neither inside --from nor around it"
            )


def _where(events: LocalStreamEvents, folder: SpecFolder | None, begun: int) -> Position:
    return Position(
        at=now_ms(),
        begun=begun,
        process=os.getpid(),
        simulated=events.simulated_clock,
        watermark=events.watermark,
        segments=events.segments,
        messages=events.messages,
        ahead=events.ahead,
        asked=events.asked_ms,
        spec_refused=0 if folder is None else folder.refused_files,
    )


def _monitored(port: int, claim: Claim, position: Callable[[], Position]) -> AbstractContextManager[str]:
    """Show metrics; see ``monitored``; RequestError if the server is not installed."""
    with needed("--metrics-port", "serve"):
        from uldp.pipelines.live.monitor import monitored
    return monitored(port, Path(claim.results), Path(claim.private), position)


def _position(specs: Iterable[CollectionSpec], events: LocalStreamEvents) -> str:
    return position(
        [spec.window for spec in specs],
        messages=events.messages,
        segments=events.segments,
        ahead=events.ahead,
        watermark=events.watermark,
        early_ms=events.early_ms,
    )

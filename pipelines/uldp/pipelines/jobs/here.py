"""Follow a subscription of Pub/Sub on this machine, without a cluster: by a local stream of what was received."""

from collections.abc import Callable, Sequence
from pathlib import Path

from apache_beam.options.pipeline_options import PipelineOptions

from uldp.pipelines.jobs.local import follow
from uldp.pipelines.jobs.settings import JobSettings
from uldp.pipelines.jobs.spec_folder import SpecFolder
from uldp.schemas.errors import EndpointError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.endpoints import Endpoint, Following
from uldp.transforms.io.local.resume_point import RESUME, ResumePoint
from uldp.transforms.io.local.segments import number_of
from uldp.transforms.io.pubsub.client import Puller
from uldp.transforms.io.pubsub.endpoint import SubscriptionEndpoint
from uldp.transforms.io.pubsub.inbox import Inbox, Progress, open_inbox


def inbox_of(source: SubscriptionEndpoint, out: Path) -> Path:
    """Return the folder of what a job has received: beside its results, because only the job needs it.

    >>> from uldp.transforms.io.pubsub.endpoint import parse
    >>> str(inbox_of(parse("pubsub:projects/example/subscriptions/reports"), Path("results")))
    'results.inbox/example.reports'
    """
    return out.with_name(f"{out.name}.inbox") / f"{source.subscription.project}.{source.subscription.name}"


def follow_subscription(
    specs: Sequence[CollectionSpec] | SpecFolder,
    source: Endpoint,
    out: Path,
    options: PipelineOptions,
    settings: JobSettings,
    interrupt: Callable[[], None],
) -> None:
    """Aggregate a subscription into ``out`` until the job is stopped; see ``Inbox`` for what is promised.

    ``interrupt`` is that of ``Inbox.receiving``. The job removes each segment of the inbox that no open window needs.
    OSError or EndpointError if the job cannot receive any more.
    """
    if not isinstance(source, SubscriptionEndpoint):
        raise EndpointError(f"{source}: only a subscription of Pub/Sub is received on this machine; name a --runner")
    if source.pullers is not None:
        raise EndpointError(f"{source}: one reader pulls on this machine; leave out pullers")
    source.check_following(Following(settings.watermark_delay_ms, settings.simulated_clock, native=False))
    stream = open_inbox(inbox_of(source, out), simulated_clock=settings.simulated_clock)

    def progress() -> Progress:
        point = ResumePoint.read(out / RESUME)
        return Progress() if point is None else Progress(number_of(point.first), number_of(point.segment))

    inbox = Inbox(Puller(source.subscription, source.timestamp_attribute), stream, progress)
    once = f"at least once: messages are acknowledged when they are in {stream.path}; copies count once"
    settings.say(f"{source}: {once}")
    inbox.catch_up(settings.watermark_delay_ms)
    with inbox.receiving(interrupt):
        follow(specs, stream.path, out, options, settings, settled=lambda: inbox.settled)

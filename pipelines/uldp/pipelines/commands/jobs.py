"""The commands that run jobs: backfill and stream."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uldp.pipelines.commands.output import load, load_or_follow, say, show_log, summarize
from uldp.pipelines.options import BEAM, FOLDER, PUBLISHED_BY, SPECS_IN, duration_ms, job_options
from uldp.pipelines.process import interrupt, run_apart, silence_workers, stop_on_terminate

if TYPE_CHECKING:
    from uldp.pipelines.jobs.settings import JobSettings

#: Its log says what a topic has lost, and that no broker answers.
_KAFKA = "uldp.transforms.io.kafka"


@click.command(context_settings=BEAM)
@job_options(
    sources="Messages: a file, a directory or a URL of files, or a topic, kafka:HOST:PORT/TOPIC.",
    results="Directory of the results, or a URL such as gs://...",
)
@PUBLISHED_BY
def backfill(
    ctx: click.Context,
    specs: tuple[Path, ...],
    source: str,
    out: str,
    kafka_config: Path | None,
    published_by: int | None,
    **given: Any,
) -> None:
    """Aggregate an archive, or all messages of a stream; each window has one pane. Other options go to Beam.

    Example: uldp backfill --spec examples/manhattan/spec.yaml --from stream --to results
    """
    from uldp.pipelines.jobs import local
    from uldp.pipelines.results.prune import refuse_lost
    from uldp.transforms.io.endpoints import parse_endpoint
    from uldp.transforms.io.files import published

    show_log("uldp.transforms.io.archive", logging.WARNING)
    show_log("uldp.transforms.io.read_archive", logging.INFO)
    show_log(_KAFKA, logging.WARNING)
    _silence_workers(ctx)
    archive = published(parse_endpoint(source, kafka_config), published_by)
    if Path(source).name == "late":
        refuse_lost(Path(source))
    options = local.pipeline_options(ctx.args)
    settings = _settings(kafka_config, **given)
    local.backfill(load(specs), archive, out, options, settings)
    summarize(out, settings.private)


@click.command(context_settings=BEAM)
@job_options(
    sources="A local stream's directory, kafka:HOST:PORT/TOPIC, or pubsub:projects/P/subscriptions/S, where"
    " ?timestamp_attribute=A&id_label=A&pullers=N may follow.",
    results="Directory of the results; of a broker's stream, a URL such as gs://... too.",
    needs_spec=False,
)
@SPECS_IN
@click.option(
    "--watermark-delay",
    default="10s",
    show_default=True,
    type=duration_ms,
    metavar="DURATION",
    help="How far out of order messages may come before they are late.",
)
@click.option(
    "--keep-panes",
    default="all",
    show_default=True,
    type=click.Choice(["all", "newest"]),
    help="Whether a pane's file stays when a newer pane of its window is written.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Port of this machine at which a job here shows /metrics for Prometheus, and /healthz; 0 for any.",
)
@click.option("--simulated-clock", is_flag=True, help="uldp simulate published the messages of the broker.")
def stream(
    ctx: click.Context,
    specs: tuple[Path, ...],
    specs_in: str | None,
    source: str,
    out: str,
    kafka_config: Path | None,
    watermark_delay: int,
    keep_panes: str,
    metrics_port: int | None,
    simulated_clock: bool,
    **given: Any,
) -> None:
    """Follow a stream. Other options go to Beam.

    The command follows a local stream until the stream is closed. It prints each pane when it fires, and its position
    in between. Stop it with Ctrl-C or SIGTERM: it marks open windows as incomplete. If you start it again, it reads the
    segments again that open windows need, and gets the same counts.

    The stream of a broker, kafka:HOST:PORT/TOPIC or pubsub:projects/P/subscriptions/S, needs a runner that takes
    checkpoints. On this machine --runner=PrismRunner follows Kafka without them, and without --runner the command
    follows Pub/Sub: it keeps messages in DIR.inbox beside the results until no open window needs them.

    Example: uldp stream --spec examples/manhattan/spec.yaml --from stream --to results
    """
    from uldp.pipelines.jobs import cluster, local
    from uldp.pipelines.jobs.spec_folder import SpecFolder
    from uldp.transforms.io.endpoints import parse_endpoint
    from uldp.transforms.io.files import FilesEndpoint

    stop_on_terminate()
    show_log(_KAFKA, logging.WARNING)
    _silence_workers(ctx)
    loaded = load_or_follow(specs, specs_in, out)
    followed = parse_endpoint(source, kafka_config)
    settings = replace(
        _settings(kafka_config, **given),
        watermark_delay_ms=watermark_delay,
        newest_only=keep_panes == "newest",
        simulated_clock=simulated_clock,
        metrics_port=metrics_port,
    )
    folder = followed.path if isinstance(followed, FilesEndpoint) else None
    if isinstance(followed, FilesEndpoint) and folder is None:
        raise click.UsageError(f"{source}: cannot be followed; count its messages with uldp backfill")
    received = cluster.is_received_here(followed, ctx.args)
    if folder is None and not received:
        if metrics_port is not None:
            raise click.UsageError("--metrics-port shows a job without --runner; that of a runner has its own metrics")
        specs_folder = loaded if isinstance(loaded, SpecFolder) else None
        job = cluster.BrokerJob(loaded.found() if isinstance(loaded, SpecFolder) else loaded, followed, settings)
        cluster.follow_broker(job, out, cluster.cluster_options(ctx.args), folder=specs_folder, run_apart=run_apart)
        return
    if simulated_clock and not received:
        raise click.UsageError("--simulated-clock needs a broker's stream; leave it out")
    options, results = local.pipeline_options(ctx.args), FOLDER.convert(out, None, None)
    if folder is None:
        from uldp.pipelines.jobs.here import follow_subscription

        follow_subscription(loaded, followed, results, options, settings, interrupt)
    else:
        local.follow(loaded, folder, results, options, settings)
    summarize(out, settings.private)


def _silence_workers(ctx: click.Context) -> None:
    """Do so without ``-v``; the logs that are shown by then stay."""
    if not ctx.find_root().params["verbose"]:
        silence_workers()


def _settings(
    kafka_config: Path | None,
    *,
    private_to: str | None,
    estimates_to: str | None,
    rejected_to: str | None,
    **given: Any,
) -> "JobSettings":
    """Return the settings that both commands have, of which ``given`` are named as in the class."""
    from uldp.pipelines.jobs.publishing import Publishing
    from uldp.pipelines.jobs.settings import JobSettings
    from uldp.transforms.io.endpoints import parse_endpoint

    places = (None if to is None else parse_endpoint(to, kafka_config) for to in (estimates_to, rejected_to))
    return JobSettings(private=private_to, publishing=Publishing(*places), say=say, **given)

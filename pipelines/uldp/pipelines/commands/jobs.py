"""The commands that run jobs: backfill and stream."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uldp.pipelines.commands.output import load, load_or_follow, say, show_log, summarize
from uldp.pipelines.options import BEAM, FOLDER, PUBLISHED_BY, SPECS_IN, duration_ms, job_options
from uldp.pipelines.process import interrupt, run_apart, silence_workers, stop_on_terminate

if TYPE_CHECKING:
    from uldp.pipelines.jobs.publishing import Publishing

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
    private_to: str | None,
    sender_key: Path | None,
    registry_ids: Mapping[int, str] | None,
    kafka_config: Path | None,
    published_by: int | None,
    keep_ids: bool,
    **topics: str | None,
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
    local.backfill(
        load(specs),
        archive,
        out,
        options,
        private=private_to,
        sender_key=sender_key,
        registry_ids=registry_ids,
        publishing=_publishing(topics, kafka_config),
        keep_ids=keep_ids,
        say=say,
    )
    summarize(out, private_to)


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
    private_to: str | None,
    sender_key: Path | None,
    registry_ids: Mapping[int, str] | None,
    kafka_config: Path | None,
    watermark_delay: int,
    keep_panes: str,
    metrics_port: int | None,
    simulated_clock: bool,
    keep_ids: bool,
    **topics: str | None,
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
    publishing = _publishing(topics, kafka_config)
    folder = followed.path if isinstance(followed, FilesEndpoint) else None
    if isinstance(followed, FilesEndpoint) and folder is None:
        raise click.UsageError(f"{source}: cannot be followed; count its messages with uldp backfill")
    received = cluster.is_received_here(followed, ctx.args)
    if folder is None and not received:
        if metrics_port is not None:
            raise click.UsageError("--metrics-port shows a job without --runner; that of a runner has its own metrics")
        specs_folder = loaded if isinstance(loaded, SpecFolder) else None
        job = cluster.BrokerJob(
            loaded.found() if isinstance(loaded, SpecFolder) else loaded,
            followed,
            watermark_delay,
            simulated_clock,
            publishing,
            newest_only=keep_panes == "newest",
            registry_ids=registry_ids,
            keep_ids=keep_ids,
        )
        options = cluster.cluster_options(ctx.args)
        keys: dict[str, Any] = {"private": private_to, "sender_key": sender_key}
        cluster.follow_broker(job, out, options, say, folder=specs_folder, run_apart=run_apart, **keys)
        return
    if simulated_clock and not received:
        raise click.UsageError("--simulated-clock needs a broker's stream; leave it out")
    options, results = local.pipeline_options(ctx.args), FOLDER.convert(out, None, None)
    settings: dict[str, Any] = {
        "private": private_to,
        "sender_key": sender_key,
        "registry_ids": registry_ids,
        "watermark_delay_ms": watermark_delay,
        "newest_only": keep_panes == "newest",
        "publishing": publishing,
        "keep_ids": keep_ids,
        "metrics_port": metrics_port,
        "say": say,
    }
    if folder is None:
        from uldp.pipelines.jobs.here import follow_subscription

        settings |= {"simulated_clock": simulated_clock, "interrupt": interrupt}
        follow_subscription(loaded, followed, results, options, **settings)
    else:
        local.follow(loaded, folder, results, options, **settings)
    summarize(out, private_to)


def _silence_workers(ctx: click.Context) -> None:
    """Do so without ``-v``; the logs that are shown by then stay."""
    if not ctx.find_root().params["verbose"]:
        silence_workers()


def _publishing(topics: Mapping[str, str | None], kafka_config: Path | None) -> "Publishing":
    """Read where a job publishes what it finds."""
    from uldp.pipelines.jobs.publishing import Publishing
    from uldp.transforms.io.endpoints import parse_endpoint

    return Publishing(**{name: parse_endpoint(to, kafka_config) for name, to in topics.items() if to is not None})

"""The command line: ``uldp``. Parses, calls, and turns every error that a user can mend into one line.

Beam is imported by the commands that run it, so that ``--help`` and ``check`` answer at once.
"""

import json
import logging
import os
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uldp.pipelines.options import (
    BEAM,
    FOLDER,
    KAFKA_CONFIG,
    SPEC,
    duration_ms,
    grid_shape,
    here_or_topic,
    job_options,
    time_ms,
)
from uldp.pipelines.process import run_apart, stop_on_terminate
from uldp.schemas.collection import CollectionSpec
from uldp.schemas.mistakes import printable

if TYPE_CHECKING:
    from uldp.pipelines.results.read import ResultsError

#: What a user can mend: specs, truths, streams, results, arguments (all ValueError) and the file system (OSError).
_MENDABLE = (ValueError, OSError)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("-v", "--verbose", is_flag=True, help="Show Beam's log, and a traceback with each error.")
@click.version_option(package_name="uldp-stream")
def cli(verbose: bool) -> None:
    """Collect statistics from devices under (utility-optimized) local differential privacy.

    \b
    uldp simulate examples/manhattan/spec.yaml --truth examples/manhattan/truth.csv --users 100000 --to stream
    uldp backfill --spec examples/manhattan/spec.yaml --from stream --to results
    uldp show results
    """  # noqa: D301 (the escape is click's mark for lines that stay as they are)
    logging.basicConfig(level=logging.INFO if verbose else logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    if not verbose:  # what fails is said once, by main
        logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        warnings.simplefilter("ignore")


@cli.command()
@click.argument("specs", metavar="SPEC...", nargs=-1, required=True, type=SPEC)
@click.option(
    "--users",
    default=100_000,
    show_default=True,
    type=click.IntRange(1),
    help="Number of users, n, for the expected errors.",
)
def check(specs: tuple[Path, ...], users: int) -> None:
    """Validate specs; print p, q, epsilon and the expected errors, and warn of probable mistakes.

    Example: uldp check examples/manhattan/spec.yaml --users 179527
    """
    from uldp.pipelines.caveats import caveats
    from uldp.pipelines.results.text import spec_text

    for path in specs:
        spec = CollectionSpec.load(path)
        _say(f"{path}: {spec_text(spec, users)}")
        for caveat in caveats(spec, users):
            _say(f"warning: {path}: {caveat}")


@cli.command()
@click.argument("spec", type=SPEC)
@click.option("--truth", required=True, type=SPEC, help="CSV of value,tag,weight: the true distribution.")
@click.option("--users", required=True, type=click.IntRange(1), help="Number of users; each sends one report.")
@click.option(
    "--to",
    required=True,
    callback=here_or_topic,
    help="Directory of a new local stream, kafka:HOST:PORT/TOPIC, or pubsub:projects/P/topics/T?timestamp_attribute=A.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="Seed of the report ids; the same seed, collection, version and start give the same ids.",
)
@click.option(
    "--batch-size", type=click.IntRange(1), help="Number of reports in a message.  [default: one, not in a batch]"
)
@click.option("--start", default="2026-01-05T09:00:00Z", show_default=True, type=time_ms, metavar="TIME")
@click.option("--duration", default="3h", show_default=True, type=duration_ms, metavar="DURATION")
@click.option("--duplicates", default=0.0, type=click.FloatRange(0, 1), help="Share of reports that are sent twice.")
@click.option(
    "--late",
    default=0.0,
    type=click.FloatRange(0, 1),
    help="Share of reports that arrive after the end of their window.",
)
@click.option("--malformed", default=0.0, type=click.FloatRange(0, 1), help="Share of reports that arrive damaged.")
@click.option(
    "--speed",
    type=click.FloatRange(0, min_open=True),
    help="Simulated seconds per second.  [default: as fast as possible]",
)
@KAFKA_CONFIG
def simulate(
    spec: Path,
    truth: Path,
    to: str,
    users: int,
    start: int,
    duration: int,
    speed: float | None,
    kafka_config: Path | None,
    **settings: Any,
) -> None:
    """Simulate a fleet of devices that sends obfuscated reports into a stream.

    Example: uldp simulate examples/manhattan/spec.yaml --truth examples/manhattan/truth.csv
    --users 100000 --to stream --duplicates 0.01
    """
    from uldp.pipelines.simulation.fleet import Fleet
    from uldp.pipelines.simulation.simulate import simulate as publish
    from uldp.pipelines.simulation.truth import Truth
    from uldp.transforms.io.endpoints import parse_endpoint

    loaded = CollectionSpec.load(spec)
    fleet = Fleet(loaded, Truth.load(truth, loaded), users=users, start_ms=start, duration_ms=duration, **settings)
    with parse_endpoint(to, kafka_config).writing(simulated_clock=True) as stream:
        if sys.stderr.isatty():
            with click.progressbar(length=users, label="reports", file=sys.stderr) as bar:
                sent = publish(fleet, stream, speed=speed, progress=lambda done: bar.update(done - bar.pos))
        else:  # click would print the label and nothing else
            sent = publish(fleet, stream, speed=speed)
    _say(f"{to}: {sent}")


@cli.command(context_settings=BEAM)
@job_options(
    sources="Messages: a file, a directory or a URL of files, or a topic, kafka:HOST:PORT/TOPIC.",
    results="Directory of the results, or a URL such as gs://...",
)
def backfill(
    ctx: click.Context,
    specs: tuple[Path, ...],
    source: str,
    out: str,
    private_to: str | None,
    kafka_config: Path | None,
) -> None:
    """Aggregate an archive, or all messages of a stream; each window has one pane. Other options go to Beam.

    Example: uldp backfill --spec examples/manhattan/spec.yaml --from stream --to results
    """
    from uldp.pipelines.jobs import local
    from uldp.transforms.io.endpoints import parse_endpoint

    reading = logging.getLogger("uldp.transforms.io.archive")
    reading.setLevel(logging.INFO)
    reading.handlers, reading.propagate = [logging.StreamHandler()], False
    archive = parse_endpoint(source, kafka_config)
    local.backfill(_load(specs), archive, out, local.pipeline_options(ctx.args), private=private_to)
    _summarize(out, private_to)


@cli.command(context_settings=BEAM)
@job_options(
    sources="A local stream's directory, kafka:HOST:PORT/TOPIC, or pubsub:projects/P/subscriptions/S, where"
    " ?timestamp_attribute=A&id_label=A&pullers=N may follow.",
    results="Directory of the results; of a broker's stream, a URL such as gs://... too.",
)
@click.option(
    "--watermark-delay",
    default="10s",
    show_default=True,
    type=duration_ms,
    metavar="DURATION",
    help="How far out of order messages may come before they are late.",
)
@click.option("--simulated-clock", is_flag=True, help="uldp simulate published the messages of the broker.")
@click.option(
    "--estimates-to",
    metavar="URI",
    help="Topic or table to which a broker's job publishes estimates too; a table is bigquery:PROJECT.DATASET.TABLE.",
)
@click.option("--rejected-to", metavar="TOPIC", help="Topic to which a broker's job publishes rejected reports too.")
def stream(
    ctx: click.Context,
    specs: tuple[Path, ...],
    source: str,
    out: str,
    private_to: str | None,
    kafka_config: Path | None,
    watermark_delay: int,
    simulated_clock: bool,
    **topics: str | None,
) -> None:
    """Follow a stream. Other options go to Beam.

    The command follows a local stream until the stream is closed. It prints each pane when it fires, and its position
    in between. Stop it with Ctrl-C or SIGTERM: it marks open windows as incomplete. If you start it again, it reads the
    stream from its beginning and gets the same counts.

    The stream of a broker, kafka:HOST:PORT/TOPIC or pubsub:projects/P/subscriptions/S, needs a runner that takes
    checkpoints. --runner=PrismRunner follows Kafka on this machine without them.

    Example: uldp stream --spec examples/manhattan/spec.yaml --from stream --to results
    """
    from uldp.pipelines.jobs import cluster, local
    from uldp.transforms.io.endpoints import parse_endpoint
    from uldp.transforms.io.files import FilesEndpoint

    stop_on_terminate()
    loaded, followed = _load(specs), parse_endpoint(source, kafka_config)
    named = {name: parse_endpoint(topic, kafka_config) for name, topic in topics.items() if topic is not None}
    here = followed.path if isinstance(followed, FilesEndpoint) else None
    if isinstance(followed, FilesEndpoint) and here is None:
        raise click.UsageError(f"{source}: cannot be followed; count its messages with uldp backfill")
    if here is None:
        job = cluster.BrokerJob(loaded, followed, watermark_delay, simulated_clock, **named)
        options = cluster.cluster_options(ctx.args)
        cluster.follow_broker(job, out, options, _say, private=private_to, run_apart=run_apart)
        return
    if named or simulated_clock:
        raise click.UsageError(
            "--simulated-clock, --estimates-to and --rejected-to need a broker's stream; leave them out"
        )
    options = local.pipeline_options(ctx.args)
    local.follow(
        loaded,
        here,
        FOLDER.convert(out, None, None),
        options,
        private=private_to,
        watermark_delay_ms=watermark_delay,
        say=_say,
    )
    _summarize(out, private_to)


@cli.command()
@click.argument("out", type=FOLDER)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.option(
    "--top", default=10, show_default=True, type=click.IntRange(1), help="Number of values to show per window."
)
@click.option("--collection", metavar="NAME", help="Only windows of this collection.")
@click.option("--since", type=time_ms, metavar="TIME", help="Only windows that end after this time.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N windows of each collection.")
@click.option("--estimator", metavar="NAME", help="Only estimates of this estimator.")
def show(out: Path, as_json: bool, top: int, **chosen: Any) -> None:
    """Print the newest pane of each window.

    A damaged file hides only its own window. The command names the file at the end, and its exit code is 1.

    Example: uldp show results --collection manhattan-checkins --last 1 --json
    """
    from uldp.pipelines.results import read, text
    from uldp.pipelines.results.selection import ALL, Selection

    specs, selection = read.read_specs(out), Selection(**chosen)
    read.check_selection(out, specs, selection)
    damaged: list[ResultsError] = []
    estimates, unpublished = read.current(out, specs, selection, damaged.append)
    for estimate, spec in read.with_specs(estimates, specs, damaged.append):
        if as_json:
            _say(json.dumps(read.to_json(estimate)))
        else:
            _say(text.estimate_text(estimate, spec.labels, top=top))
    for pane in unpublished:
        _say(text.unpublished_text(pane), err=as_json)
    if not (estimates or unpublished or damaged):
        _say(f"{out}: no window {'' if selection == ALL else 'of these '}has fired", err=as_json)
    _name(damaged)


@cli.command()
@click.argument("results", metavar="OUT", type=FOLDER)
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="File of the page.")
@click.option("--truth", type=SPEC, help="CSV of value,tag,weight: the true distribution of a simulation.")
@click.option("--collection", help="The collection of --truth, if the results have several.")
@click.option(
    "--grid",
    type=grid_shape,
    metavar="ROWSxCOLUMNS",
    help="Draw the values as cells of a map, row by row from the bottom.",
)
def report(results: Path, out: Path, truth: Path | None, collection: str | None, grid: tuple[int, int] | None) -> None:
    """Write one self-contained HTML page of the newest pane of each window.

    Example: uldp report results --out report.html --truth examples/manhattan/truth.csv --grid 25x25
    """
    from uldp.pipelines.report.page import write_report
    from uldp.pipelines.results.read import ResultsError, read_specs
    from uldp.pipelines.simulation.truth import Truth

    specs = read_specs(results)
    of_truth = [spec for spec in specs.values() if collection in (None, spec.collection)]
    if truth is not None and len({spec.collection for spec in of_truth}) != 1:
        names = ", ".join(sorted({spec.collection for spec in specs.values()}))
        raise ResultsError(f"--truth needs the collection that it belongs to; add --collection, one of: {names}")
    truths = {spec.key: Truth.load(truth, spec).distribution for spec in of_truth} if truth is not None else {}
    damaged: list[ResultsError] = []
    write_report(results, out, truth=truths, grid=grid, damaged=damaged.append)
    _say(f"wrote {out}")
    _name(damaged)


@cli.command()
@click.argument("rejected", type=FOLDER)
@click.option(
    "--to",
    required=True,
    callback=here_or_topic,
    help="An open local stream, the directory of a new one, kafka:HOST:PORT/TOPIC or pubsub:projects/P/topics/T.",
)
@click.option(
    "--max-attempts",
    default=5,
    show_default=True,
    type=click.IntRange(1),
    help="Do not send reports that were sent this often.",
)
@KAFKA_CONFIG
def replay(rejected: Path, to: str, max_attempts: int, kafka_config: Path | None) -> None:
    """Send rejected reports again after you have fixed the cause. A report that was counted is not counted again.

    Example: uldp replay results/rejected --to stream
    """
    from uldp.pipelines.results.read import read_rejected_folder
    from uldp.pipelines.results.replay import replay as send_again
    from uldp.transforms.io.endpoints import parse_endpoint

    records = read_rejected_folder(rejected)
    with parse_endpoint(to, kafka_config).writing(simulated_clock=False) as stream:
        sent = send_again(records, stream, max_attempts=max_attempts)
    _say(f"{to}: {sent}")


@cli.command()
@click.argument("out", type=FOLDER)
@click.option(
    "--keep",
    default="30d",
    show_default=True,
    type=duration_ms,
    metavar="DURATION",
    help="How long late and rejected reports stay.",
)
@click.option("--dry-run", is_flag=True, help="Remove nothing; say what would be removed.")
def prune(out: Path, keep: int, dry_run: bool) -> None:
    """Remove older panes of each window, and old late and rejected reports. A job may run meanwhile.

    The newest pane of each window and estimator stays. OUT may also be the directory of --private-to.

    Example: uldp prune results --keep 7d --dry-run
    """
    from uldp.pipelines.results.prune import prune as remove

    damaged: list[ResultsError] = []
    pruned = remove(out, before=time.time() - keep / 1000, dry_run=dry_run, damaged=damaged.append)
    _say(f"{out}: {'would remove' if dry_run else 'removed'} {pruned}")
    _name(damaged)


@cli.command()
@click.option(
    "--out",
    default="demo",
    show_default=True,
    type=FOLDER,
    help="A new directory, or the directory of an earlier demo, which is replaced.",
)
@click.option("--users", default=180_000, show_default=True, type=click.IntRange(1000))
@click.option(
    "--speed", default=240.0, show_default=True, type=click.FloatRange(1), help="Simulated seconds per second."
)
def demo(out: Path, users: int, speed: float) -> None:
    """Run the main job on check-ins in Manhattan: a live fleet, a live stream, live estimates, a report.

    Example: uldp demo --out build/demo
    """
    from uldp.pipelines.simulation.demo import run_demo

    run_demo(out, users=users, speed=speed, say=_say)


def _say(text: str, *, err: bool = False) -> None:
    """Print lines; all output passes through here, because labels, names of files and ids in it may be hostile."""
    for line in text.split("\n"):
        click.echo(printable(line), err=err)


def _load(paths: tuple[Path, ...]) -> list[CollectionSpec]:
    return [CollectionSpec.load(path) for path in paths]


def _summarize(out: str, private: str | None) -> None:
    from uldp.pipelines.jobs.progress import summary
    from uldp.transforms.io.remote import is_remote

    if is_remote(out):
        _say(f"{out}: written; copy it to this machine to show it")
        return
    damaged: list[ResultsError] = []
    here = None if private is None or is_remote(private) else Path(private)
    _say(summary(Path(out), damaged.append, private=here))
    if private is not None and here is None:
        _say(f"{private}: holds the rejected reports; the total leaves out those that name no window")
    _name(damaged)


def _name(damaged: "list[ResultsError]") -> None:
    """Fail if files are damaged, when all else has been shown."""
    if damaged:
        raise ValueError("\n".join(printable(str(error)) for error in damaged))


def main() -> None:
    """Run the command line; a user's error is one line and exit code 1, wrong usage is exit code 2."""
    verbose = bool({"-v", "--verbose"} & set(sys.argv[1:2]))
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        _say(error.format_message())
        sys.exit(2)
    except click.ClickException as error:
        _fail(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        _fail("stopped; the files that were written remain, and the same command starts again from the beginning", 130)
    except BrokenPipeError:
        sys.exit(141)
    except _MENDABLE as error:
        if verbose:
            raise
        _fail(str(error), 1)
    except Exception as error:
        if verbose:
            raise
        # A failed job says where it failed in its last line; what is above is Beam's own traceback.
        _fail(f"{str(error).strip().splitlines()[-1]}; uldp -v {' '.join(sys.argv[1:2])} ... shows where", 1)


def _fail(message: str, code: int) -> None:
    for line in message.splitlines():
        _say(f"error: {line}", err=True)
    sys.exit(code)

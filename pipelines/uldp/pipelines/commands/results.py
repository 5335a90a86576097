"""The commands that read a results directory: show, export, report, replay, prune and compact."""

import json
import sys
import time
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uldp.pipelines.commands.output import name_damaged, say, say_each
from uldp.pipelines.options import FOLDER, KAFKA_CONFIG, SPEC, duration_ms, here_or_topic, selection_options

if TYPE_CHECKING:
    from uldp.pipelines.results.files import ResultsError
    from uldp.schemas.estimate import Estimate
    from uldp.schemas.specs.collection import CollectionSpec


@click.command()
@click.argument("out", type=FOLDER)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.option(
    "--top", default=10, show_default=True, type=click.IntRange(1), help="Number of values to show per window."
)
@selection_options
@click.option("--pooled", is_flag=True, help="Print one estimate more of each window that several versions counted.")
def show(out: Path, as_json: bool, top: int, pooled: bool, **chosen: Any) -> None:
    """Print the newest pane of each window.

    A damaged file hides only its own window. The command names the file at the end, and its exit code is 1.

    Example: uldp show results --collection manhattan-checkins --last 1 --json
    """
    from uldp.pipelines.results.folder import ResultsFolder
    from uldp.pipelines.results.json_lines import to_json
    from uldp.pipelines.results.newest import waiting
    from uldp.pipelines.results.pooled import pool_versions, pooled_json, pooled_text
    from uldp.pipelines.results.selection import ALL
    from uldp.pipelines.results.text import HELD_BACK, UNPUBLISHED, estimate_text, unpublished_text

    damaged: list[ResultsError] = []
    folder = ResultsFolder(out, damaged.append)
    selection = folder.select(**chosen)
    found = folder.current(selection)
    estimates = list(folder.with_specs(found.estimates))
    if as_json:
        say_each(json.dumps(to_json(each, found.statistic_of(each), spec)) for each, spec in estimates)
    else:
        say_each(estimate_text(each, spec, top=top) for each, spec in estimates)
    if pooled:
        for each in pool_versions(estimates, found, partial(say, err=True)):
            say(json.dumps(pooled_json(each)) if as_json else pooled_text(each, top=top))
    for why, panes in ((UNPUBLISHED, found.unpublished), (HELD_BACK, found.held)):
        say_each((unpublished_text(pane, why) for pane in panes), err=as_json)
    for line in waiting(found, folder.specs):
        say(line, err=as_json)
    if not (found.estimates or found.unpublished or damaged):
        say(f"{out}: no window {'' if selection == ALL else 'of these '}has fired", err=as_json)
    if left_out := folder.left_out():
        say(left_out, err=as_json)
    name_damaged(damaged)


@click.command()
@click.argument("out", type=FOLDER)
@click.option(
    "--to",
    "target",
    required=True,
    type=SPEC,
    metavar="FILE",
    help="A file that ends in .parquet, .arrow or .csv. An older one is replaced.",
)
@selection_options
@click.option(
    "--pooled", is_flag=True, help="Add rows of one estimate more of each window that several versions counted."
)
def export(out: Path, target: Path, pooled: bool, **chosen: Any) -> None:
    """Write the newest pane of each window as rows for pandas, DuckDB, BigQuery or a spreadsheet.

    A row is one value of one estimate, with its label and its interval. A damaged file hides only its own window. The
    command names the file at the end, and its exit code is 1.

    Example: uldp export results --to estimates.parquet
    """
    from uldp.pipelines.results.export_files import check_target, write_rows
    from uldp.pipelines.results.folder import ResultsFolder
    from uldp.pipelines.results.pooled import pool_versions
    from uldp.pipelines.results.text import number_of

    check_target(target)
    damaged: list[ResultsError] = []
    folder = ResultsFolder(out, damaged.append)
    selection = folder.select(**chosen)
    found = folder.published(selection)
    more: list[tuple[Estimate, CollectionSpec]] = []
    if pooled:
        current = folder.current(selection)
        versions = pool_versions(folder.with_specs(current.estimates), current, partial(say, err=True))
        more = [(each.estimate, each.spec) for each in versions]
    with click.progressbar(found, label="estimates", file=sys.stderr, hidden=not sys.stderr.isatty()) as estimates:
        rows = write_rows(target, chain(folder.with_specs(estimates), more))
    say(f"wrote {target}: {number_of(rows, 'row')} of {number_of(len(found) + len(more), 'estimate')}")
    if found.unpublished:
        say(f"{number_of(len(found.unpublished), 'window')} without a published estimate; uldp show names them")
    if left_out := folder.left_out():
        say(left_out)
    name_damaged(damaged)


@click.command()
@click.argument("results", metavar="OUT", type=FOLDER)
@click.option("--out", required=True, type=SPEC, help="File of the page.")
@click.option("--truth", type=SPEC, help="CSV of value,tag,weight: the true distribution of a simulation.")
@selection_options
@click.option("--every", type=click.Choice(["1d", "1w", "1mo"]), help="Draw lines over days, ISO weeks or months.")
@click.option(
    "--value",
    "values",
    multiple=True,
    metavar="LABEL",
    help="Draw a line over time of this value too; may be repeated.",
)
@click.option("--simultaneous", is_flag=True, help="Show intervals that all hold at once; they need the counts.")
def report(
    results: Path,
    out: Path,
    truth: Path | None,
    every: Any,
    values: tuple[str, ...],
    simultaneous: bool,
    collection: str | None,
    **chosen: Any,
) -> None:
    """Write one self-contained HTML page of the newest pane of each window.

    The page has maps of the last window if the domain has columns, lines over time with bands, and tables of the last
    windows; choose others by --since, --until and --last. A truth needs --collection if the results have several.

    Example: uldp report results --out report.html --truth examples/manhattan/truth.csv
    """
    from uldp.pipelines.report.page import report_page, write_page
    from uldp.pipelines.results.files import ResultsError
    from uldp.pipelines.results.folder import ResultsFolder
    from uldp.pipelines.simulation.truth import Truth

    damaged: list[ResultsError] = []
    folder = ResultsFolder(results, damaged.append)
    specs = folder.specs
    of_truth = [spec for spec in specs.values() if collection in (None, spec.collection)]
    if truth is not None and len({spec.collection for spec in of_truth}) != 1:
        names = ", ".join(sorted({spec.collection for spec in specs.values()}))
        raise ResultsError(f"--truth needs the collection that it belongs to; add --collection, one of: {names}")
    truths = {spec.key: Truth.load(truth, spec).shares() for spec in of_truth} if truth is not None else {}
    page = report_page(
        folder,
        folder.select(collection=collection, **chosen),
        made=int(time.time() * 1000),
        truth=truths,
        values=values,
        every=every,
        simultaneous=simultaneous,
    )
    write_page(page, out)
    say(f"wrote {out}")
    name_damaged(damaged)


@click.command()
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
    from uldp.pipelines.results.prune import refuse_lost
    from uldp.pipelines.results.records import read_rejected_folder
    from uldp.pipelines.results.replay import replay as send_again
    from uldp.transforms.io.endpoints import parse_endpoint

    refuse_lost(rejected)
    records = read_rejected_folder(rejected)
    with parse_endpoint(to, kafka_config).writing(simulated_clock=False) as stream:
        sent = send_again(records, stream, max_attempts=max_attempts)
    say(f"{to}: {sent}")


@click.command()
@click.argument("out", type=FOLDER)
@click.option(
    "--keep",
    default="30d",
    show_default=True,
    type=duration_ms,
    metavar="DURATION",
    help="How long late and rejected reports stay, and counts of few reports.",
)
@click.option(
    "--stream",
    type=FOLDER,
    metavar="DIR",
    help="The local stream that the job follows; its segments that the job needs no more are removed too.",
)
@click.option("--dry-run", is_flag=True, help="Remove nothing; say what would be removed.")
def prune(out: Path, keep: int, stream: Path | None, dry_run: bool) -> None:
    """Remove older panes of each window, and old private files: late and rejected reports, and counts of few reports.

    The newest pane of each window and estimator stays. OUT may also be the directory of --private-to. A job may run
    meanwhile.

    Example: uldp prune results --keep 7d --dry-run
    """
    from uldp.pipelines.results.prune import prune as remove

    consumed = None
    if stream is not None:  # first: a stream that is none is refused before anything is removed
        from uldp.pipelines.jobs.consumed import remove_consumed

        consumed = remove_consumed(out, stream, dry_run=dry_run)
    damaged: list[ResultsError] = []
    what = "would remove" if dry_run else "removed"
    pruned = remove(out, before=time.time() - keep / 1000, dry_run=dry_run, damaged=damaged.append)
    say(f"{out}: {what} {pruned}")
    if consumed is not None:
        say(f"{stream}: {what} {consumed}")
    name_damaged(damaged)


@click.command()
@click.argument("out", type=FOLDER)
@click.option("--dry-run", is_flag=True, help="Change nothing; say what would be joined.")
def compact(out: Path, dry_run: bool) -> None:
    """Join the files of windows that ended more than a day ago into one file a day.

    Every pane stays; uldp prune removes the older panes of each window before. OUT may also be the directory of
    --private-to. A job may run meanwhile.

    Example: uldp compact results --dry-run
    """
    from uldp.pipelines.results.compact import compact as join

    damaged: list[ResultsError] = []
    compacted = join(out, dry_run=dry_run, damaged=damaged.append)
    say(f"{out}: {'would join' if dry_run else 'joined'} {compacted}")
    name_damaged(damaged)

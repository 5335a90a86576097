"""The command that makes one folder of results from several: merge."""

import click

from uldp.pipelines.commands.output import say
from uldp.pipelines.options import results_place


def _places(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse topics: results are files."""
    for value in values:
        results_place(ctx, param, value)
    return values


@click.command()
@click.argument("folders", metavar="OUT OUT...", nargs=-1, required=True, callback=_places)
@click.option(
    "--to",
    "out",
    required=True,
    callback=results_place,
    metavar="DIR_OR_URL",
    help="Directory of the merged results, or a URL such as gs://...",
)
@click.option(
    "--private",
    multiple=True,
    callback=_places,
    metavar="DIR_OR_URL",
    help="Directory of --private-to of one of the jobs, with ids and counts of few reports; may be repeated.",
)
@click.option(
    "--private-to",
    callback=results_place,
    metavar="DIR_OR_URL",
    help="Directory of counts of few reports.  [default: that of --to]",
)
def merge(folders: tuple[str, ...], out: str, private: tuple[str, ...], private_to: str | None) -> None:
    """Merge results into one directory, in which each report is counted once. OUT is a folder of results, or its URL.

    So the backfill of an outage joins the results of the stream, and backfills of parts of an archive become one. Where
    several directories have a window, the ids of the reports must show what they have in common: run the jobs with
    --keep-ids. Otherwise, nothing is written.

    Example: uldp merge results outage --to merged
    """
    from uldp.pipelines.merge.merge import merge as join

    if len(folders) < 2:
        raise click.UsageError("name two directories of results or more")
    merged = join(folders, out, private=private, private_to=private_to)
    say(f"{out}: {merged}")

"""The command that makes one folder of results from several: merge."""

from pathlib import Path

import click

from uldp.pipelines.commands.output import say
from uldp.pipelines.options import FOLDER


@click.command()
@click.argument("folders", metavar="OUT OUT...", nargs=-1, required=True, type=FOLDER)
@click.option("--to", "out", required=True, type=FOLDER, metavar="DIR", help="Directory of the merged results.")
@click.option(
    "--private",
    multiple=True,
    type=FOLDER,
    metavar="DIR",
    help="Directory of --private-to of one of the jobs, with ids and counts of few reports; may be repeated.",
)
@click.option(
    "--private-to", type=FOLDER, metavar="DIR", help="Directory of counts of few reports.  [default: that of --to]"
)
def merge(folders: tuple[Path, ...], out: Path, private: tuple[Path, ...], private_to: Path | None) -> None:
    """Merge results into one directory, in which each report is counted once.

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

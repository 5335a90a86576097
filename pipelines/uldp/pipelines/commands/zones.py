"""The commands for what is behind tags: zones divides a tag, and background says what reports show of its zones."""

import math
from pathlib import Path

import click

from uldp.pipelines.commands.output import load, name_damaged, say
from uldp.pipelines.options import FOLDER, SPEC, time_ms
from uldp.schemas.errors import DataError


@click.command()
@click.argument("spec", type=SPEC)
@click.option("--tag", required=True, metavar="NAME", help="The tag; of a record, ATTRIBUTE.TAG.")
@click.option("--to", required=True, type=SPEC, help="File of value,zone to write.")
@click.option(
    "--count", type=click.IntRange(2, 1024), help="Number of zones.  [default: as many as --users reports bear]"
)
@click.option(
    "--zone-epsilon",
    type=click.FloatRange(0, min_open=True),
    help="Budget of an answer about the zone.  [default: none, so that a report names the zone]",
)
@click.option(
    "--users",
    default=100_000,
    show_default=True,
    type=click.IntRange(1),
    help="Number of reports from which zones are learned: those of all windows that you pool.",
)
def zones(spec: Path, tag: str, to: Path, count: int | None, zone_epsilon: float | None, users: int) -> None:
    """Divide the values behind a tag into zones of equal background mass, and say what a report tells of them.

    Example: uldp zones examples/manhattan/spec.yaml --tag home --zone-epsilon 1 --users 4300000 --to home.csv
    """
    from uldp.pipelines.zones import divide

    (loaded,) = load((spec,))
    say(divide(loaded, tag, to, count=count, epsilon=zone_epsilon, users=users))


@click.command()
@click.argument("out", type=FOLDER)
@click.option("--collection", metavar="NAME", help="The collection, if several have tags with zone_epsilon.")
@click.option("--since", type=time_ms, metavar="TIME", help="Only windows that end after this time.")
@click.option("--to", required=True, type=FOLDER, help="Directory of the background files, one for each tag.")
def background(out: Path, collection: str | None, since: int | None, to: Path) -> None:
    """Write where the users behind tags are: the answers about zones of all windows, with the spec's backgrounds.

    A spec may name the files as the backgrounds of its tags from then on. If it does already, add only the windows that
    are not in them, with --since.

    Example: uldp background results --collection manhattan-checkins --to learned
    """
    from uldp.pipelines.results.backgrounds import learned_backgrounds, pooled, spec_with_nested_tags, write_background
    from uldp.pipelines.results.folder import ResultsFolder
    from uldp.pipelines.results.text import number_of

    damaged: list[DataError] = []
    spec = spec_with_nested_tags(ResultsFolder(out).specs, collection)
    found = pooled(out, spec, since, damaged.append)
    windows = f"{number_of(found.windows, 'window')}, {number_of(found.reports, 'report')}"
    say(f"{spec.collection} version {spec.version}: {windows}")
    for each in learned_backgrounds(spec, found):
        errors = f"shares of {len(each.labels)} zones ± {100 * each.found.stderr.mean():.2g} %"
        strength = "unknown" if math.isnan(each.found.strength) else f"{each.found.strength:,.0f}"
        say(f"{write_background(to, each)}: {errors}, strength {strength}")
    name_damaged(damaged)

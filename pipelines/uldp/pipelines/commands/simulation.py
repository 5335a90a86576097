"""The commands that need no devices: check, schema, simulate and demo."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from uldp.pipelines.commands.output import load, say
from uldp.pipelines.options import FOLDER, KAFKA_CONFIG, SPEC, duration_ms, here_or_topic, time_ms
from uldp.pipelines.process import interrupt, stop_on_terminate
from uldp.schemas.errors import DataError
from uldp.schemas.extras import needed


@click.command()
@click.argument("specs", metavar="SPEC...", nargs=-1, required=True, type=SPEC)
@click.option(
    "--users",
    default=100_000,
    show_default=True,
    type=click.IntRange(1),
    help="Number of users, n, for the expected errors.",
)
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    help="Print what a device spends that reports one value in each window for so many days, and simulate, with a"
    " fixed seed, how many values a reader then knows.",
)
@click.option(
    "--zones",
    is_flag=True,
    help="Say how much better an estimate gets by zones of a tag with background, and their price.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object for each spec, with its warnings or errors."
)
def check(specs: tuple[Path, ...], users: int, days: int | None, *, zones: bool, as_json: bool) -> None:
    """Validate specs; print p, q, epsilon and the expected errors, and warn of probable mistakes.

    The exit code is 1 if a spec is invalid.

    Example: uldp check examples/manhattan/spec.yaml --users 179527 --days 90
    """
    from uldp.pipelines.caveats import caveats
    from uldp.pipelines.results.text import spec_text

    if as_json:
        _check_json(specs, users, days, zones=zones)
        return
    for path, spec in zip(specs, load(specs), strict=True):
        say(f"{path}: {spec_text(spec, users)}")
        if days is not None:
            from uldp.pipelines.exposure import exposure_text

            for line in exposure_text(spec, days):
                say(f"  {f'{days} days':<11} {line}")
        if zones:
            from uldp.pipelines.zones import proposals

            for line in proposals(spec, users):
                say(f"  possible    zones: {line}")
        for caveat in caveats(spec, users):
            say(f"warning: {path}: {caveat}")


def _check_json(specs: tuple[Path, ...], users: int, days: int | None, *, zones: bool) -> None:
    """Print an object for each spec, also if others are invalid."""
    from uldp.pipelines.checked import checked
    from uldp.schemas.specs.specfile import SpecError

    invalid = 0
    for path in specs:
        try:
            (spec,) = load((path,))
            found = checked(spec, users, days, zones=zones)
        except (SpecError, OSError) as error:
            invalid += 1
            found = {"valid": False, "errors": str(error).splitlines()}
        say(json.dumps({"spec": str(path), **found}))
    if invalid:
        raise DataError(f"{invalid} of {len(specs)} specs are invalid")


@click.command()
def schema() -> None:
    """Print the JSON Schema of specs, by which editors check and complete them.

    It knows keys, types and bounds. What keys mean together, uldp check says.

    Example: uldp schema
    """
    from uldp.schemas.specs.json_schema import spec_schema

    say(json.dumps(spec_schema(), indent=2))


@click.command()
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

    (loaded,) = load((spec,))
    fleet = Fleet(loaded, Truth.load(truth, loaded), users=users, start_ms=start, duration_ms=duration, **settings)
    with parse_endpoint(to, kafka_config).writing(simulated_clock=True) as stream:
        if sys.stderr.isatty():
            with click.progressbar(length=users, label="reports", file=sys.stderr) as bar:
                sent = publish(fleet, stream, speed=speed, progress=lambda done: bar.update(done - bar.pos))
        else:  # click would print the label and nothing else
            sent = publish(fleet, stream, speed=speed)
    say(f"{to}: {sent}")


@click.command()
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
    with needed("the demo", "beam", "report"):
        import jinja2  # noqa: F401 (report a missing package before the fleet reports for a minute)
        import matplotlib  # noqa: F401

        from uldp.pipelines.demo import run_demo
    stop_on_terminate()
    run_demo(out, users=users, speed=speed, say=say, interrupt=interrupt)

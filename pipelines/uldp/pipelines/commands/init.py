"""The command that asks what is collected, and writes a first spec."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uldp.pipelines.commands.output import say
from uldp.pipelines.options import duration_ms
from uldp.schemas.errors import RequestError

if TYPE_CHECKING:
    from uldp.pipelines.advice.first import Answers

#: What may be asked for: of values, or of a number.
_SHARES, _MEAN, _DISTRIBUTION = "shares", "mean", "distribution"


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def init(file: Path) -> None:
    """Ask what devices hold and how it is protected, and write a spec to a new FILE.

    The mechanism for values is the one whose estimate has the least error of all, by simulation (uldp advise). Strings,
    sets, rankings and records have specs of their own kind (docs/spec.md). Answers may come from a pipe, one a line.

    Example: uldp init survey.yaml
    """
    from uldp.pipelines.advice.first import first_keys, first_text
    from uldp.pipelines.caveats import caveats
    from uldp.pipelines.results.text import spec_text
    from uldp.schemas.specs.collection import CollectionSpec

    if os.path.lexists(file):
        raise RequestError(f"{file}: is there already; name a new file")
    if not file.parent.is_dir():
        raise RequestError(f"{file}: there is no folder {file.parent}; create it")
    answers = _ask()
    if answers.number is None:
        say("simulating mechanisms ...", err=True)
    text = first_text(first_keys(answers, lambda mechanism: None))
    with file.open("x", encoding="utf-8") as written:
        written.write(text)
    spec = CollectionSpec.load(file)
    say(f"wrote {file}:\n\n{text}")
    say(spec_text(spec, answers.users))
    for caveat in caveats(spec, answers.users):
        say(f"warning: {caveat}")
    say(f"next: uldp check {file} --users {answers.users} --days 90, and docs/operator.md")


def _ask() -> "Answers":
    from datetime import timedelta

    from uldp.pipelines.advice.first import Answers

    collection = click.prompt("Name of the collection (a-z, 0-9 and -)", value_proc=_name)
    wanted = click.prompt(
        "What is wanted: the shares of values, the mean of a number, or its distribution",
        type=click.Choice((_SHARES, _MEAN, _DISTRIBUTION)),
        default=_SHARES,
    )
    values: list[str] = []
    sensitive: list[str] = []
    number: tuple[float, float] | None = None
    if wanted == _SHARES:
        values = click.prompt("The values of which a device holds one, between commas", value_proc=_values)
        given = click.prompt("Those that are sensitive, between commas, or all", default="all", show_default=False)
        sensitive = [] if given.strip() == "all" else _chosen(given, values)
    else:
        low = click.prompt("The lowest number", type=float)
        high = click.prompt("The highest number", type=float)
        number = (low, high)
    epsilon = click.prompt(
        "Epsilon of a report: 1 moves a guess from 50 % to 73 % at the most, 3 to 95 %",
        type=click.FloatRange(0.01, 20),
        default=1.0,
    )
    window = click.prompt("How long is a window", value_proc=duration_ms, default="1d")
    reports = click.prompt("How many reports may a device send in 30 days", type=click.IntRange(1, 10_000), default=1)
    users = click.prompt("How many users report in a window", type=click.IntRange(1, 10**12), default=10_000)
    length = timedelta(milliseconds=window)
    return Answers(collection, values, sensitive, number, wanted == _DISTRIBUTION, epsilon, length, reports, users)


def _name(text: str) -> str:
    from uldp.schemas.specs.collection import COLLECTION

    if not re.fullmatch(COLLECTION, text):
        raise click.UsageError("write 1 to 64 of the characters a-z, 0-9 and -")
    return text


def _values(text: str) -> list[str]:
    values = [value.strip() for value in text.split(",") if value.strip()]
    if len(values) < 2 or len({*values}) < len(values):
        raise click.UsageError("write two or more different values")
    return values


def _chosen(text: str, values: list[str]) -> list[str]:
    from uldp.schemas.specs.mistakes import near, quote

    chosen = [value.strip() for value in text.split(",") if value.strip()]
    for value in chosen:
        if value not in values:
            hint = near(value, values)
            raise RequestError(f"{quote(value)} is none of the values{f'; {hint}' if hint else ''}")
    return chosen

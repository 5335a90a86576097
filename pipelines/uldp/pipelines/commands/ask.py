"""The command that answers questions about results: ask."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uldp.pipelines.commands.output import name_damaged, say, say_each
from uldp.pipelines.options import FOLDER, SPEC, results_place, selection_options

#: The largest numbers of ``Discover``.
MOST_SEARCHED = 1024

if TYPE_CHECKING:
    from uldp.mechanisms.questions.answer import Row
    from uldp.pipelines.results.files import ResultsError
    from uldp.pipelines.results.kept import Kept


@click.command()
@click.argument("out", callback=results_place)
@click.option("--every", type=click.Choice(["1d", "1w", "1mo"]), help="Sum the counts of each day, ISO week or month.")
@click.option("--zone", default="UTC", show_default=True, metavar="NAME", help="Time zone of days, weeks and months.")
@click.option("--sum", "sums", multiple=True, metavar="A,B,C", help="Sum the shares of these values; may be repeated.")
@click.option("--groups", type=SPEC, metavar="FILE", help="CSV file value,group of the values to sum.")
@click.option(
    "--where",
    multiple=True,
    metavar="PATTERN",
    help="Sum values by their names, as age=30-39 or *west*; may be repeated.",
)
@click.option(
    "--range",
    "ranges",
    multiple=True,
    metavar="LOW:HIGH",
    help="Share of users between two numbers, or from one value to another; may be repeated.",
)
@click.option(
    "--quantile",
    "levels",
    multiple=True,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="LEVEL",
    help="Number or value below which this share of users is, as 0.5; may be repeated.",
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="A,B",
    help="Of a record: the table of these attributes alone; may be repeated.",
)
@click.option("--given", metavar="A", help="Of --table A,B: the shares of B among the users with each value of A.")
@click.option(
    "--compare",
    nargs=2,
    metavar="W1 W2",
    help="Changes from one time to another: 2026-01-05, 2026-01-05T09, v1 or 2026-01-05@v1; or from os=ios to os=web.",
)
@click.option(
    "--by",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Answer for each value of a public attribute, or for one of them; may be repeated.",
)
@click.option("--candidates", type=SPEC, metavar="FILE", help="CSV file of the strings to ask for, below value.")
@click.option(
    "--discover",
    nargs=2,
    type=click.IntRange(1, MOST_SEARCHED),
    metavar="KEEP MOST",
    help="Look for strings that nobody lists: keep so many prefixes of each length, and test up to so many strings.",
)
@click.option(
    "--correct",
    default="holm",
    show_default=True,
    type=click.Choice(["holm", "bh"]),
    help="Correction of p-values of --compare: Holm's, or Benjamini and Hochberg's.",
)
@click.option(
    "--with",
    "other",
    callback=results_place,
    metavar="OUT",
    help="Of --compare: the folder of W2, or its URL, if it is of other reports.",
)
@click.option(
    "--same-devices",
    is_flag=True,
    help="Of --compare: the same devices report at both times, and keep their responses.",
)
@click.option(
    "--over",
    type=click.Choice(["time"]),
    help="Smooth the numbers of windows or periods: each by those up to it, and by all.",
)
@click.option("--explain", nargs=2, metavar="W VALUE", help="How the estimate of a value follows from the counts.")
@click.option(
    "--pooled", is_flag=True, help="One estimate of all versions of a collection, as uldp show --pooled has it."
)
@click.option("--private", type=FOLDER, help="The folder of --private-to, to sum windows of few reports too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.option("--to", "target", type=SPEC, metavar="FILE", help="A file that ends in .parquet.")
@click.option("--top", default=10, show_default=True, type=click.IntRange(1), help="Number of values to show per time.")
@selection_options
def ask(
    out: str,
    every: Any,
    zone: str,
    pooled: bool,
    private: Path | None,
    as_json: bool,
    target: Path | None,
    top: int,
    collection: str | None,
    since: int | None,
    until: int | None,
    last: int | None,
    estimator: str | None,
    candidates: Path | None,
    discover: tuple[int, int] | None,
    **question: Any,
) -> None:
    """Answer a question from kept counts, with the errors of the answer. OUT is a folder of results, or its URL.

    Without a question, the estimates of each window, or of each day, week or month.

    Example: uldp ask results --every 1d --zone Europe/Berlin --sum red,blue
    """
    from uldp.mechanisms.questions.answer import rows_of
    from uldp.pipelines.asking.groups import Wanted
    from uldp.pipelines.asking.questions import Asked, put
    from uldp.pipelines.asking.records import WantedTable, asking, asking_given
    from uldp.pipelines.asking.text import answer_json, answers_text, check_parquet, write_answers
    from uldp.pipelines.results.folder import ResultsFolder
    from uldp.pipelines.results.kept import Kept
    from uldp.pipelines.results.local_copy import here
    from uldp.schemas.specs.candidates import Discover

    _check(question, target)
    if pooled and (question["explain"] or estimator):
        raise click.UsageError("--pooled has an estimator of its own, which --explain does not explain; leave out one")
    if target is not None:
        check_parquet(target)
    damaged: list[ResultsError] = []
    steps: list[tuple[str, str]] = []
    answers: list[Row] = []
    search = None if discover is None else Discover(keep=discover[0], most=discover[1])
    tables = [WantedTable.read(text, question["given"]) for text in question["tables"]]
    by, counts, asked = question["by"] or _compared(question["compare"]), list[Kept](), list[Asked]()
    with ExitStack() as stack:
        for place, apart in ((out, private), (question["other"], None)):
            if place is None:
                continue
            folder = ResultsFolder(stack.enter_context(here(place)), damaged.append, apart)
            found = Kept.of(folder, folder.select(collection, since, until, last, estimator))
            counts.append(asking_given(asking(found, candidates, search), tables))
            asked.append(Asked.of(counts[-1], every, zone, estimator, pooled=pooled, by=by))
        if question["explain"]:
            steps = list(asked[0].explain(*question["explain"]))
        else:
            put_to = put(
                asked[0],
                Wanted.read(question["sums"], question["groups"], question["where"]),
                over=question["over"] is not None,
                compare=question["compare"],
                correct=question["correct"],
                same_devices=question["same_devices"],
                ranges=question["ranges"],
                levels=question["levels"],
                tables=tables,
                beside=asked[1] if len(asked) > 1 else None,
            )
            answers = list(rows_of(put_to))
    for heading, text in steps:
        say(json.dumps({"question": "explain", "step": heading, "text": text}) if as_json else f"{heading:<11} {text}")
    if target is not None:
        write_answers(target, answers)
        say(f"wrote {target}: {len(answers):,} answers")
    else:
        say_each((json.dumps(answer_json(each)) for each in answers) if as_json else answers_text(answers, top=top))
    for kept in counts:
        for line in _left_out(kept):
            say(line, err=as_json)
    if not (answers or steps or damaged):
        say(f"{out}: no window of these has counts to answer from", err=as_json)
    name_damaged(damaged)


def _check(question: dict[str, Any], target: Path | None) -> None:
    """Refuse two questions at once."""
    groups = [name for name in ("sums", "groups", "where") if question[name]]
    if (question["ranges"] or question["levels"]) and (groups or question["compare"] or question["over"]):
        raise click.UsageError("--range and --quantile are a question of their own; leave out the other options")
    others = (*groups, *(name for name in ("ranges", "levels", "compare", "over", "explain") if question[name]))
    if question["tables"] and others:
        raise click.UsageError("--table is a question of its own; leave out the other options")
    if question["given"] and not question["tables"]:
        raise click.UsageError("--given is about a table of two attributes; add --table A,B")
    if question["explain"] and (question["compare"] or groups or question["ranges"] or question["levels"] or target):
        raise click.UsageError(
            "--explain is a question of its own, and its answer is text; leave out the other options"
        )
    if question["same_devices"] and not question["compare"]:
        raise click.UsageError("--same-devices is about two times; add --compare W1 W2")
    if question["other"] and not question["compare"]:
        raise click.UsageError("--with is where the second time of a comparison is; add --compare W1 W2")
    if question["over"] and (question["compare"] or question["explain"] or groups):
        raise click.UsageError("--over is a question of its own, about each value; leave out the other options")


def _compared(names: Sequence[str] | None) -> list[str]:
    """Return the public attributes of the slices that are compared; none if times are."""
    return list(
        dict.fromkeys(part.split("=")[0].strip() for name in names or () if "=" in name for part in name.split(","))
    )


def _left_out(kept: "Kept") -> Iterator[str]:
    """Yield a line for each reason why windows are no part of the answers."""
    from uldp.pipelines.results.text import number_of

    for ((collection, version), reason), sizes in kept.left_out.items():
        remedy = "; --private sums them" if reason == "few reports" else ""
        windows, reports = number_of(len(sizes), "window"), number_of(sum(sizes), "report")
        yield f"left out of {collection} v{version}: {windows} with {reports} ({reason}{remedy})"

"""The command that answers questions about results: ask."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uldp.pipelines.commands.output import name_damaged, say
from uldp.pipelines.options import FOLDER, results_place, selection_options

if TYPE_CHECKING:
    from uldp.mechanisms.questions.answer import Answer
    from uldp.pipelines.results.files import ResultsError
    from uldp.pipelines.results.kept import Kept


@click.command()
@click.argument("out", callback=results_place)
@click.option("--every", type=click.Choice(["1d", "1w", "1mo"]), help="Sum the counts of each day, ISO week or month.")
@click.option("--zone", default="UTC", show_default=True, metavar="NAME", help="Time zone of days, weeks and months.")
@click.option("--private", type=FOLDER, help="The folder of --private-to, to sum windows of few reports too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.option("--to", "target", type=click.Path(dir_okay=False, path_type=Path), help="A file that ends in .parquet.")
@click.option("--top", default=10, show_default=True, type=click.IntRange(1), help="Number of values to show per time.")
@selection_options
def ask(
    out: str,
    every: Any,
    zone: str,
    private: Path | None,
    as_json: bool,
    target: Path | None,
    top: int,
    **chosen: Any,
) -> None:
    """Answer a question from kept counts, with honest errors. OUT is a folder of results, or its URL.

    Example: uldp ask results --every 1d --zone Europe/Berlin
    """
    from uldp.pipelines.asking.parquet import check_parquet, write_answers
    from uldp.pipelines.asking.text import answer_json, answers_text
    from uldp.pipelines.results.folder import ResultsFolder
    from uldp.pipelines.results.kept import Kept
    from uldp.pipelines.results.local_copy import here

    if target is not None:
        check_parquet(target)
    damaged: list[ResultsError] = []
    with here(out) as path:
        folder = ResultsFolder(path, damaged.append, private)
        kept = Kept.of(folder, folder.select(**chosen))
        answers = list(_answers(kept, every, zone, chosen["estimator"]))
    if target is not None:
        write_answers(target, answers)
        say(f"wrote {target}: {len(answers):,} answers")
    elif as_json:
        for answer in answers:
            say(json.dumps(answer_json(answer)))
    else:
        for line in answers_text(answers, top=top):
            say(line)
    for line in _left_out(kept):
        say(line, err=as_json)
    if not (answers or damaged):
        say(f"{out}: no window of these has counts to answer from", err=as_json)
    name_damaged(damaged)


def _answers(kept: "Kept", every: Any, zone: str, estimator: str | None) -> "Iterator[Answer]":
    from uldp.mechanisms.questions.answer import table_answers
    from uldp.mechanisms.questions.periods import zone_of
    from uldp.mechanisms.questions.rollup import roll_up

    for key, version in kept.versions.items():
        spans = roll_up(version, kept.statistics(key), every, zone_of(zone))
        for span in spans:
            yield from table_answers("roll_up", span, estimator or version.spec.estimators[0])


def _left_out(kept: "Kept") -> Iterator[str]:
    """Yield a line for each reason why windows are no part of the answers."""
    from uldp.pipelines.results.text import number_of

    for ((collection, version), reason), sizes in kept.left_out.items():
        remedy = "; --private sums them" if reason == "few reports" else ""
        windows, reports = number_of(len(sizes), "window"), number_of(sum(sizes), "report")
        yield f"left out of {collection} v{version}: {windows} with {reports} ({reason}{remedy})"

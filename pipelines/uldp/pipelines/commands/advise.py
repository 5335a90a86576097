"""The command that chooses: which mechanism, with which epsilon, for how many users."""

import sys
from pathlib import Path

import click

from uldp.pipelines.commands.output import files_below, say
from uldp.pipelines.options import SPEC


@click.command()
@click.argument("spec", required=False, type=SPEC)
@click.option("--size", type=click.IntRange(2, 1 << 24), help="Number of values, if there is no SPEC yet.")
@click.option("--sensitive", type=click.IntRange(1), help="Number of sensitive values of --size.  [default: all]")
@click.option("--epsilon", type=click.FloatRange(0, min_open=True), help="Budget of one report, in nats.")
@click.option("--users", type=click.IntRange(1), help="Number of users who report in a window.")
@click.option(
    "--error",
    type=click.FloatRange(0, 2, min_open=True),
    help="The expected l1 error to reach, up to 2; of strings, the share from which on they are found.",
)
@click.option(
    "--truth",
    type=SPEC,
    help="CSV of value,tag,weight, or of value,weight as a background: the true distribution, or a guess at it."
    "  [default: shares as 1, 1/2, 1/3, ...]",
)
def advise(
    spec: Path | None,
    size: int | None,
    sensitive: int | None,
    epsilon: float | None,
    users: int | None,
    error: float | None,
    truth: Path | None,
) -> None:
    """Rank the mechanisms for values, sets, pairs or strings by what they will show, and print the spec of the best.

    Of --epsilon, --users and --error, give two; the third is found. Of a SPEC of a number, give --epsilon and --users:
    tree and block are compared by the errors of ranges. Of one of a ranking or a record, give these too: errors are
    those of its tables.

    Example: uldp advise --size 400 --sensitive 76 --epsilon 2 --users 100000
    """
    from uldp.pipelines.advice.promised import promised_advice, promised_spec
    from uldp.pipelines.advice.question import Question, keys_of_size, keys_of_spec
    from uldp.pipelines.advice.ranges import asked, number_spec, range_advice
    from uldp.pipelines.advice.ranking import rank
    from uldp.pipelines.advice.text import advice_text

    if (spec is None) == (size is None):
        raise click.UsageError("give a SPEC, or --size and --sensitive")
    if spec is not None and sensitive is not None:
        raise click.UsageError("--sensitive belongs to --size; the SPEC has its own sensitive values")
    if spec is not None and (of_number := number_spec(spec, files_below())) is not None:
        say(range_advice(spec, of_number, truth, *asked(epsilon, users, error)))
        return
    if spec is not None and (promised := promised_spec(spec, files_below())) is not None:
        if truth is not None:
            raise click.UsageError("--truth: of rankings and records, errors are those at equal shares; leave it out")
        given = asked(epsilon, users, error, "of a ranking or a record", "of its tables")
        say(promised_advice(spec, promised, files_below(), *given))
        return
    keys, kept, own = (
        keys_of_spec(spec, files_below()) if spec is not None else (keys_of_size(size or 0, sensitive), None, {})
    )
    question = Question(keys, spec.parent if spec else Path(), truth, epsilon, users, error, kept, files_below(), own)

    def progress(mechanism: str) -> None:
        if sys.stderr.isatty():
            say(f"simulating {mechanism} ...", err=True)

    say(advice_text(question, *rank(question, progress)))

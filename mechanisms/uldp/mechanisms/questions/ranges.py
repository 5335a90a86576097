"""Shares of ranges of numbers or of ordered values, and quantiles, at ends and levels that no spec names."""

from collections.abc import Iterator, Sequence

from uldp.mechanisms.questions.answer import Answer, answer_to
from uldp.mechanisms.questions.shares import Shares
from uldp.mechanisms.questions.sums import groups_of, sums
from uldp.schemas.arrays import Counts
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.kinds import Range
from uldp.schemas.specs.mistakes import quote


def range_of(shares: Shares, text: str) -> Range:
    """Read a range, as ``10:100``, from edge to edge, or of values; RequestError if this variable has none such."""
    if shares.pum is None and shares.decoder.number_of_bins is None:
        raise RequestError(f"{_mechanism(shares)} has no ranges of numbers; tree has, and block")
    variable, why = shares.span.version.spec.variables[shares.attribute], "write LOW:HIGH"
    bins = shares.decoder.number_of_bins or variable.size
    for at, each in enumerate(text):
        if each == ":":
            try:
                return variable.kind.range(text[:at], text[at + 1 :], bins)
            except ValueError as error:
                why = str(error)
    raise RequestError(f"--range {quote(text)}: {why}")


def ranges(shares: Shares, wanted: Sequence[Range], estimator: str) -> Iterator[Answer]:
    """Yield the share of users in each range, with its interval; RequestError if numbers are of several versions."""
    if shares.decoder.number_of_bins is not None:
        cells, n, repeats = _counts(shares)
        table = shares.decoder.range_table(cells, n, wanted, shares.decoder.known(estimator), repeats)
        yield answer_to("range", shares.span, table, shares.attribute)
    else:
        yield from sums(shares, groups_of(shares, {each.text: range(each.first, each.end) for each in wanted}))


def quantiles(shares: Shares, levels: Sequence[float], estimator: str) -> Iterator[Answer]:
    """Yield the quantile at each level from 0 to 1, with its interval; RequestError if there are none."""
    if shares.decoder.number_of_bins is None:
        raise RequestError(f"{_mechanism(shares)} has no quantiles; tree has, and block")
    cells, n, repeats = _counts(shares)
    table = shares.decoder.quantile_table(cells, n, sorted(levels), shares.decoder.known(estimator), repeats)
    yield answer_to("range", shares.span, table, shares.attribute)


def _counts(shares: Shares) -> tuple[Counts, int, float]:
    if shares.parts:
        raise RequestError("distributions of numbers are not pooled over versions; leave out --pooled")
    return shares.cells, shares.n, shares.span.repeats


def _mechanism(shares: Shares) -> str:
    return shares.span.version.spec.variables[shares.attribute].mechanism.name

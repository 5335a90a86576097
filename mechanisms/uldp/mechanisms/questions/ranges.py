"""Shares of ranges of numbers or of ordered values, and quantiles, at ends and levels that no spec names."""

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from uldp.mechanisms.questions.answer import Answer, answers_of
from uldp.mechanisms.questions.shares import Shares
from uldp.mechanisms.questions.sums import groups_of, sums
from uldp.mechanisms.questions.widened import widened
from uldp.schemas.arrays import Counts
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.kinds import Range
from uldp.schemas.specs.mistakes import quote
from uldp.schemas.table import Table


@runtime_checkable
class HasRanges(Protocol):
    """A decoder of bins in an order."""

    estimators: tuple[str, ...]

    @property
    def number_of_bins(self) -> int:
        """How many there are."""

    def range_table(self, cells: Counts, n: int, ranges: Sequence[Range], estimator: str) -> Table:
        """Return the shares of ranges of bins, with intervals.

        Raises:
            ValueError: if the cells do not fit, or no report is about a bin.
        """

    def quantile_table(self, cells: Counts, n: int, levels: Sequence[float], estimator: str) -> Table:
        """Return the quantiles at ascending levels between 0 and 1, with intervals; see ``range_table``."""


def range_of(shares: Shares, text: str) -> Range:
    """Read a range, as ``10:100``: numbers from one edge of a bin to another, or values from one to another, with both.

    Raises:
        RequestError: if it is none of this variable, or the mechanism has no ranges.
    """
    if shares.pum is None and not isinstance(shares.decoder, HasRanges):
        raise RequestError(f"{_mechanism(shares)} has no ranges of numbers; tree has, and block")
    variable, why = shares.span.version.spec.variables[shares.attribute], "write LOW:HIGH"
    bins = shares.decoder.number_of_bins if isinstance(shares.decoder, HasRanges) else variable.size
    for at, each in enumerate(text):
        if each == ":":
            try:
                return variable.kind.range(text[:at], text[at + 1 :], bins)
            except ValueError as error:
                why = str(error)
    raise RequestError(f"--range {quote(text)}: {why}")


def ranges(shares: Shares, wanted: Sequence[Range], estimator: str) -> Iterator[Answer]:
    """Yield the share of users in each range, with its interval.

    Raises:
        RequestError: if numbers are of several versions.
    """
    if isinstance(shares.decoder, HasRanges):
        cells, n = _counts(shares)
        table = shares.decoder.range_table(cells, n, wanted, _known(shares.decoder, estimator))
        yield from _answers(shares, table)
    else:
        yield from sums(shares, groups_of(shares, {each.text: range(each.first, each.end) for each in wanted}))


def quantiles(shares: Shares, levels: Sequence[float], estimator: str) -> Iterator[Answer]:
    """Yield the quantile at each level between 0 and 1, with its interval.

    Raises:
        RequestError: if the mechanism has no quantiles.
    """
    if not isinstance(shares.decoder, HasRanges):
        raise RequestError(f"{_mechanism(shares)} has no quantiles; tree has, and block")
    cells, n = _counts(shares)
    table = shares.decoder.quantile_table(cells, n, sorted(levels), _known(shares.decoder, estimator))
    yield from _answers(shares, table)


def _counts(shares: Shares) -> tuple[Counts, int]:
    if shares.parts:
        raise RequestError("distributions of numbers are not pooled over versions; leave out --pooled")
    return shares.cells, shares.n


def _known(decoder: HasRanges, estimator: str) -> str:
    return estimator if estimator in decoder.estimators else decoder.estimators[0]


def _mechanism(shares: Shares) -> str:
    return shares.span.version.spec.variables[shares.attribute].mechanism.name


def _answers(shares: Shares, table: Table) -> Iterator[Answer]:
    """Yield the entries of a table of one variable, whose errors hold if devices keep responses."""
    (span,), of = shares.span.spans, (shares.attribute,) if shares.attribute else ()
    yield from answers_of("range", span, widened(table, span.wider(of)), shares.attribute)

"""Sums of shares over groups of values, with the covariances of the values and the uncertainty of what tags hide."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.questions.answer import Answer, answer_of, answer_to, unit_of
from uldp.mechanisms.questions.shares import Shares
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.kinds import Range
from uldp.schemas.specs.mistakes import quote
from uldp.schemas.table import INTERVAL_LEVEL

# What the intervals assume of tags.
_KNOWN = "; behind tags, that the users are as their background says, with its strength"
_ANY = "; behind tags whose background has no strength, nothing: all of their users may belong to a group, or none"


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of the values of one variable; ``members``, shape (|X|, j), is 1 where a value is in a group."""

    names: Sequence[str]
    members: Floats


def groups_of(shares: Shares, groups: Mapping[str, Sequence[int]]) -> Groups:
    """Return groups from the positions of their values."""
    members = np.zeros((len(shares.labels), len(groups)))
    for column, positions in enumerate(groups.values()):
        members[list(positions), column] = 1.0
    return Groups(tuple(groups), members)


def sums(shares: Shares, groups: Groups) -> Iterator[Answer]:
    """Yield the share of users in each group, cut to [0, 1], or the mean number of its items, with its interval."""
    assert shares.pum is not None
    values, variance, low, high = sum_ends(shares, groups.members)
    has_strength = not np.isnan(shares.pum.strength).all()
    assumed = shares.span.assumed + ("" if not shares.pum.tags else _KNOWN if has_strength else _ANY)
    most = np.minimum(groups.members.sum(axis=0), shares.held)
    columns = {
        "estimate": np.clip(values, 0.0, most),
        "unbiased": values,
        "stderr": np.sqrt(variance),
        "low": np.clip(low, 0.0, most),
        "high": np.clip(high, 0.0, most),
    }
    shared = {"n": shares.n, "quantity": shares.of_sums.value, "unit": unit_of(shares.of_sums), "assumed": assumed}
    yield answer_of(shares.span, "sum", groups.names, columns, attribute=shares.attribute, **shared)


def sum_ends(shares: Shares, members: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the estimates of sums, their variances, and the ends of their intervals, each of shape (j,).

    As those of single values do, the lower end takes nobody behind a tag whose background has no strength as a member,
    and the upper end everybody whom the tag may hide there; see ``pum_intervals``.
    """
    pum, linear = shares.pum, shares.linear
    assert pum is not None
    if not pum.tags:
        return linear.values @ members, linear.variance_of(members), *linear.interval(INTERVAL_LEVEL, members)
    known = ~np.isnan(pum.strength)[:, np.newaxis]
    assumed = pum.bot_distributions(linear.values) @ members
    spread = pum.background_variance(linear.values, members)
    middle, least, most = (
        np.vstack([members, weights])
        for weights in (assumed, np.where(known, assumed, 0.0), np.where(known, assumed, pum.reached_in(members)))
    )
    return (
        linear.values @ middle,
        linear.variance_of(middle) + spread,
        linear.interval(INTERVAL_LEVEL, least, spread)[0],
        linear.interval(INTERVAL_LEVEL, most, spread)[1],
    )


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

"""Sums of shares over groups of values, with the covariances of the values and the uncertainty of what tags hide."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.questions.answer import Answer, answer_of, unit_of
from uldp.mechanisms.questions.shares import Shares
from uldp.schemas.arrays import Floats
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

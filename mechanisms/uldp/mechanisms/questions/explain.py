"""How the estimate of one value follows from the counts of a span, step by step, in words."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from uldp.mechanisms.inference.shuffle import shuffled
from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.protocol.decoder import Pooling
from uldp.mechanisms.questions.shares import Shares
from uldp.mechanisms.questions.span import Span
from uldp.schemas.errors import RequestError
from uldp.schemas.flags import meaning
from uldp.schemas.specs.mistakes import near, quote
from uldp.schemas.table import INTERVAL_LEVEL, NUMBERS, Table, TableName

#: So many names are listed in an error.
_NAMED = 6

_ESTIMATORS = {
    "empirical": "leaves the unbiased estimate as it is",
    "auto": "takes wls, or draws estimates towards the usual share (empirical Bayes): the better on held-out reports",
    "threshold": "sets what noise alone may explain to 0, and shares the rest equally",
    "norm-sub": "shifts all estimates by one number, cuts at 0, and so makes them sum to 1",
    "wls": "makes the estimates sum to 1 without negative ones, moving noisy ones the most (weighted least squares)",
    "mle": "takes the shares that make the counts the most probable (maximum likelihood)",
    "em": "climbs towards the shares that make the counts the most probable",
    "ems": "climbs towards the shares that make the counts the most probable, and smooths neighbours",
}


def find(shares: Sequence[Shares], value: str) -> tuple[Shares, int]:
    """Find a value, tag or number such as ``mean`` in a span; RequestError if it is in none, or in several."""
    found = [each for each in shares if value in each.positions]
    tags = [each for each in shares if each.pum is not None and value in each.pum.tags]
    if len(found) == 1:
        return found[0], found[0].positions[value]
    if not found and len(tags) == 1 and tags[0].pum is not None:
        return tags[0], tags[0].pum.size + tags[0].pum.tags.index(value)
    if found or tags:
        raise RequestError(f"{quote(value)} is a value of several attributes; name another")
    names = [name for each in shares for name in each.names]
    hint = near(value, names) or (f"there are {', '.join(map(quote, names))}" if 0 < len(names) <= _NAMED else None)
    raise RequestError(f"no value or tag {quote(value)} has enough reports here{f'; {hint}' if hint else ''}")


def explain(shares: Shares, position: int, estimator: str) -> Iterator[str]:
    """Yield the steps, of the value at a position of values and then tags; RequestError if versions are pooled."""
    span, pum, linear = shares.span, shares.pum, shares.linear
    if span.of_versions:
        raise RequestError("an explanation is of one version; leave out --pooled")
    tag = None if pum is None or position < pum.size else pum.tags[position - pum.size]
    spec = span.version.spec
    about = shares.attribute or spec.collection
    yield f"counts: {_windows(len(span.sizes))} with {span.n:,} reports, {shares.n:,} of them about {about}"
    yield from shares.decoder.explain(shares.cells, shares.n, position)
    yield from _law(linear, position)
    values, stderr = linear.values, np.sqrt(linear.variance)
    quantity = TableName.SHARE if pum is not None else shares.quantity
    value, error = (_figure(each[position], quantity) for each in (values, stderr))
    below = "may be below 0, and it alone" if quantity is TableName.SHARE else "alone"
    yield f"unbiased: the {quantity} is {value}, with a standard error of {error}; it {below} may be averaged"
    tables = {table.name: table for table in span.tables(estimator) if table.of in ((), (shares.attribute,))}
    if tag is None or pum is None:
        yield from _value(shares, position, tables, estimator)
    else:
        yield f"estimator: {estimator} {_does(shares, estimator)}"
        hidden, at = tables[TableName.HIDDEN], pum.tags.index(tag)
        yield f"published: {_figure(hidden.values[at])} hide their value behind it{_interval(hidden, at)}"
    yield from _trust(span)


def _law(linear: Estimate, position: int) -> Iterator[str]:
    """Yield the law of the number: its parts, the parameters of its errors, its cumulants, and its interval."""
    w = np.zeros((len(linear.values), 1))
    w[position] = 1.0
    for part, _, of_part in linear.sums_of_parts(w):
        if len(of_part):
            law = type(part.law).__name__
            yield f"law: {law}, {int(np.max(part.reports)):,} reports that add {of_part[0]:.5g}"
    if any(not part.adds for part in linear.parts):
        yield "kept: devices keep their responses, and are taken to be the same in all windows"
    sums, (low, high) = linear.sums(w), linear.interval(INTERVAL_LEVEL, w)
    v, k, step = (f"{each[0]:.4g}" for each in sums[:3])
    yield f"cumulants: variance V {v}, third cumulant K {k}, largest step of a user J {step}"
    method = "a binomial proportion (Clopper and Pearson)" if sums.exact[0] else "a score with a gamma distribution"
    yield f"interval: {low[0]:.5g} to {high[0]:.5g}, by {method}"


def _value(shares: Shares, position: int, tables: dict[TableName, Table], estimator: str) -> Iterator[str]:
    name = TableName.SHARE if shares.pum is not None else shares.quantity
    yield f"estimator: {estimator} {_does(shares, estimator)}"
    visible, band = tables.get(TableName.VISIBLE), tables.get(TableName.BAND)
    table = tables.get(name)
    if table is None:  # as of a mean by an estimator of the distribution
        yield f"published: nothing of it by {estimator}"
        return
    if visible is not None:
        yield f"visible: {_figure(visible.values[position])} hold it and do not hide it"
        yield f"background: adds {_figure(table.values[position] - visible.values[position])} of users behind tags"
    yield f"published: {_figure(table.values[position], name)}{_interval(table, position)}"
    if band is not None and band.high is not None:
        yield f"any tag: whatever the background, at most {_figure(band.high[position])}"


def _does(shares: Shares, estimator: str) -> str:
    """Say what an estimator does; ``auto`` is another one for each kind of mechanism."""
    if estimator != "auto" or shares.decoder.pooling is Pooling.SHARES:
        return _ESTIMATORS.get(estimator, "corrects the counts")
    if shares.pum is None and shares.quantity is not TableName.SHARE:
        return _ESTIMATORS["empirical"]
    return "takes shares of 0 or more that fit the counts"


def _trust(span: Span) -> Iterator[str]:
    """Yield what the windows say against the number, and what it tells of one user."""
    spec, mechanism = span.version.spec, span.version.protocol.mechanism
    for flag in span.flags:
        yield f"flag: {flag}, {meaning(flag)}"
    if not span.flags:
        yield "flags: none"
    epsilon = mechanism.guarantee.epsilon
    if epsilon is None:
        yield "privacy: none; the reports are the values"
        return
    yield f"privacy: a report spends at most epsilon {epsilon:g}, odds of {math.exp(epsilon):,.3g} to 1"
    if len(span.sizes) > 1 and (most := span.spent):
        yield f"privacy: a user with a report in each window has spent {most.text()}"
    names = (*spec.mechanism.parts, *spec.mechanism.user_groups)
    promises = list(shuffled(mechanism, names, span.cells, span.n))
    if len(span.sizes) > 1:
        yield "shuffled: what follows is about one report; a user who sent several has spent more"
    for promise in promises:
        of = f"{promise.of[0]}: " if promise.of else ""
        yield (
            f"shuffled: {of}who sees only the tables of these {promise.reports:,} protected reports is given epsilon"
            f" {promise.epsilon:g} (delta {promise.delta:g}) about one of them"
        )
    if not promises:
        yield f"shuffled: the theorem does not cover {spec.mechanism.name}; tables may give away as much as epsilon"


def _windows(number: int) -> str:
    return "1 window" if number == 1 else f"{number:,} windows"


def _figure(number: float, quantity: TableName = TableName.SHARE) -> str:
    return f"{number:.4g}" if quantity in NUMBERS else f"{100 * number:.4g} %"


def _interval(table: Table, position: int) -> str:
    if table.low is None or table.high is None:
        return ""
    level = f"{100 * table.level:g} %{', with all others' if table.simultaneous else ''}"
    low, high = (_figure(end[position], table.name) for end in (table.low, table.high))
    return f"; {low} to {high} holds the truth with {level} ({table.basis} interval around the unbiased estimate)"

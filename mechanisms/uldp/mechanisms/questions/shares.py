"""The shares of a span of time: their unbiased estimate, the tags that hide some of them, and the names of values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from uldp.mechanisms.decoders.pure import PureLinear
from uldp.mechanisms.decoders.sized_decoder import SizedDecoder
from uldp.mechanisms.decoders.strata_decoder import StrataDecoder
from uldp.mechanisms.numbers.number import NumberDecoder
from uldp.mechanisms.pooling.versions import WeightedLinear
from uldp.mechanisms.pooling.versions import pool as pool_shares
from uldp.mechanisms.protocol.decoder import Decoder, MarginsDecoder
from uldp.mechanisms.protocol.linear import Linear
from uldp.mechanisms.questions.kept import Summed
from uldp.mechanisms.questions.pool import Pool
from uldp.mechanisms.questions.span import Span
from uldp.mechanisms.tags.pum import Pum
from uldp.mechanisms.zones.zoned_decoder import ZonedDecoder
from uldp.schemas.arrays import Counts
from uldp.schemas.errors import RequestError
from uldp.schemas.table import TableName


@runtime_checkable
class HasTags(Protocol):
    """A decoder of shares whose values and tags do not depend on counts."""

    @property
    def pum(self) -> Pum:
        """The values and tags."""


@runtime_checkable
class HasNames(Protocol):
    """A decoder of strings, whose values are those that are asked for."""

    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Shares:
    """What a span says of the shares of one variable, or of its mean.

    Attributes:
        span: The span, or the pool of versions.
        attribute: The name of the attribute of a record; "" if the collection has one variable.
        linear: The unbiased estimate, of values and then of tags; of a number, its mean.
        pum: The values and the tags; None if numbers are estimated, such as a mean.
        labels: The names of the values, or of several numbers.
        n: The number of reports behind it.
        cells: Its cells; of a pool, those of the newest version.
        decoder: What reads its cells; of a pool, that of the newest version.
        parts: Of a pool of versions, the shares of each, which ``linear`` weighs; else empty.
    """

    span: Span | Pool
    attribute: str
    linear: Linear
    pum: Pum | None
    labels: Sequence[str]
    n: int
    cells: Counts
    decoder: Decoder
    parts: "tuple[Shares, ...]" = ()

    @property
    def quantity(self) -> TableName:
        """What the numbers are, if they are no shares of values."""
        return self.decoder.quantity

    @property
    def held(self) -> int:
        """How many of the values a user may hold at once, as the items of a set."""
        return self.span.version.spec.variables[self.attribute].kind.held

    @property
    def of_sums(self) -> TableName:
        """What sums of shares are: the share of users with one of the values, or how many of them users hold."""
        return TableName.SHARE if self.held == 1 else TableName.MEAN_SIZE

    @property
    def names(self) -> Sequence[str]:
        """The names of the numbers, without those of tags: the labels, or the quantity if it is one number."""
        return self.labels or ([] if len(self.linear.values) != 1 else [self.quantity.value])

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each number by its name."""
        return {name: position for position, name in enumerate(self.names)}


def shares_of(span: Span | Pool) -> Iterator[Shares]:
    """Yield the shares, or the mean, of each variable of a span that has enough reports.

    Attributes of strings of which none is named are left out of a record.

    Raises:
        RequestError: if the mechanisms of a pool of versions cannot be pooled, or no string is named.
    """
    least, of_attributes = span.version.spec.limits.min_reports, dict[str, list[Shares]]()
    for each in span.spans:
        for shares in _all_of(each):
            if isinstance(shares.decoder, HasNames) and not shares.labels:
                if shares.attribute:
                    continue
                raise RequestError(
                    f"no string of {span.version.spec.collection} is named, so there is none to ask about; add"
                    " --candidates FILE, or candidates to the spec"
                )
            of_attributes.setdefault(shares.attribute, []).append(shares)
    for attribute in span.version.spec.variables:
        parts = of_attributes.get(attribute, [])
        if sum(part.n for part in parts) >= least:
            yield parts[0] if len(parts) == 1 else _pooled(span, parts)


def _all_of(span: Span) -> Iterator[Shares]:
    """Yield the shares of each variable that has a report."""
    decoder = span.version.decoder
    if isinstance(decoder, StrataDecoder):
        for part in decoder.parts(span.cells, span.n):
            if part.n:
                yield _of(span, part.name, part.decoder, part.cells, part.n)
    elif isinstance(decoder, MarginsDecoder):
        yield from (_of(span, name, decoder, span.cells, span.n) for name in span.version.spec.variables if span.n)
    elif isinstance(decoder, SizedDecoder):
        cells, n = decoder.of_items(span.cells, span.n)
        if n:
            yield _of(span, "", decoder.items, cells, n)
    elif span.n:
        yield _of(span, "", decoder, span.cells, span.n)


def _pooled(pool: Span | Pool, parts: Sequence[Shares]) -> Shares:
    """Return the mean of shares of several versions, weighted by the inverse of their variances; see ``versions``.

    Weights of windows of the same devices are as if these were others, which makes no mean biased.
    """
    newest = parts[-1]
    once = [part.linear.once if isinstance(part.linear, Summed) else part.linear for part in parts]
    pure = [each for each in once if isinstance(each, PureLinear)]
    if len(pure) == len(once):
        mean: WeightedLinear = pool_shares(pure)[0]
        mean = WeightedLinear([part.linear for part in parts], mean.weights)
    elif all(isinstance(part.decoder, NumberDecoder) for part in parts):
        precisions = np.array([part.decoder.forecast(part.n) ** -2.0 for part in parts])
        mean = WeightedLinear([part.linear for part in parts], precisions / precisions.sum(axis=0))
    else:
        raise RequestError("the mechanisms of these versions cannot be pooled together; leave out --pooled")
    n = sum(part.n for part in parts)
    return replace(newest, span=pool, linear=mean, n=n, parts=tuple(parts))


def _of(span: Span, attribute: str, decoder: Decoder, cells: Counts, n: int) -> Shares:
    linear, variable = span.linear(attribute), span.version.spec.variables[attribute]
    assert linear is not None
    pum: Pum | None = None
    labels: Sequence[str] = ()
    if isinstance(decoder, ZonedDecoder):
        pum, labels = decoder.bots(decoder.learned(cells, n)), variable.labels
    elif isinstance(decoder, HasTags):
        pum, labels = decoder.pum, variable.labels
    elif isinstance(decoder, HasNames):
        labels = decoder.names
        pum = Pum(np.ones(len(labels), dtype=np.bool_), (), np.zeros((0, len(labels))), np.zeros(0))
    elif variable.kind.listed:
        pum, labels = Pum.of(variable), variable.labels
    else:
        labels = variable.kind.entries(len(linear.values), whole=decoder.quantity is TableName.SHARE) or ()
    return Shares(span, attribute, linear, pum, labels, n, cells, decoder)


def of_values(shares: Sequence[Shares]) -> list[Shares]:
    """Return those that are of values.

    Raises:
        RequestError: if there are numbers alone, such as a mean.
    """
    found = [each for each in shares if each.pum is not None]
    if shares and not found:
        quantities = ", ".join(dict.fromkeys(each.quantity.value for each in shares))
        bins = " of bins; ask for a --range" if any(each.quantity is TableName.SHARE for each in shares) else ""
        collection = shares[0].span.version.spec.collection
        raise RequestError(f"{collection} has no values to sum: what is estimated is the {quantities}{bins}")
    return found

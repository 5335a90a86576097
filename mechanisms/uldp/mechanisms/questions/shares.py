"""The shares of a span of time: their unbiased estimate, the tags that hide some of them, and the names of values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from uldp.mechanisms.laws.estimate import Estimate, weighted
from uldp.mechanisms.pooling.pooled_tables import mean_of_parts
from uldp.mechanisms.protocol.decoder import Decoder, Part
from uldp.mechanisms.questions.span import Span
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.errors import RequestError
from uldp.schemas.table import TableName


@dataclass(frozen=True, eq=False)
class Shares:
    """What a span says of the shares of one variable, or of its mean."""

    span: Span
    attribute: str  # the name of the attribute of a record; "" if the collection has one variable
    linear: Estimate  # the unbiased estimate, of values and then of tags; of a number, its mean
    pum: Pum | None  # the values and the tags; None if numbers are estimated, such as a mean
    labels: Sequence[str]  # the names of the values, or of several numbers
    n: int  # the number of reports behind it
    cells: Counts  # its cells; of several versions, those of the newest version
    decoder: Decoder  # what reads its cells; of several versions, that of the newest version
    parts: "tuple[Shares, ...]" = ()  # of several versions, the shares of each, which ``linear`` weighs; else empty
    weights: Floats | None = None  # shape (parts, m): the weights

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

    def of_responses(self) -> Floats:
        """Return the variance of the error that all windows share, if devices keep responses; shape (m,)."""
        if self.weights is not None:
            pairs = zip(self.weights, self.parts, strict=True)
            return np.asarray(np.sum([weight**2 * part.of_responses() for weight, part in pairs], axis=0))
        if not self.span.version.protocol.mechanism.memory:
            return np.zeros_like(self.linear.values)
        each = self.linear.of_responses().variance * (1 + self.span.repeats)
        return np.minimum(each, self.linear.variance)


def shares_of(span: Span) -> Iterator[Shares]:
    """Yield the shares or mean of each variable with enough reports; RequestError if versions cannot be pooled."""
    least, of_attributes = span.version.spec.limits.min_reports, dict[str, list[Shares]]()
    for each in span.spans:
        for part in each.parts:
            shares = _of(each, part)
            if shares.decoder.names is not None and not shares.labels:
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


def _pooled(span: Span, parts: Sequence[Shares]) -> Shares:
    """Return the mean of shares of versions by the inverse of their variances, as if of different devices."""
    weights = mean_of_parts([(part.decoder, part.cells, part.n) for part in parts])
    mean = weighted([part.linear for part in parts], weights)
    n = sum(part.n for part in parts)
    return replace(parts[-1], span=span, linear=mean, n=n, parts=tuple(parts), weights=weights)


def _of(span: Span, part: Part) -> Shares:
    attribute, decoder, cells, n = part
    variable = span.version.spec.variables[attribute]
    linear = decoder.linear(cells, n, span.repeats)
    pum = cast(Pum | None, decoder.tags_at(cells, n))
    labels: Sequence[str] = variable.labels if variable.kind.listed or pum is not None else ()
    if pum is None and decoder.names is not None:
        labels = decoder.names
        pum = Pum(np.ones(len(labels), dtype=np.bool_), (), np.zeros((0, len(labels))), np.zeros(0))
    elif pum is None and variable.kind.listed:
        pum = Pum.of(variable)
    elif pum is None:
        labels = variable.kind.entries(len(linear.values), whole=decoder.quantity is TableName.SHARE) or ()
    return Shares(span, attribute, linear, pum, labels, n, cells, decoder)


def of_values(shares: Sequence[Shares]) -> list[Shares]:
    """Return those that are of values; RequestError if there are numbers alone, such as a mean."""
    found = [each for each in shares if each.pum is not None]
    if shares and not found:
        quantities = ", ".join(dict.fromkeys(each.quantity.value for each in shares))
        bins = " of bins; ask for a --range" if any(each.quantity is TableName.SHARE for each in shares) else ""
        collection = shares[0].span.version.spec.collection
        raise RequestError(f"{collection} has no values to sum: what is estimated is the {quantities}{bins}")
    return found

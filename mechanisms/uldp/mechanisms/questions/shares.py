"""The shares of a span of time: their unbiased estimate, the tags that hide some of them, and the names of values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from uldp.mechanisms.decoders.strata_decoder import StrataDecoder
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.mechanisms.protocol.linear import Linear
from uldp.mechanisms.questions.span import Span
from uldp.mechanisms.strings.candidate_decoder import CandidateDecoder
from uldp.mechanisms.tags.pum import Pum
from uldp.mechanisms.zones.zoned_decoder import ZonedDecoder
from uldp.schemas.arrays import Counts
from uldp.schemas.table import TableName


@runtime_checkable
class HasTags(Protocol):
    """A decoder of shares whose values and tags do not depend on counts."""

    @property
    def pum(self) -> Pum:
        """The values and tags."""


@dataclass(frozen=True, eq=False)
class Shares:
    """What a span says of the shares of one variable, or of its mean.

    Attributes:
        span: The span.
        attribute: The name of the attribute of a record; "" if the collection has one variable.
        linear: The unbiased estimate, of values and then of tags; of a number, its mean.
        pum: The values and the tags; None if numbers are estimated, such as a mean.
        labels: The names of the values, or of several numbers.
        n: The number of reports behind it.
        quantity: What the numbers are.
    """

    span: Span
    attribute: str
    linear: Linear
    pum: Pum | None
    labels: Sequence[str]
    n: int
    quantity: TableName = TableName.MEAN

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each value by its name."""
        return {label: position for position, label in enumerate(self.labels)}


def shares_of(span: Span) -> Iterator[Shares]:
    """Yield the shares, or the mean, of each variable of a span that has enough reports."""
    spec, decoder = span.version.spec, span.version.decoder
    least = spec.limits.min_reports
    if isinstance(decoder, StrataDecoder):
        for part in decoder.parts(span.cells, span.n):
            if part.n >= least:
                yield _of(span, part.name, part.decoder, part.cells, part.n)
    elif span.n >= least:
        yield _of(span, "", decoder, span.cells, span.n)


def _of(span: Span, attribute: str, decoder: Decoder, cells: Counts, n: int) -> Shares:
    linear, variable = span.linear(attribute), span.version.spec.variables[attribute]
    assert linear is not None
    pum: Pum | None = None
    labels: Sequence[str] = ()
    if isinstance(decoder, ZonedDecoder):
        pum, labels = decoder.bots(decoder.learned(cells, n)), variable.labels
    elif isinstance(decoder, HasTags):
        pum, labels = decoder.pum, variable.labels
    elif isinstance(decoder, CandidateDecoder):
        labels = decoder.names
        pum = Pum(np.ones(len(labels), dtype=np.bool_), (), np.zeros((0, len(labels))), np.zeros(0))
    elif variable.kind.listed:
        pum, labels = Pum.of(variable), variable.labels
    else:
        labels = variable.kind.entries(len(linear.values), whole=False) or ()
    return Shares(span, attribute, linear, pum, labels, n, decoder.quantity)

"""The decoder of mechanisms with a fold: cells become support counts, and covariances follow from the cells."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.kernels.intervals import outside_p_value
from uldp.mechanisms.laws.channel_laws import Payloads
from uldp.mechanisms.laws.law import Law
from uldp.mechanisms.randomizers.fold import FoldedMechanism
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag

# A transform of so many numbers takes some hundredths of a second, and a simulation two for each window.
_MOST_NUMBERS = 1 << 18


class FoldedDecoder(PureDecoder):
    """Reads the cells of a mechanism with a fold.

    The estimators take the supports of two symbols as uncorrelated given the true symbol. They are, but for linear
    hashes and points of symbols on one line, so the estimates lose a little there. The covariances lose nothing.
    """

    mechanism: FoldedMechanism
    response: FoldedMechanism | None

    @cached_property
    def law(self) -> Payloads:
        """The law of a report."""
        return _law(self.mechanism, None if self.response is None else _law(self.response))

    def draw_counts(self, r: Floats, n: int, rng: Generator) -> Counts:
        """Draw counts by way of cells, on which they depend, where fast: of many, they hardly do."""
        if self.mechanism.numbers > _MOST_NUMBERS:
            return super().draw_counts(r, n, rng)
        law = self.mechanism.law(r)
        return self.supports(np.asarray(rng.multinomial(n, law / law.sum()), dtype=np.int64))

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        yield "payloads", self.mechanism.payload_text
        yield from super().describe(n, estimator)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Test the cells and the support counts; see ``test``.

        Every payload has a probability between the least one and e^epsilon times this, under every distribution. So a
        payload that too many reports repeat is improbable, whatever it supports.
        """
        if not n:
            return {}
        least, epsilon = self.mechanism.least_probability, self.mechanism.guarantee.epsilon
        assert epsilon is not None  # a mechanism with a fold has noise
        of_cells = outside_p_value(cells, n, least, min(least * math.exp(epsilon), 1.0))
        return {Flag.IMPROBABLE_COUNTS: min(1.0, 2 * min(of_cells, self.test(self.supports(cells), n)))}

    def p_values_of_each(self, windows: Sequence[tuple[Counts, int]]) -> list[Mapping[Flag, float]]:
        return [self.p_values(*window) for window in windows]

    def test(self, supports: Counts, n: int) -> float:
        """Return an upper bound of the p-value of support counts, at every n.

        A symbol is supported with a probability between q and p, under every distribution. The chi-square of
        ``fit_counts`` would need independent supports, which those of symbols on one line are not.
        """
        return outside_p_value(supports, n, self.channel.q[0], self.channel.p[0])


def _law(mechanism: FoldedMechanism, response: Law | None = None) -> Payloads:
    return Payloads(mechanism.channel, mechanism, mechanism.law, mechanism.statistic_size, response)

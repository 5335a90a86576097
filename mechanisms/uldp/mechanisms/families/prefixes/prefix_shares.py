"""Whether strings have larger shares than their own prefixes: not of honest users, but of forgers of whole strings."""

from collections.abc import Sequence

import numpy as np

from uldp.mechanisms.decoders.table_of import FALSELY_FOUND
from uldp.mechanisms.encodings.prefix_encoding import PrefixEncoding
from uldp.mechanisms.laws.estimate import Estimate, weighted
from uldp.mechanisms.laws.interval import p_value
from uldp.mechanisms.strings.candidate_shares import CandidateShares
from uldp.mechanisms.strings.cohort_channel import CohortCells
from uldp.mechanisms.strings.cohort_sizes import fitted_together
from uldp.mechanisms.strings.walk import Walk
from uldp.schemas.arrays import Floats, Rows


class PrefixShares:
    """The shares of the prefixes of K strings, of each length, from the reports about this length.

    Whoever holds a string holds each of its prefixes. So its share is at most that of its prefix of any length, and at
    most the mean of those of all lengths. Forgers who report the whole string more often than its prefixes, as is
    cheapest, break this.
    """

    def __init__(self, walk: Walk, texts: Sequence[str]) -> None:
        self._of_lengths = [self._of_length(walk, number, texts) for number in range(len(walk.lengths))]

    @staticmethod
    def _of_length(walk: Walk, number: int, texts: Sequence[str]) -> tuple[CandidateShares, Rows]:
        """Return the different prefixes, and which of them each string has."""
        encoding = PrefixEncoding(number, walk.lengths[number], walk.spelling, walk.longest)
        symbols, places = np.unique([encoding.symbol(text) for text in texts], return_inverse=True)
        channel, k = walk.channel, len(symbols)
        together = fitted_together(k, channel.independent, channel.cohorts * channel.hashes)
        return CandidateShares(channel, symbols, together, FALSELY_FOUND / k), places

    def excess_p_values(self, whole: Estimate, levels: Sequence[CohortCells]) -> Floats:
        """Return how probable such excesses of strings over their prefixes are, or larger ones, shape (K,).

        The excess is the share of the string less the mean of those of its prefixes; its mean is 0 or less. Its
        one-sided p-value is that of its cumulants; different devices report of each length, so these add up.

        Args:
            levels: The cells of each length; those without reports say nothing.
        """
        pairs = zip(self._of_lengths, levels, strict=True)
        shares = [_spread(each.estimate(cells), places) for (each, places), cells in pairs if cells.n]
        if not shares:
            return np.ones(len(whole.values))
        weights = np.array([1.0] + [-1 / len(shares)] * len(shares))[:, np.newaxis]
        excess = weighted([whole, *shares], weights)
        return np.where(excess.values > 0, p_value(excess.values, excess.cumulants) / 2, 1.0)


def _spread(estimate: Estimate, places: Rows) -> Estimate:
    """Return the estimate of the values at these places, some of them several times."""
    size = len(estimate.values)

    def forward(w: Floats) -> Floats:
        sums = np.zeros((size, w.shape[1]))
        np.add.at(sums, places, w)
        return sums

    return estimate.mapped(estimate.values[places], forward, lambda moved: moved[places], single=True)

"""``auto``, the default: the better of empirical Bayes and weighted least squares."""

from functools import partial

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.estimators.choice import Candidate, Scoring, chosen, part_of_cells, part_of_each
from uldp.mechanisms.estimators.empirical_bayes import empirical_bayes, has_prior
from uldp.mechanisms.estimators.projection import wls
from uldp.mechanisms.estimators.simplex import Box, box_of
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.laws.channel_laws import law_of
from uldp.mechanisms.laws.estimate import Estimate, part_of
from uldp.schemas.arrays import Counts, Floats, Reports
from uldp.schemas.table import INTERVAL_LEVEL


def auto(channel: Channel, counts: Counts, n: Reports, bots: int = 0) -> Floats:
    """Estimate r by empirical Bayes, or by ``wls`` where this has less risk on held-out reports; see ``choice``.

    Empirical Bayes is worse where the shares of a few symbols say little of those of others. Without a prior it is
    ``wls``. For the arguments see ``empirical_bayes``.
    """
    if not has_prior(channel, bots):
        return wls(channel, counts, n)
    assert isinstance(n, int), "rows of windows with a prior"
    candidates: tuple[Candidate, ...] = (
        lambda counts, n, box: empirical_bayes(channel, counts, n, bots, box),
        lambda counts, n, box: wls(channel, counts, n, box),
    )
    return chosen(candidates, counts, n, scoring_of(channel, counts, n))


def scoring_of(channel: Channel, counts: Counts, n: int) -> Scoring:
    """Return what the choice asks of a channel, with the covariance at the unbiased estimate of these counts."""
    law, r_hat = law_of(channel), channel.unbiased(counts, n).clip(0.0, 1.0)

    def box(counts: Counts, n: int) -> Box:
        values = channel.unbiased(counts, n)
        linear = Estimate(values, np.full(values.shape, n), (part_of(law, values.clip(0.0, 1.0), n),))
        return box_of(*linear.interval(1 - (1 - INTERVAL_LEVEL) / channel.size), channel.held)

    return Scoring(partial(drawn_part, channel), channel.unbiased, channel.covariance(r_hat), box)


def drawn_part(channel: Channel, counts: Counts, n: int, m: int, rng: Generator) -> Counts:
    """Draw the support counts of m of n reports of a channel, without the reports; see ``part_of_each``."""
    if channel.one_symbol:
        return part_of_cells(counts, n, m, rng)
    free = channel.q == 0
    if channel.independent_bits or not free.any():
        return part_of_each(counts, n, m, rng)
    # A report names a symbol that is not sensitive, or supports a set of those that are.
    drawn = part_of_cells(np.append(counts[free], n - counts[free].sum()), n, m, rng)
    of_part = np.empty_like(counts)
    of_part[free] = drawn[:-1]
    of_part[~free] = part_of_each(counts[~free], n - int(counts[free].sum()), int(drawn[-1]), rng)
    return of_part

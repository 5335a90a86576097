"""The estimates of the shares of bins, from the reports of all levels of a tree: unbiased, and as published."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.decoders.pure import ShareEstimate, share_estimate
from uldp.mechanisms.estimators.by_name import drawn_part
from uldp.mechanisms.estimators.choice import seed_of
from uldp.mechanisms.estimators.ordered import Fit, cosine_noise, into_box, ordered_shares
from uldp.mechanisms.laws.channel_laws import ChannelLaw
from uldp.mechanisms.laws.law import Cumulants
from uldp.mechanisms.pooling.pooled_linear import Pooled
from uldp.mechanisms.pooling.tree import Tree
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.table import INTERVAL_LEVEL

# Exact errors take a column of weights for each bin, or for each edge, and of each a number for each payload.
_EXACT_BINS, _EXACT_NUMBERS = 128, 1 << 18


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeEstimate(Pooled):
    """Least squares over the levels of a tree.

    Sums over bins have exact errors. Those of more than ``_EXACT_BINS`` single bins, and of edges that ``of_edges`` has
    no time for, take the blocks of a level as ``diagonal_and_rank_one`` does, in a time that is linear in the bins.
    """

    estimates: Sequence[ShareEstimate]
    design: Tree

    @cached_property
    def cumulants(self) -> Cumulants:
        """Shape (m,): those of the share of each bin; the largest step is that in the level of the bins."""
        if self.design.size <= _EXACT_BINS:
            return super().cumulants
        thirds = [np.zeros(len(each.values)) for each in self.estimates]
        for level, part in self.numbered():
            each = part.each()
            thirds[level] += each.third
        none = np.full(self.design.size, np.nan)
        third = self.design.of_blocks(self.weights, thirds, 3)
        return Cumulants(self._variances(below=False), third, each.step, none, none)

    @cached_property
    def below(self) -> Floats:
        """Shape (m + 1,): the share below each edge, from 0 to 1."""
        return np.concatenate([[0.0], np.cumsum(self.values)[:-1], [1.0]])

    def of_edges(self, edges: Counts) -> Cumulants:
        """Return the cumulants of the share below each edge, shape (m + 1,).

        They are exact at the edges that are named, or at as many of them as there is time for. Between two of these,
        the variance is as much larger than for uncorrelated blocks as at the one where it is larger by more.
        """
        numbers = max(part.law.numbers for part in self.parts)
        known = edges[:: -(-len(edges) * numbers // _EXACT_NUMBERS)]
        exact = self.sums((np.arange(self.design.size)[:, np.newaxis] < known).astype(np.float64))
        variance, every = np.append(self._variances(below=True), 0.0), np.arange(self.design.size + 1)
        ratio, at = exact.variance / variance[known], np.searchsorted(known, every)
        last = len(known) - 1
        variance *= np.maximum(
            ratio[np.minimum(at, last)], ratio[np.maximum(at - (known[np.minimum(at, last)] != every), 0)]
        )
        third, step = (
            np.interp(every, known, own / exact.variance**power) * variance**power
            for own, power in ((exact.third, 1.5), (exact.step, 0.5))
        )
        return Cumulants(variance, third, step, *np.full((2, len(every)), np.nan))

    def _variances(self, *, below: bool) -> Floats:
        """Return the variances of bins, or of the sums of those before each; see ``diagonal_and_rank_one``."""
        diagonals = [np.zeros(len(each.values)) for each in self.estimates]
        columns = [np.zeros((len(each.values), len(self.parts))) for each in self.estimates]
        for column, (level, part) in enumerate(self.numbered()):
            diagonal, columns[level][:, column] = part.diagonal_and_rank_one()
            diagonals[level] += diagonal
        assert self.onto is not None
        moved = self.onto.back(np.concatenate(columns))
        if below:
            moved = np.cumsum(moved, axis=0) - moved
        variances = self.design.of_blocks(self.weights, diagonals, 2, below=below)
        return np.asarray(np.maximum(variances - (moved**2).sum(axis=1), 0.0))


def published_shares(linear: TreeEstimate) -> Floats:
    """Return shares of 0 or more, with the sum 1, shape (m,), each within its simultaneous interval."""
    halve = partial(halves, linear) if all(part.reports > 1 for part in linear.estimates) else None
    seed = seed_of(np.concatenate([part.counts for part in linear.estimates]))
    low, high = linear.interval(1 - (1 - INTERVAL_LEVEL) / linear.design.size)
    return into_box(ordered_shares(fit_of(linear), halve, seed), low.clip(0.0), high.clip(0.0))


def halves(linear: TreeEstimate, rng: Generator) -> tuple[Fit, Fit]:
    """Divide the reports of each level by chance, and return the fits of both halves."""
    weights, one, other = [weight / 2 for weight in linear.weights], [], []
    for part in linear.estimates:
        n, law = int(part.n[0]), part.parts[0].law
        assert isinstance(law, ChannelLaw)
        drawn = drawn_part(part.channel, part.counts, n, n // 2, rng)
        one.append(share_estimate(law, drawn, n // 2))
        other.append(share_estimate(law, part.counts - drawn, n - n // 2))
    first, second = (fit_of(TreeEstimate.of(parts, weights, linear.design)) for parts in (one, other))
    return first, second


def fit_of(linear: TreeEstimate) -> Fit:
    """Return what the candidates follow from."""
    design = linear.design
    noise = cosine_noise(design.size, design.widths, [float(weight) for weight in linear.weights])
    return Fit(linear.values, linear.nearest, noise)

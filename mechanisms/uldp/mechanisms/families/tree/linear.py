"""The unbiased estimate of the shares of bins, from the reports of all levels of a tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from uldp.mechanisms.decoders.pure import PureDecoder, PureLinear
from uldp.mechanisms.pooling.pooled_linear import PooledLinear
from uldp.mechanisms.pooling.tree import Tree
from uldp.schemas.arrays import Floats

# Exact errors of single bins take a column for each bin.
_EXACT = 128


@dataclass(frozen=True, eq=False)
class TreeLinear(PooledLinear):
    """Least squares over the levels of a tree; see ``PooledLinear``.

    Errors follow from the covariances of the levels. For more than ``_EXACT`` bins, those of single bins and of shares
    below their edges take these as diag(d) - u u^T, in a time that is linear in the bins: exact for randomized
    response, and some percent too large for projective geometry, where supports of a report depend on each other.
    """

    parts: Sequence[PureLinear]
    design: Tree

    @cached_property
    def variance(self) -> Floats:
        """Shape (m,): the variance of the share of each bin."""
        return self._variances(below=False)

    @cached_property
    def below(self) -> Floats:
        """Shape (m + 1,): the share below each edge, from 0 to 1."""
        return np.concatenate([[0.0], np.cumsum(self.values)[:-1], [1.0]])

    @cached_property
    def variance_below(self) -> Floats:
        """Shape (m + 1,): the variances of the shares below the edges."""
        return np.append(self._variances(below=True), 0.0)

    def _variances(self, *, below: bool) -> Floats:
        if self.design.size <= _EXACT:
            one = np.eye(self.design.size)
            return self.variance_of(np.triu(np.ones_like(one), 1) if below else one)
        pairs = [_diagonal_and_rank_one(part) for part in self.parts]
        variances = self.design.variances(self.weights, [diagonal for diagonal, _ in pairs], below)
        columns = [np.zeros((len(part.values), len(pairs))) for part in self.parts]
        for level, (_, rank_one) in enumerate(pairs):
            columns[level][:, level] = rank_one
        moved = self.solve(self.design.gather(self.design.weigh(self.weights, columns)))
        if below:
            moved = np.cumsum(moved, axis=0) - moved
        return np.asarray(np.maximum(variances - (moved**2).sum(axis=1), 0.0))

    @cached_property
    def nearest(self) -> Floats:
        """Shape (m,): the shares of 0 or more that are nearest to what all levels report."""
        of_parts = [part.values[:, np.newaxis] for part in self.parts]
        weighted = self.design.gather(self.design.weigh(self.weights, of_parts))[:, 0]
        return self.design.nearest(self.weights, weighted)


def tree_linear(tree: Tree, decoders: Sequence[PureDecoder], parts: Sequence[PureLinear | None]) -> TreeLinear:
    """Return the estimate from the levels that have reports.

    Args:
        tree: The design of all levels.
        decoders: The decoder of each level.
        parts: The estimate of each level; None without reports.

    Raises:
        ValueError: if the last level, that of the bins, has no reports.
    """
    there = [(width, decoder, part) for width, decoder, part in zip(tree.widths, decoders, parts, strict=True) if part]
    if not there or there[-1][0] != 1:
        raise ValueError("no report is about a bin, so there is no estimate of the bins")
    weights = [np.asarray(level_weight(decoder, int(part.n[0]))) for _, decoder, part in there]
    return TreeLinear([part for _, _, part in there], weights, Tree(tree.size, [width for width, _, _ in there]))


def level_weight(decoder: PureDecoder, n: int) -> float:
    """Return the weight of a level with n reports: the inverse of the variance of its blocks at equal shares.

    It depends on no count, so that the estimate is unbiased.
    """
    return float(1 / np.mean(decoder.forecast(n) ** 2))


def _diagonal_and_rank_one(part: PureLinear) -> tuple[Floats, Floats]:
    """Return d and u, with which the covariance of a level is diag(d) - u u^T; see ``Channel.moments``."""
    channel, r = part.channel, np.clip(part.values, 0.0, 1.0)
    m, scale = channel.support_probability(r), part.reports * channel.gain**2
    if channel.one_symbol:
        return m / scale, m / np.sqrt(scale)
    return (m * (1 - m) + (channel.gain * r) ** 2) / scale, r / np.sqrt(part.reports)

"""The unbiased estimate from the reports of all parts of a pool; ``design`` has its formula."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from uldp.mechanisms.pooling.design import Design, Solve
from uldp.mechanisms.protocol.linear import Linear, normal
from uldp.schemas.arrays import Counts, Floats

# Variances of all values take a column for each; so many columns are computed at once.
_COLUMNS = 1 << 10


@dataclass(frozen=True, eq=False)
class PooledLinear:
    """Least squares over the estimates of independent parts; see ``Linear``.

    It is linear in the parts: with B_s = W_s A_s (A^T W A)^-1, the sum g^T x-hat has the variance that is the sum over
    parts of (B_s g)^T Cov_s (B_s g). So errors need no more of a part than its ``times``. Weights must not depend on
    the counts: a count that is low by chance has a low variance too, and would pull the estimate down.

    Attributes:
        parts: The estimate of each part.
        weights: The weights of each part; see ``Design.weigh``.
        design: What each part estimates.
    """

    parts: Sequence[Linear]
    weights: Sequence[Floats] | Floats
    design: Design

    @cached_property
    def solve(self) -> Solve:
        """The product with (A^T W A)^-1."""
        return self.design.solve(self.weights)

    @cached_property
    def weighted(self) -> Floats:
        """Shape (m,): A^T W (y - A c), all that the estimate takes from the reports."""
        design = self.design
        centre = design.spread(design.centre[:, np.newaxis])
        own = [part.values[:, np.newaxis] - at for part, at in zip(self.parts, centre, strict=True)]
        return design.gather(design.weigh(self.weights, own))[:, 0]

    @cached_property
    def values(self) -> Floats:
        """Shape (m,): x-hat."""
        return self.design.centre + self.solve(self.weighted[:, np.newaxis])[:, 0]

    @cached_property
    def variance(self) -> Floats:
        """Shape (m,): the variance of each value."""
        size = self.design.size
        columns = (range(first, min(first + _COLUMNS, size)) for first in range(0, size, _COLUMNS))
        return np.concatenate([self.variance_of(np.eye(size)[:, each.start : each.stop]) for each in columns])

    @property
    def n(self) -> Counts:
        """Shape (m,): the number of reports of all parts, whose numbers are each the same for all entries."""
        return np.full(self.design.size, sum(int(part.n[0]) for part in self.parts))

    def interval(self, coverage: float) -> tuple[Floats, Floats]:
        """Return normal intervals: each value is a sum over many entries of several parts."""
        return normal(self.values, self.variance)(coverage)

    def variance_of(self, w: Floats) -> Floats:
        """Return the variances of the sums w^T x-hat, shape (j,), for w of shape (m, j)."""
        pairs = zip(self.parts, self._of_parts(w), strict=True)
        variance: Floats = np.sum([(own * part.times(own)).sum(axis=0) for part, own in pairs], axis=0)
        return np.maximum(variance, 0.0)

    def times(self, w: Floats) -> Floats:
        """Return Cov @ w, where the estimates of two parts are independent."""
        pairs = zip(self.parts, self._of_parts(w), strict=True)
        moved = [part.times(own) for part, own in pairs]
        return self.solve(self.design.gather(self.design.weigh(self.weights, moved)))

    def _of_parts(self, w: Floats) -> list[Floats]:
        """Return B_s w of each part."""
        return self.design.weigh(self.weights, self.design.spread(self.solve(w)))

"""How numbers are distributed, and decoders that say how well they would know the shares of bins of them."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator

from uldp.schemas.arrays import Floats


@dataclass(frozen=True, eq=False)
class Shape:
    """A distribution of numbers."""

    positions: Floats  # shape (m,): where the numbers are, from 0 at the lower end of the range to 1 at the upper one
    shares: Floats  # shape (m,): the share of users who hold each

    def of_bins(self, bins: int) -> Floats:
        """Return the share of users in each bin."""
        at = np.minimum((self.positions * bins).astype(np.int64), bins - 1)
        return np.bincount(at, self.shares, minlength=bins).astype(np.float64)

    def of_points(self, bins: int) -> Floats:
        """Return the expected share of users at each edge of bins, to which a device rounds at random."""
        below = np.minimum((self.positions * bins).astype(np.int64), bins - 1)
        over = self.positions * bins - below
        points = np.bincount(below, self.shares * (1 - over), minlength=bins + 1)
        return np.asarray(points + np.bincount(below + 1, self.shares * over, minlength=bins + 1))


@runtime_checkable
class SimulatesBins(Protocol):
    """A decoder of shares of bins that draws windows without reports."""

    bins_estimator: str  # the estimator of these shares with the least errors
    smooths: bool  # whether it has a bias where some numbers are much more frequent than their neighbours

    def simulate_bins(self, shape: Shape, n: int, rng: Generator) -> Floats:
        """Return the errors of the published shares of bins in a window of n reports, shape (bins,)."""

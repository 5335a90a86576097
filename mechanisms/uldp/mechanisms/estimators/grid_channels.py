"""The laws of the outputs of ``Block``, as operators: given a point of its grid, and given a bin between two points."""

from dataclasses import dataclass

import numpy as np

from uldp.schemas.arrays import Floats


@dataclass(frozen=True)
class PointChannel:
    """The law of an output given a point of the grid 0, ..., G, as an operator that takes O(G + W).

    The encoding rounds a number at random to one of the two points next to it, so the points have shares whatever the
    distribution of the numbers is. There are G + W outputs, of which a block has W = ``width``. With the probability
    ``noise`` an output is uniform over all of them, and not over the block.
    """

    bins: int  # G
    width: int
    noise: float

    @property
    def size(self) -> int:
        """The number of inputs, whose shares are asked for."""
        return self.bins + 1

    @property
    def floor(self) -> float:
        """The smallest probability of any output."""
        return self.noise / (self.bins + self.width)

    def outputs(self, shares: Floats) -> Floats:
        """Return the probability of each output, shape (..., G+W), for shares of the inputs, shape (..., size)."""
        below = np.zeros((*shares.shape[:-1], shares.shape[-1] + 2 * self.width - 1))
        below[..., self.width : 1 - self.width or None] = shares
        np.cumsum(below, axis=-1, out=below)
        # A difference of sums may be slightly below the floor.
        return np.maximum(self._of_sums(below), self.floor * below[..., -1:])

    def averages(self, weights: Floats) -> Floats:
        """Return the expected weight of an output given each input, (..., size), for weights of shape (..., G+W)."""
        below = np.zeros((*weights.shape[:-1], weights.shape[-1] + 1))
        np.cumsum(weights, axis=-1, out=below[..., 1:])
        return self._of_sums(below)

    def _of_sums(self, below: Floats) -> Floats:
        """Mix the sum of all, and those of W in a row, given the sums of the first ones."""
        near = below[..., self.width :] - below[..., : -self.width]
        return np.asarray(self.floor * below[..., -1:] + (1 - self.noise) / self.width * near)


@dataclass(frozen=True)
class BinChannel(PointChannel):
    """The law of an output given the bin of a number, if the numbers of a bin have a constant density.

    Then each of the two points next to a bin has probability 1/2, so the law of a bin is the average of theirs.
    """

    @property
    def size(self) -> int:
        """See the base class."""
        return self.bins

    def outputs(self, shares: Floats) -> Floats:
        """See the base class."""
        points = np.zeros((*shares.shape[:-1], self.bins + 1))
        points[..., :-1] = shares / 2
        points[..., 1:] += shares / 2
        return super().outputs(points)

    def averages(self, weights: Floats) -> Floats:
        """See the base class."""
        points = super().averages(weights)
        return np.asarray((points[..., :-1] + points[..., 1:]) / 2)

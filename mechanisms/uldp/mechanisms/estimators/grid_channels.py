"""The law of the outputs of ``Block``, as an operator: given a point of its grid, or a bin between two points."""

from dataclasses import dataclass

import numpy as np

from uldp.schemas.arrays import Floats


@dataclass(frozen=True)
class GridChannel:
    """The law of an output given a point of the grid 0, ..., G, or a bin, as an operator that takes O(G + W).

    The encoding rounds a number at random to one of the two points next to it, so the points have shares whatever the
    distribution of the numbers is. There are G + W outputs, of which a block has W = ``width``. With the probability
    ``noise`` an output is uniform over all of them, and not over the block.

    If the numbers of a bin have a constant density, each of the two points next to it has probability 1/2, so the law
    given a bin is the average of theirs.
    """

    bins: int  # G
    width: int
    noise: float
    of_bins: bool = False

    @property
    def size(self) -> int:
        """The number of inputs, whose shares are asked for."""
        return self.bins + (not self.of_bins)

    @property
    def floor(self) -> float:
        """The smallest probability of any output."""
        return self.noise / (self.bins + self.width)

    def outputs(self, shares: Floats) -> Floats:
        """Return the probability of each output, shape (..., G+W), for shares of the inputs, shape (..., size)."""
        below = np.zeros((*shares.shape[:-1], self.bins + 2 * self.width))
        if self.of_bins:
            below[..., self.width : -self.width] = shares / 2
            below[..., self.width + 1 : 1 - self.width or None] += shares / 2
        else:
            below[..., self.width : 1 - self.width or None] = shares
        np.cumsum(below, axis=-1, out=below)
        # A difference of sums may be slightly below the floor.
        return np.maximum(self._of_sums(below), self.floor * below[..., -1:])

    def averages(self, weights: Floats) -> Floats:
        """Return the expected weight of an output given each input, (..., size), for weights of shape (..., G+W)."""
        below = np.zeros((*weights.shape[:-1], weights.shape[-1] + 1))
        np.cumsum(weights, axis=-1, out=below[..., 1:])
        points = self._of_sums(below)
        return np.asarray((points[..., :-1] + points[..., 1:]) / 2) if self.of_bins else points

    def _of_sums(self, below: Floats) -> Floats:
        """Mix the sum of all, and those of W in a row, given the sums of the first ones."""
        near = below[..., self.width :] - below[..., : -self.width]
        return np.asarray(self.floor * below[..., -1:] + (1 - self.noise) / self.width * near)

"""The distribution of a number from the cells of ``Block``: shares of bins, and quantiles, with intervals."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from uldp.mechanisms.estimators.ems import SMOOTHINGS, choose_smoothing, ems, responses, stderr
from uldp.mechanisms.estimators.grid_channels import BinChannel, PointChannel
from uldp.mechanisms.families.block.randomizer import Block
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.table import INTERVAL_LEVEL

#: The levels of the published quantiles.
QUANTILE_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)

_Z = NormalDist().inv_cdf((1 + INTERVAL_LEVEL) / 2)
# The smoothing whose derivatives give the errors of shares below a number, up to so many bins. More bins need more, for
# the kernel reaches less far, and without smoothing the derivatives of a share near 0 are of any size.
_BELOW, _FEW_BINS = 0.001, 48
# Intervals of bins hold all fits up to this smoothing at least, at so many bins; it reaches as far in any range.
_HARMLESS, _HARMLESS_BINS = SMOOTHINGS[2], 64


@dataclass(frozen=True, eq=False)
class Estimated:
    """Some estimates and their intervals.

    Attributes:
        values: Shape (m,).
        low: Shape (m,): lower ends.
        high: Shape (m,): upper ends.
    """

    values: Floats
    low: Floats
    high: Floats

    @property
    def stderr(self) -> Floats:
        """The standard errors that normal intervals of these lengths have."""
        return (self.high - self.low) / (2 * _Z)


class Distribution:
    """What the cells of n reports say about the distribution of numbers, in parts of their range.

    The estimates are those of EMS with the smoothing that the cells choose. Two intervals come of it, both from the
    least to the largest of some fits, of which one is not smoothed, with 1.96 standard errors on either side:

    - Of the share of a bin. It takes the numbers of a bin as evenly spread, as the estimate does, and is too short
      where they are not, as with an atom.
    - Of a quantile. It holds for every distribution: a number in the bin i is rounded to the point i or i + 1, so the
      share of points up to i is between the shares of numbers below i and below i + 1. The interval is of the numbers
      where the level is within the errors of these shares, and so has two bins or more.
    """

    def __init__(self, block: Block, cells: Counts, n: int) -> None:
        """Fit the distribution to the cells of n reports, n positive."""
        sizes = (block.grid, block.width, block.noise)
        self._bins, self._points = BinChannel(*sizes), PointChannel(*sizes)
        self._cells, self._n = cells, n
        self._below = _BELOW * max(1, block.grid / _FEW_BINS) ** 0.75
        self.smoothing = choose_smoothing(self._bins, cells)

    def shares(self) -> Estimated:
        """Return the shares of the bins, shape (G,)."""
        parts = np.array(SMOOTHINGS)
        fits = self._fits(self._bins, parts)
        values = fits[SMOOTHINGS.index(self.smoothing)]
        half = _Z * self._errors_of_bins(values, fits.max(axis=0))
        harmless = _HARMLESS * max(1, self._bins.bins / _HARMLESS_BINS) ** 2
        near = fits[parts <= max(self.smoothing, harmless)]
        low, high = near.min(axis=0) - half, near.max(axis=0) + half
        return Estimated(values, np.maximum(low, 0), np.minimum(high, 1))

    def _errors_of_bins(self, shares: Floats, most: Floats) -> Floats:
        """Return the standard errors of the shares of bins, by the information that n reports have about all of them.

        Reports hardly tell neighbours from each other, so a bin is expected beforehand within the mean of its largest
        fit and an equal share.
        """
        laws = self._bins.outputs(np.eye(self._bins.bins))
        information = self._n * (laws / self._bins.outputs(shares)) @ laws.T
        beforehand = ((most + 1 / self._bins.bins) / 2) ** -2
        return np.asarray(np.sqrt(np.linalg.inv(information + np.diag(beforehand)).diagonal()))

    def quantiles(self, shares: Floats) -> Estimated:
        """Return the quantiles at ``QUANTILE_LEVELS`` of a distribution with these shares of bins, shape (G,)."""
        fits = self._fits(self._points, np.array([0, self.smoothing, self._below]))
        moves = responses(self._points, self._cells / self._n, fits[-1], self._below)
        low, high = self._around(fits[:-1].cumsum(axis=-1), moves.cumsum(axis=0))
        # A share of points up to one is at most that up to a later one, so the ends can ascend.
        first = np.searchsorted(np.minimum.accumulate(high[::-1])[::-1], QUANTILE_LEVELS) - 1
        last = np.searchsorted(np.maximum.accumulate(low), QUANTILE_LEVELS) + 1
        ends, below = np.linspace(0, 1, len(shares) + 1), np.concatenate([[0], np.cumsum(shares)])
        values = np.interp(QUANTILE_LEVELS, below, ends)
        start, end = (ends[np.clip(points, 0, len(shares))] for points in (first, last))
        return Estimated(values, np.minimum(start, values), np.maximum(end, values))

    def _fits(self, channel: PointChannel, smoothings: Floats) -> Floats:
        return ems(channel, np.tile(self._cells, (len(smoothings), 1)), smoothings)

    def _around(self, fits: Floats, moves: Floats) -> tuple[Floats, Floats]:
        # Few reports hit few outputs. As in the interval of the mean, z^2 reports are added, here of all outputs alike.
        n = self._n + _Z**2
        half = _Z * stderr(moves, np.asarray((self._cells + _Z**2 / len(self._cells)) / n, dtype=np.float64), n)
        return fits.min(axis=0) - half, fits.max(axis=0) + half

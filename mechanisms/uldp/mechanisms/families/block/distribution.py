"""The distribution of a number from the cells of ``Block``: shares of bins, and quantiles, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from uldp.mechanisms.estimators.ems import SMOOTHINGS, GridChannel, choose_smoothing, ems, responses, stderr
from uldp.mechanisms.families.block.band import Ends, exact_ends
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
# Numbers are uneven where one quarter of an interval has so many times the numbers of another.
_QUARTERS, _UNEVEN = 4, 3.0


@dataclass(frozen=True, eq=False)
class Estimated:
    """Some estimates and their intervals."""

    values: Floats
    low: Floats
    high: Floats

    def on(self, low: float, high: float) -> "Estimated":
        """Return numbers between 0 and 1 as those of a range."""
        return Estimated(*(low + (high - low) * each for each in (self.values, self.low, self.high)))


class Distribution:
    """What the cells of n reports say about the distribution of numbers, in parts of their range.

    The estimates are those of EMS with the smoothing that the cells choose. Two intervals come of it, both from the
    least to the largest of some fits, of which one is not smoothed, with 1.96 standard errors on either side:

    - Of the share of a bin. It takes the numbers of a bin as evenly spread, as the estimate does, and is too short
      where they are not, as with an atom.
    - Of a quantile. A number in the bin i is rounded to the point i or i + 1, so the share of points up to i is between
      the shares of numbers below i and below i + 1. The interval is of the numbers where the level is within the errors
      of these shares, and so has two bins or more.

    Next to an atom, and in a gap, smooth fits err by more than their errors. So where numbers are uneven, the interval
    of a quantile is that of ``exact_ends``, which is longer: if of the four quarters of this interval, the fullest has
    more than three times the numbers of the emptiest, by the estimate.
    """

    def __init__(self, block: Block, cells: Counts, n: int) -> None:
        sizes = (block.grid, block.width, block.noise)
        self._bins, self._points = GridChannel(*sizes, of_bins=True), GridChannel(*sizes)
        self._cells, self._n = cells, n
        self._below = _BELOW * max(1, block.grid / _FEW_BINS) ** 0.75
        self._chosen = choose_smoothing(self._bins, cells)

    @property
    def smoothing(self) -> float:
        """The part of smoothing of the estimates."""
        return self._chosen.smoothing

    @cached_property
    def _of_bins(self) -> Floats:
        """Shape (smoothings, G): the fits to all reports with each of ``SMOOTHINGS``."""
        start = self._chosen.fits.copy()
        # Without smoothing, the fit to a part of the reports has fitted its noise already. So estimates start anew.
        start[SMOOTHINGS.index(self.smoothing)] = 1 / self._bins.size
        return self._fits(self._bins, np.array(SMOOTHINGS), start)

    def shares(self) -> Estimated:
        """Return the shares of the bins, shape (G,)."""
        parts, fits = np.array(SMOOTHINGS), self._of_bins
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

    def ranges(self, firsts: Sequence[int], ends: Sequence[int]) -> Estimated:
        """Return the shares of ranges of bins, each from its first bin to the one before its end.

        The bins that a range begins and ends with have points in common with others, so the share is between those of
        the points that only its numbers are rounded to, and of all that some are.
        """
        shares = self._of_bins[SMOOTHINGS.index(self.smoothing)]
        below = np.concatenate([[0], np.cumsum(shares)])
        points, first, end = np.arange(len(below)), np.array(firsts)[:, np.newaxis], np.array(ends)[:, np.newaxis]
        around = ((points >= first) & (points <= end)).astype(np.float64)
        inside = around * ((points > first) | (first == 0)) * ((points < end) | (end == len(shares)))
        fits, moves = self._near_points
        low, _ = self._around(fits @ inside.T, inside @ moves)
        _, high = self._around(fits @ around.T, around @ moves)
        values = below[ends] - below[firsts]
        return Estimated(values, np.clip(low, 0, values), np.clip(high, values, 1))

    def quantiles(self, levels: Sequence[float] = QUANTILE_LEVELS) -> Estimated:
        """Return the quantiles at levels between 0 and 1, in ascending order."""
        shares = self._of_bins[SMOOTHINGS.index(self.smoothing)]
        numbers, below = np.linspace(0, 1, len(shares) + 1), np.concatenate([[0], np.cumsum(shares)])
        values = np.interp(levels, below, numbers)
        exact = exact_ends(self._points, self._cells, levels, INTERVAL_LEVEL)
        quarters = np.diff(np.interp(np.linspace(*exact, _QUARTERS + 1), np.arange(len(below)), below), axis=0)
        uneven = quarters.max(axis=0) > _UNEVEN * quarters.min(axis=0)
        start, end = (
            numbers[np.where(uneven, *points)] for points in zip(exact, self.smooth_ends(levels), strict=True)
        )
        return Estimated(values, np.minimum(start, values), np.maximum(end, values))

    @cached_property
    def _near_points(self) -> tuple[Floats, Floats]:
        """Fits of the shares of points, shape (2, G+1), and how these move with the outputs, shape (G+1, G+W)."""
        parts = np.array([0, self.smoothing, self._below])
        near = self._of_bins[[0, SMOOTHINGS.index(self.smoothing), 1]] / 2
        start = np.pad(near, ((0, 0), (0, 1))) + np.pad(near, ((0, 0), (1, 0)))
        fits = self._fits(self._points, parts, start)
        return fits[:-1], responses(self._points, self._cells / self._n, fits[-1], self._below)

    def smooth_ends(self, levels: Sequence[float] = QUANTILE_LEVELS) -> Ends:
        """Return between which points the quantiles are by the fits, which is too short where numbers are uneven."""
        fits, moves = self._near_points
        low, high = self._around(fits.cumsum(axis=-1), moves.cumsum(axis=0))
        # A share of points up to one is at most that up to a later one, so the ends can ascend.
        first = np.searchsorted(np.minimum.accumulate(high[::-1])[::-1], levels) - 1
        last = np.searchsorted(np.maximum.accumulate(low), levels) + 1
        return first.clip(0), last.clip(max=self._bins.bins)

    def _fits(self, channel: GridChannel, smoothings: Floats, start: Floats) -> Floats:
        return ems(channel, np.tile(self._cells, (len(smoothings), 1)), smoothings, start)

    def _around(self, fits: Floats, moves: Floats) -> tuple[Floats, Floats]:
        # Few reports hit few outputs. As in the interval of the mean, z^2 reports are added, here of all outputs alike.
        n = self._n + _Z**2
        half = _Z * stderr(moves, np.asarray((self._cells + _Z**2 / len(self._cells)) / n, dtype=np.float64), n)
        return fits.min(axis=0) - half, fits.max(axis=0) + half

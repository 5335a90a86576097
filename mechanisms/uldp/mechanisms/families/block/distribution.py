"""The distribution of a number from the cells of ``Block``: shares of bins, and quantiles, with intervals.

Intervals of quantiles are exact, whatever the distribution, where numbers are uneven. With a = (1 - noise)/W, the
probability of output j is noise/(G+W) + a (F(j) - F(j-W)), where F(i) is the share of points up to i. Of the outputs
that are equal to i modulo W, those up to i add up, so that a report in one of these c outputs is in one of the c' up to
i with the probability (c' noise/(G+W) + a F(i)) / (c noise/(G+W) + a): a binomial count, whose chance is linear in
F(i). Counts of up to W points in a row are independent, and F ascends, so that their sum bounds F at the first and at
the last of them: by Clopper and Pearson, because a sum of binomial counts with several chances is less spread than one
with their mean (Hoeffding, "On the Distribution of the Number of Successes in Independent Trials", Annals of
Mathematical Statistics 27, 1956).

If f of the reports may be forged, the bounds are those of the honest ones, whichever these are. Each tail of a count is
the largest if all forged reports are on its side: of the upper one, if all are among those up to i, because S + B >= c
implies S >= c - 1 for a B of 0 or 1. So the lower bound is that of c - f of t - f reports, and the upper one that of c
of t - f, where the chances of the f others are the least, or the largest, of a point of the window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from uldp.mechanisms.estimators.ems import SMOOTHINGS, GridChannel, choose_smoothing, ems, responses, stderr
from uldp.mechanisms.families.block.randomizer import Block
from uldp.mechanisms.kernels.intervals import clopper_pearson
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.table import INTERVAL_LEVEL

#: The first and the last of the points of the grid between which quantiles are, each of shape (levels,).
Ends = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]

# The lengths of the windows whose sums bound F, as parts of the length that is best for equally spread numbers.
_LENGTHS = (0.25, 0.75, 2.0)

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


def exact_ends(channel: GridChannel, cells: Counts, levels: Sequence[float], coverage: float, forged: int = 0) -> Ends:
    """Return intervals that hold each quantile, one at a time, with probability ``coverage`` or more.

    Points are tried from 0 on, until one may have so large a share up to it as the level, and from G on backwards. So
    the interval misses only if the one test of the point of the quantile fails, and flat parts are held as a whole. A
    number is rounded to the point below or above it, so the upper end is a point further.
    """
    low, high = shares_up_to(channel, cells, coverage, forged)
    wanted = np.array(levels)[:, np.newaxis]
    # No number is below 0, and none above G, so each level has a point that may be below it and one that may be above.
    below = np.concatenate([[0.0], low])
    first = (high >= wanted).argmax(axis=1) - 1
    last = channel.bins + 1 - (below <= wanted)[:, ::-1].argmax(axis=1)
    return first.clip(0), (last + 1).clip(max=channel.bins)


def most_of_bins(channel: GridChannel, cells: Counts, coverage: float, forged: int = 0) -> Floats:
    """Return upper bounds of the shares of bins, each with probability ``coverage``, shape (G,); they may be above 1.

    The numbers of the bin i are rounded to the points i and i + 1, whose share is F(i + 1) - F(i - 1). Numbers of the
    bins beside it may be there as well, so that no lower bound above 0 follows.
    """
    low, high = shares_up_to(channel, cells, coverage, forged)
    most: Floats = high[1:] - np.concatenate([[0.0], low[:-2]]).clip(0.0)
    return most


def shares_up_to(channel: GridChannel, cells: Counts, coverage: float, forged: int = 0) -> tuple[Floats, Floats]:
    """Return bounds of F at 0, ..., G, shape (G+1,) each, which need not ascend.

    Each is wrong with a probability of at most ``(1 - coverage) / 2``. ``forged`` reports are in no bound.
    """
    size, width = channel.bins, channel.width
    points = np.arange(size)
    outputs = -(-(size + width - points % width) // width)
    up_to = points // width + 1
    slope = (1 - channel.noise) / width
    together = outputs * channel.floor + slope
    # The sum of each output and those W, 2 W, ... before it.
    sums = np.zeros(size + width, dtype=np.int64)
    for start in range(0, size + width, width):
        sums[start : start + width] = cells[start : start + width]
        if start:
            sums[start : start + width] += sums[start - width : start][: len(sums) - start]
    counts, totals = sums[:size], sums[points % width + (outputs - 1) * width]
    of_none, of_each = (np.asarray(part / together, dtype=np.float64) for part in (up_to * channel.floor, slope))
    parts = (counts, totals, totals * of_none, totals * of_each)
    before = [np.concatenate([[0], np.cumsum(part)]) for part in parts]

    lengths = _lengths(channel, int(cells.sum()), coverage, forged)
    lows, highs = [np.zeros(size)], [np.ones(size)]
    for length in lengths:
        for ends, first, end in (
            (lows, np.maximum(points + 1 - length, 0), points + 1),
            (highs, points, np.minimum(points + length, size)),
        ):
            count, total, none, each = (sums[end] - sums[first] for sums in before)
            if forged:
                count = count if ends is highs else np.maximum(count - forged, 0)
                total = np.maximum(total - forged, 0)
                none = none - forged * _extremes(of_none, length, ahead=ends is highs)
                each = each - forged * _extremes(of_each, length, ahead=ends is highs)
            total = np.where((total >= count) & (each > 0), total, 0)
            chance = clopper_pearson(np.minimum(count, total), np.maximum(total, 1), 1 - (1 - coverage) / len(lengths))
            share = (chance[ends is highs] * total - none) / np.where(total, each, 1.0)
            ends.append(np.where(total, share, float(ends is highs)))
    return np.append(np.max(lows, axis=0), 1.0), np.append(np.min(highs, axis=0), 1.0)


def _extremes(values: Floats, length: int, *, ahead: bool) -> Floats:
    """Return the largest of each value and those after it, ``length`` in all, or the least of it and those before."""
    around = np.pad(values, (0, length - 1) if ahead else (length - 1, 0), "edge")
    windows = sliding_window_view(around, length)
    found: Floats = windows.max(axis=1) if ahead else windows.min(axis=1)
    return found


def _lengths(channel: GridChannel, n: int, coverage: float, forged: int) -> list[int]:
    """Return the lengths of windows: about where the ascent of F within one weighs as noise does, or as forgers do."""
    z = NormalDist().inv_cdf(1 - (1 - coverage) / 2 / len(_LENGTHS))
    # The noise of a window of one point, of which half of the reports are up to it, beside the share of a point.
    noise = channel.bins * z / 2 / (1 - channel.noise) * (channel.width / n) ** 0.5
    # All forgers may be in one window; of twice the points, they are half as large a part.
    forgers = channel.bins / (1 - channel.noise) * channel.width * forged / n
    best = max(noise ** (2 / 3), forgers**0.5)
    return list(dict.fromkeys(min(max(round(part * best), 1), channel.width) for part in _LENGTHS))

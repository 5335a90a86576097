"""Exact intervals of the quantiles of a number, whatever its distribution, from the cells of ``Block``.

With a = (1 - noise)/W, the probability of output j is noise/(G+W) + a (F(j) - F(j-W)), where F(i) is the share of
points up to i. Of the outputs that are equal to i modulo W, those up to i add up, so that a report in one of these c
outputs is in one of the c' up to i with the probability (c' noise/(G+W) + a F(i)) / (c noise/(G+W) + a): a binomial
count, whose chance is linear in F(i). Counts of up to W points in a row are independent, and F ascends, so that their
sum bounds F at the first and at the last of them: by Clopper and Pearson, because a sum of binomial counts with several
chances is less spread than one with their mean (Hoeffding, "On the Distribution of the Number of Successes in
Independent Trials", Annals of Mathematical Statistics 27, 1956).

If f of the reports may be forged, the bounds are those of the honest ones, whichever these are. Each tail of a count is
the largest if all forged reports are on its side: of the upper one, if all are among those up to i, because S + B >= c
implies S >= c - 1 for a B of 0 or 1. So the lower bound is that of c - f of t - f reports, and the upper one that of c
of t - f, where the chances of the f others are the least, or the largest, of a point of the window.
"""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from uldp.mechanisms.estimators.ems import GridChannel
from uldp.mechanisms.kernels.intervals import clopper_pearson
from uldp.schemas.arrays import Counts, Floats

#: The first and the last of the points of the grid between which quantiles are, each of shape (levels,).
Ends = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]

# The lengths of the windows whose sums bound F, as parts of the length that is best for equally spread numbers.
_LENGTHS = (0.25, 0.75, 2.0)


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
    """Return bounds of F, each end of a point with a probability of at most ``(1 - coverage) / 2`` to be wrong.

    For the arguments see ``exact_ends``. Where reports may be forged, the bounds are those of the others.

    Returns:
        Two arrays of shape (G+1,), for 0, ..., G; the ends need not ascend.
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

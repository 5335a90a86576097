"""The cumulants of linear scores of reports, and how they add up."""

from collections.abc import Iterable
from typing import NamedTuple, Self

import numpy as np

from uldp.schemas.arrays import Floats, Mask


class Cumulants(NamedTuple):
    """The errors of some sums of unbiased estimates, or of what one report adds to them; each of shape (j,).

    Attributes:
        variance: The second cumulant, V.
        third: The third cumulant, which is the third central moment, K.
        step: J, the largest step of one user; see ``largest_step``.
        low: The lower one of two scores, if a report has no third one; otherwise NaN.
        high: Likewise, the upper one.
    """

    variance: Floats
    third: Floats
    step: Floats
    low: Floats
    high: Floats

    @property
    def exact(self) -> Mask:
        """Shape (j,): whether a report has one of two scores, so that a sum counts reports."""
        return ~np.isnan(self.low)

    def scaled(self, factor: Floats) -> Self:
        """Return the cumulants of the sums times some numbers, shape (j,)."""
        low, high = np.where(factor < 0, (self.high, self.low), (self.low, self.high)) * factor
        return type(self)(self.variance * factor**2, self.third * factor**3, self.step * np.abs(factor), low, high)


def of_points(probability: Floats, scores: Floats) -> Cumulants:
    """Return the cumulants of scores with a few values.

    Args:
        probability: Shape (points, j): sums to 1 over the points.
        scores: Shape (points, j), or (points, 1) for the same scores of all sums.
    """
    mean = (probability * scores).sum(axis=0)
    centred = scores - mean
    square = probability * centred**2
    least, most = scores.min(axis=0), scores.max(axis=0)
    two = ((scores == least) | (scores == most)).all(axis=0)
    low, high = (np.where(two, each, np.nan) for each in (least, most))
    return Cumulants(square.sum(axis=0), (square * centred).sum(axis=0), np.abs(centred).max(axis=0), low, high)


def chained(parts: Iterable[Cumulants]) -> Cumulants:
    """Return the cumulants of several groups of sums, one behind the other."""
    return Cumulants(*map(np.concatenate, zip(*parts, strict=True)))

"""Weighted sums of an unbiased estimate, with its covariances: the quadrature of rows is up to twice as wide.

The parts of one estimate depend on each other, because a report that supports one value supports no other, or fewer.
"""

from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.decoders.pure import PureLinear
from uldp.mechanisms.pooling.versions import WeightedLinear
from uldp.mechanisms.protocol.channel import normal_quantile
from uldp.mechanisms.protocol.linear import Linear
from uldp.schemas.arrays import Floats


@dataclass(frozen=True, eq=False)
class Combined:
    """Weighted sums, each array of shape (j,).

    Attributes:
        values: The unbiased estimates.
        variance: Their variances.
        below: The distances from the estimates to the lower ends of their intervals.
        above: Those to the upper ends.
    """

    values: Floats
    variance: Floats
    below: Floats
    above: Floats

    def __sub__(self, other: "Combined") -> "Combined":
        """Return the differences from independent sums: the squares of the distances add up (MOVER).

        Source: Zou & Donner (Statistics in Medicine 27, 2008).
        """
        return Combined(
            self.values - other.values,
            self.variance + other.variance,
            np.hypot(self.below, other.above),
            np.hypot(self.above, other.below),
        )

    def plus(self, variance: Floats, coverage: float) -> "Combined":
        """Return the sums with an independent normal error of this variance added, shape (j,)."""
        half = normal_quantile(0.5 + coverage / 2) * np.sqrt(variance)
        return Combined(self.values, self.variance + variance, np.hypot(self.below, half), np.hypot(self.above, half))


def combined(linear: Linear, w: Floats, coverage: float) -> Combined:
    """Return weighted sums of an unbiased estimate.

    Intervals of a channel take z^2 reports more that nobody sent, half with the largest weight and half with the least,
    as those of Agresti and Coull do (The American Statistician 52, 1998): without these, few reports of symbols without
    noise agree by chance. Others are normal.

    Args:
        linear: The estimate.
        w: Shape (m, j): a column of weights for each sum.
        coverage: The probability with which each interval is to cover.
    """
    if isinstance(linear, WeightedLinear):
        parts = [
            combined(part, weight[:, np.newaxis] * w, coverage)
            for weight, part in zip(linear.weights, linear.parts, strict=True)
        ]
        return Combined(
            np.sum([part.values for part in parts], axis=0),
            np.sum([part.variance for part in parts], axis=0),
            np.sqrt(np.sum([part.below**2 for part in parts], axis=0)),
            np.sqrt(np.sum([part.above**2 for part in parts], axis=0)),
        )
    values, z = linear.values @ w, normal_quantile(0.5 + coverage / 2)
    variance = np.maximum((w * linear.times(w)).sum(axis=0), 0.0)
    if not isinstance(linear, PureLinear):
        return Combined(values, variance, z * np.sqrt(variance), z * np.sqrt(variance))
    least, most = _scores(linear, w)
    n = linear.reports
    added, reports = z**2 / (n + z**2), n + z**2
    middle = (1 - added) * values + added * (least + most) / 2
    square = (1 - added) * (n * variance + values**2) + added * (least**2 + most**2) / 2
    half = z * np.sqrt(np.maximum(square - middle**2, 0.0) / reports)
    return Combined(values, variance, values - middle + half, middle + half - values)


def _scores(linear: PureLinear, w: Floats) -> tuple[Floats, Floats]:
    """Return the least and the largest number that a report counts as in each sum, both of shape (j,).

    Reports that support several symbols are taken as if they supported one, and as much of the others as is usual.
    """
    channel = linear.channel
    of_symbol = w / channel.gain[:, np.newaxis]
    base = -channel.q @ of_symbol if channel.one_symbol else np.zeros(w.shape[1])
    outside = np.zeros(w.shape[1])
    some = (w != 0).any(axis=1)
    of_support = np.vstack([of_symbol[some], outside]) if not some.all() else of_symbol
    return base + of_support.min(axis=0), base + of_support.max(axis=0)

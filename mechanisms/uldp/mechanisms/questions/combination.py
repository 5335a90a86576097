"""Weighted sums of an unbiased estimate, with its covariances: the quadrature of rows is up to twice as wide.

The parts of one estimate depend on each other, because a report that supports one value supports no other, or fewer.
"""

from collections.abc import Sequence
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

    Intervals of a channel are as those of Wilson (Journal of the American Statistical Association 22, 1927): normal
    ones would be too short where few reports of symbols without noise agree by chance. Others are normal.

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
            _root([part.below for part in parts]),
            _root([part.above for part in parts]),
        )
    values, z = linear.values @ w, normal_quantile(0.5 + coverage / 2)
    variance = np.maximum((w * linear.times(w)).sum(axis=0), 0.0)
    if not isinstance(linear, PureLinear):
        return Combined(values, variance, z * np.sqrt(variance), z * np.sqrt(variance))
    return _scored(values, variance, int(linear.n[0]), *_scores(linear, w), z)


def singles(linear: Linear, coverage: float) -> Combined:
    """Return each entry of an estimate alone, with intervals whose differences cover as often as they say.

    Those of a channel are Wilson's (Journal of the American Statistical Association 22, 1927) for the support counts:
    those of Clopper and Pearson, which are published, cover more often, and so do differences of them. Newcombe
    (Statistics in Medicine 17, 1998) recommends the former. Others are the estimate's own.
    """
    if isinstance(linear, WeightedLinear):
        parts = [singles(part, coverage) for part in linear.parts]
        return Combined(
            linear.values,
            linear.variance,
            _root([weight * part.below for weight, part in zip(linear.weights, parts, strict=True)]),
            _root([weight * part.above for weight, part in zip(linear.weights, parts, strict=True)]),
        )
    if not isinstance(linear, PureLinear) or linear.channel.q_non_sensitive is not None:
        low, high = linear.interval(coverage)
        return Combined(linear.values, linear.variance, linear.values - low, high - linear.values)
    n, z, gain = linear.reports, normal_quantile(0.5 + coverage / 2), linear.channel.gain
    m = linear.cells / n
    middle, half = m + z**2 / (2 * n), z * np.sqrt(m * (1 - m) / n + z**2 / (4 * n**2))
    below, above = m - (middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n) - m
    return Combined(linear.values, linear.variance, below / gain, above / gain)


def _root(distances: Sequence[Floats]) -> Floats:
    """Return the root of the sum of squares."""
    root: Floats = np.sqrt(np.sum(np.square(distances), axis=0))
    return root


def _scored(values: Floats, variance: Floats, n: int, least: Floats, most: Floats, z: float) -> Combined:
    """Return means of n numbers between ``least`` and ``most``, with Wilson's interval for two numbers, and alike.

    The variance of one number is taken as a part kappa of (mean - least)(most - mean), whatever the mean: all of it, if
    there are two numbers. If it is more, because reports support several values, the interval is normal.
    """
    width = np.where(most > least, most - least, 1.0)
    x, spread = (values - least) / width, n * variance / width**2
    inside = (x > 0) & (x < 1) & (spread <= x * (1 - x))
    none = spread <= 0
    kappa = np.where(inside & ~none, spread / np.where(inside, x * (1 - x), 1.0), 1.0) * z**2 / n
    x = np.clip(x, 0.0, 1.0)
    middle, half = (x + kappa / 2) / (1 + kappa), np.sqrt(kappa * x * (1 - x) + kappa**2 / 4) / (1 + kappa)
    normal = z * np.sqrt(variance)
    scored = inside | none & (most > least)
    below = np.where(scored, width * np.maximum(x - middle + half, 0.0), normal)
    above = np.where(scored, width * np.maximum(middle + half - x, 0.0), normal)
    return Combined(values, variance, below, above)


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

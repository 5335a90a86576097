"""Intervals and p-values of sums of unbiased estimates, all from their cumulants.

Where a sum counts the reports of one event, its interval is exact: that of Clopper and Pearson for a binomial
proportion. Any other sum T has the variance V and the third cumulant K at the estimate of theta. A score interval holds
the values v that T does not contradict, with the law that T would have at v. Theta moves to v along its least
favourable line, theta-hat + Cov w (v - T) / V, on which the variance changes by dV/dv = K / V, as in an exponential
family. With J, the step of a user of whom no report has come yet,

    b+ = (K + J^3) / (V + J^2)    upper end T + d:    d - c = q(g) sqrt(V + b+ d)    g = b+ / sqrt(V + b+ d)
    b- = (K - J^3) / (V + J^2)    lower end T - d:    d - c = q(g) sqrt(V - b- d)    g = b- / sqrt(V - b- d)

where q(g) is a quantile of a standardized gamma distribution with the skewness g, by Wilson and Hilferty (PNAS 17,
1931), and c = J/4 a correction for continuity. Of a count without noise, it is close to the score interval of Poisson.
"""

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.kernels.intervals import clopper_pearson
from uldp.mechanisms.laws.law import Cumulants
from uldp.schemas.arrays import Floats, Reports

#: Lower and upper ends of intervals, not cut to any range.
Ends = tuple[Floats, Floats]

# The correction for continuity, in steps.
_STEP = 1 / 4
# Halvings of the interval of a root.
_HALVINGS = 48
# A skewness below this is none: the root of its cube would lose all digits.
_STRAIGHT = 1e-5


def score_interval(values: Floats, cumulants: Cumulants, coverage: float) -> Ends:
    """Return intervals of sums that cover alone with about this probability; see the module."""
    z = normal_quantile(0.5 + coverage / 2)
    return values - _distance(cumulants, z, -1), values + _distance(cumulants, z, 1)


def exact_interval(values: Floats, cumulants: Cumulants, n: Reports | Floats, coverage: float) -> Ends:
    """Return intervals of means of n scores of one of two values, which cover so or more; others get any numbers."""
    width = cumulants.high - cumulants.low
    counts = np.rint(np.nan_to_num(n * (values - cumulants.low) / np.where(width > 0, width, 1.0)).clip(0, n))
    # Many means have the same count, and the ends of an interval cost a microsecond or more each.
    pairs, place = np.unique(counts + 1j * n, return_inverse=True)
    ends = clopper_pearson(pairs.real, pairs.imag, coverage)
    low, high = (end[place].reshape(values.shape) * width + cumulants.low for end in ends)
    return low, high


def p_value(values: Floats, cumulants: Cumulants) -> Floats:
    """Return two-sided p-values of sums of mean 0: below 1 - coverage where ``score_interval`` does not hold 0."""
    from scipy import special  # takes a quarter of a second, and devices need none

    side = np.where(values > 0, -1, 1)
    slope = side * _slope(cumulants, side)
    d, inner = np.abs(values), np.maximum(np.abs(values) - _STEP * cumulants.step, 0.0)
    return np.asarray(np.minimum(2 * special.ndtr(-_deviate(inner, cumulants.variance + slope * d, slope)), 1.0))


def normal_quantile(probability: float) -> float:
    """Return Phi^-1, the quantile function of the standard normal distribution."""
    return NormalDist().inv_cdf(probability)


def _distance(cumulants: Cumulants, z: float, side: int) -> Floats:
    """Return how far the upper ends (1), or the lower ones (-1), are from the sums, for a normal quantile z."""
    step = cumulants.step
    slope = side * _slope(cumulants, side)
    least = _STEP * step
    most = least + 10 * z * (np.sqrt(cumulants.variance) + z * np.abs(slope) + step)
    for _ in range(_HALVINGS):
        d = (least + most) / 2
        inside = _deviate(d - _STEP * step, cumulants.variance + slope * d, slope) < z
        least, most = np.where(inside, d, least), np.where(inside, most, d)
    return np.asarray((least + most) / 2)


def _slope(cumulants: Cumulants, side: float | Floats) -> Floats:
    """Return b of each side."""
    square = cumulants.step**2
    slope = (cumulants.third + side * cumulants.step * square) / np.maximum(cumulants.variance + square, 1e-300)
    return np.asarray(slope)


def _deviate(d: Floats, variance: Floats, slope: Floats) -> Floats:
    """Return the normal deviate of a distance from the mean under a gamma law, by Wilson and Hilferty."""
    none = variance <= 0
    deviation = np.sqrt(np.where(none, 1.0, variance))
    # The tail lies where the variance falls: an estimate below v is in the lower tail of its law at v.
    skewness = -slope / deviation
    x, straight = d / deviation, np.abs(skewness) < _STRAIGHT
    g = np.where(straight, 1.0, skewness)
    bent = 6 / g * (np.cbrt(1 + g * x / 2) - 1) + g / 6
    return np.where(none, np.where(d > 0, np.inf, 0.0), np.where(straight, x, bent))


_NODES = np.linspace(0.0, 1.0, 4)


def ratio_interval(
    top: Floats,
    bottom: Floats,
    cumulants: Callable[[Floats], Cumulants],
    coverage: float,
    bounds: tuple[float, float] = (0.0, 1.0),
    moved: npt.ArrayLike = 0.0,
) -> Ends:
    """Return intervals of ratios of the means of estimates, inside their range.

    ``cumulants`` gives those of top - v bottom for ratios v, which forged reports may move by ``moved``. Where
    ``bottom`` may be 0, intervals may be the whole range.

    Source: Fieller, "Some problems in interval estimation" (Journal of the Royal Statistical Society B 16, 1954), for
    normal estimates. Here top - v bottom is tested by its own score interval. Its variance is quadratic in v, and its
    third cumulant cubic, so that those at four ratios give all others; its largest step is convex.
    """
    least, most = bounds
    at_nodes = [cumulants(np.full(len(top), least + node * (most - least))) for node in _NODES]
    variance, third = (np.linalg.solve(np.vander(_NODES), np.stack([each[i] for each in at_nodes])) for i in (0, 1))
    step, nothing = np.stack([each.step for each in at_nodes]), np.full(len(top), np.nan)

    def inside(part: Floats) -> npt.NDArray[np.bool_]:
        node = np.minimum((part * 3).astype(np.int64), 2)
        between, each = part * 3 - node, np.arange(len(part))
        own = Cumulants(
            np.maximum(np.polyval(variance, part), 0.0),
            np.polyval(third, part),
            (1 - between) * step[node, each] + between * step[node + 1, each],
            nothing,
            nothing,
        )
        score = top - (least + part * (most - least)) * bottom
        return np.asarray(p_value(np.sign(score) * np.maximum(np.abs(score) - moved, 0.0), own) >= 1 - coverage)

    ratio = np.divide(top, bottom, out=np.full_like(top, (least + most) / 2), where=bottom != 0)
    middle = ((ratio - least) / (most - least)).clip(0.0, 1.0)

    def end(outer: float) -> Floats:
        of_inside, of_outside = middle, np.full_like(middle, outer)
        whole = inside(of_outside)
        for _ in range(_HALVINGS):
            part = (of_inside + of_outside) / 2
            there = inside(part)
            of_inside, of_outside = np.where(there, part, of_inside), np.where(there, of_outside, part)
        return np.asarray(least + np.where(whole, outer, of_outside) * (most - least))

    return end(0.0), end(1.0)

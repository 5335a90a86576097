"""Intervals of a ratio of two estimates, which hold where the lower one is near 0 too.

Source: Fieller, "Some problems in interval estimation" (Journal of the Royal Statistical Society B 16, 1954).
"""

import numpy as np

from uldp.schemas.arrays import Floats


def ratio_interval(
    upper: Floats, lower: Floats, variance_upper: Floats, variance_lower: Floats, covariance: Floats, z: float
) -> tuple[Floats, Floats]:
    """Return Fieller's intervals of ratios of the means of two estimates, all of shape (m,).

    The ratio rho is inside if upper - rho lower, which has the mean 0 if rho is right, is within z of its standard
    errors. So the ends solve a quadratic equation. Where the lower estimate is within z standard errors of 0, no ratio
    is excluded on one side or both, and the ends are infinite.

    Args:
        upper: The estimates above the line.
        lower: Those below it.
        variance_upper: The variances of ``upper``.
        variance_lower: The variances of ``lower``.
        covariance: The covariances of both.
        z: The quantile of the normal distribution for the coverage.
    """
    a = lower**2 - z**2 * variance_lower
    b = upper * lower - z**2 * covariance
    c = upper**2 - z**2 * variance_upper
    known = a > 0
    divisor = np.where(known, a, 1.0)
    half = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    return np.where(known, (b - half) / divisor, -np.inf), np.where(known, (b + half) / divisor, np.inf)

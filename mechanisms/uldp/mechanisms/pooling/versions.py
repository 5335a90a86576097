"""One estimate from the counts of several versions of a collection, whose devices obfuscate differently.

The estimate over Z is the mean of the unbiased estimates of the versions, weighted by the inverse of their variances
for each symbol. A version's own counts must not decide its weight: a count that is low by chance has a low variance
too, so such weights pull the mean down. All variances are therefore those at one pooled distribution.

The mean estimates the users' distribution if the users of all versions are drawn from one population.
``contradictions`` finds symbols for which they cannot be.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from uldp.mechanisms.decoders.pure import PureLinear
from uldp.mechanisms.estimators.by_name import project_to_simplex
from uldp.mechanisms.estimators.projection import weights as weights_of
from uldp.mechanisms.estimators.simplex import onto_simplex
from uldp.mechanisms.pooling.design import Design, Same
from uldp.mechanisms.pooling.pooled_linear import PooledLinear
from uldp.mechanisms.protocol.linear import Linear
from uldp.schemas.arrays import Floats, Mask
from uldp.schemas.errors import RequestError

# The least probability of honest versions that ``contradiction_p_value`` tells from smaller ones, and its accuracy.
_LEAST_P_VALUE, _HALVINGS = 1e-12, 12
# Steps from the start to the pooled distribution; after two, the l1 error changes by less than 1 %.
_STEPS = 3


@dataclass(frozen=True, eq=False)
class WeightedLinear(PooledLinear):
    """A weighted mean of independent unbiased estimates of the same numbers; see ``Linear``.

    Attributes:
        parts: The estimate of each version.
        weights: Shape (versions, m): for each number, weights of 0 or more that sum to one.
    """

    weights: Floats
    design: Design = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "design", Same(self.weights.shape[1], len(self.parts)))

    @property
    def variance(self) -> Floats:
        """Shape (m,): the sum of the variances of the versions, times their squared weights."""
        variance: Floats = np.einsum("vz,vz->z", self.weights**2, [part.variance for part in self.parts])
        return variance

    def interval(self, coverage: float) -> tuple[Floats, Floats]:
        """Return intervals from those of the versions: the squares of weighted distances to their ends add up.

        So the intervals of one version alone are its own, and skew ends of small counts stay skew. Source of the rule
        (MOVER): Zou & Donner, "Construction of confidence limits about effect measures" (Statistics in Medicine 27,
        2008).
        """
        below, above = np.zeros_like(self.values), np.zeros_like(self.values)
        for weight, part in zip(self.weights, self.parts, strict=True):
            low, high = part.interval(coverage)
            below += (weight * (part.values - low)) ** 2
            above += (weight * (high - part.values)) ** 2
        return self.values - np.sqrt(below), self.values + np.sqrt(above)


@dataclass(frozen=True, eq=False)
class PooledShares(WeightedLinear):
    """A weighted mean of unbiased estimates of shares over one Z."""

    parts: Sequence[PureLinear]

    def noise(self) -> tuple[Floats, Floats]:
        """Return a and c, both of shape (|Z|,): the share r has the variance a + c r by which ``wls`` would weigh."""
        a, c = np.zeros_like(self.values), np.zeros_like(self.values)
        for weight, part in zip(self.weights, self.parts, strict=True):
            at_0, slope = weights_of(part.channel, self.values)
            a += weight**2 * at_0 / part.reports
            c += weight**2 * slope / part.reports
        return a, c

    def nearest(self, means: Floats, a: Floats, c: Floats) -> Floats:
        """Project shares onto the simplex; one without noise and without reports stays at 0. See ``onto_simplex``."""
        kept = (a > 0) | (self.values > 0)
        nearest: Floats = np.zeros_like(means)
        nearest[kept] = onto_simplex(means[kept], a[kept], c[kept])
        return nearest


def pool(parts: Sequence[PureLinear]) -> tuple[PooledShares, Floats]:
    """Pool the support counts of versions over one Z.

    The weights follow from a distribution r, and r from the weights: it is the projection of the mean onto the simplex,
    weighted by the noise, and for one version ``wls``. The start is the mean weighted by n, which depends on no
    variance. The joint maximum likelihood exists for versions of symbol reports alone, and is no closer to the truth.

    Args:
        parts: The versions, at least one; their channels may differ, but not the size of Z.

    Returns:
        The mean, and r of shape (|Z|,), which is on the probability simplex.

    Raises:
        ValueError: if there is no version, or if the sizes of Z differ.
    """
    if len({part.channel.size for part in parts}) != 1:
        raise RequestError("pooling needs versions over the same symbols, one or more")
    reports = np.array([part.reports for part in parts])
    unbiased = np.array([part.values for part in parts])
    r = project_to_simplex(reports @ unbiased / reports.sum())
    # At 0 and 1 a symbol may have no noise, but the ratios of the versions' variances have limits there.
    least = 1 / (reports.sum() + 1)
    for _ in range(_STEPS):
        at = np.clip(r, least, 1 - least)
        precisions = np.array([1 / part.channel.variance(at, part.reports) for part in parts])
        weights = precisions / precisions.sum(axis=0)
        mean = PooledShares(parts, weights)
        r = mean.nearest(mean.values, *mean.noise())
    return mean, r


def contradictions(parts: Sequence[Linear], coverage: float = 0.999) -> Mask:
    """Return the numbers for which two versions contradict each other: that they estimate one truth is improbable.

    The intervals of the versions hold all at once with probability ``coverage`` or more, by Bonferroni. If two of them
    are disjoint, they hold no common number.

    Returns:
        Shape (m,).
    """
    tests = len(parts) * len(parts[0].values)
    lows, highs = zip(*(part.interval(1 - (1 - coverage) / tests) for part in parts), strict=True)
    disjoint: Mask = np.max(lows, axis=0) > np.min(highs, axis=0)
    return disjoint


def contradiction_p_value(parts: Sequence[Linear], largest: float) -> float:
    """Return an upper bound of the probability that versions of one truth contradict each other as much as these do.

    It is the least p at which ``contradictions`` finds some number with the level 1 - p. Few versions contradict each
    other at all, so the p-values above ``largest`` are not told apart: they are 1.

    Args:
        parts: The versions, at least one.
        largest: The largest p-value of interest.
    """
    if not contradictions(parts, 1 - largest).any():
        return 1.0
    low, high = np.log([_LEAST_P_VALUE, largest])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if contradictions(parts, 1 - np.exp(middle)).any():
            high = middle
        else:
            low = middle
    return float(np.exp(high))


def by_reports(parts: Sequence[PureLinear]) -> PooledShares:
    """Return the mean weighted by the numbers of reports: unbiased for all users, whatever those of a version hold."""
    reports = np.array([part.reports for part in parts])
    return PooledShares(parts, np.tile(reports[:, np.newaxis] / reports.sum(), parts[0].channel.size))

"""One estimate from the counts of several versions of a collection, whose devices obfuscate differently.

The estimate over Z is the mean of the unbiased estimates of the versions, weighted by the inverse of their variances
for each symbol. A version's own counts must not decide its weight: a count that is low by chance has a low variance
too, so such weights pull the mean down. All variances are therefore those at one pooled distribution.

The mean estimates the users' distribution if the users of all versions are drawn from one population.
``contradictions`` finds symbols for which they cannot be.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from uldp.mechanisms.decoders.pure import ShareEstimate
from uldp.mechanisms.estimators.empirical_bayes import LEAST_VARIANCE, SMALLEST_CLASS
from uldp.mechanisms.estimators.prior import fitted_prior, posterior_moments, usual_shares
from uldp.mechanisms.estimators.projection import weights as weights_of
from uldp.mechanisms.estimators.simplex import onto_simplex
from uldp.mechanisms.laws.estimate import Estimate, weighted
from uldp.schemas.arrays import Floats, Mask, Symbols
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec

# Steps from the start to the pooled distribution; after two, the l1 error changes by less than 1 %.
_STEPS = 3


@dataclass(frozen=True, eq=False)
class PooledShares:
    """A mean of unbiased estimates over one Z, with weights (versions, |Z|) that sum to one for each symbol."""

    parts: Sequence[ShareEstimate]
    weights: Floats

    @cached_property
    def mean(self) -> Estimate:
        """The unbiased estimate."""
        return weighted(self.parts, self.weights)

    def noise(self) -> tuple[Floats, Floats]:
        """Return a and c, both of shape (|Z|,): the share r has the variance a + c r by which ``wls`` would weigh."""
        pairs = zip(self.weights, self.parts, strict=True)
        of_parts = [weight**2 * np.array(weights_of(of.channel, self.mean.values)) / of.reports for weight, of in pairs]
        a, c = np.sum(of_parts, axis=0)
        return a, c

    @cached_property
    def r(self) -> Floats:
        """Shape (|Z|,): the mean, projected onto the simplex by the noise; for one version ``wls``."""
        return self.nearest(self.mean.values, *self.noise())

    def nearest(self, means: Floats, a: Floats, c: Floats) -> Floats:
        """Project shares onto the simplex; one without noise and without reports stays at 0. See ``onto_simplex``."""
        kept = (a > 0) | (self.mean.values > 0)
        nearest: Floats = np.zeros_like(means)
        nearest[kept] = onto_simplex(means[kept], a[kept], c[kept])
        return nearest


def pool(parts: Sequence[ShareEstimate]) -> PooledShares:
    """Pool the support counts of versions over one Z, one or more, whose channels may differ.

    The weights follow from a distribution r, and r from the weights: it is that of the mean. The start is the mean
    weighted by n, which depends on no variance. The joint maximum likelihood exists for versions of symbol reports
    alone, and is no closer to the truth. RequestError if there is no version, or if the sizes of Z differ.
    """
    if len({part.channel.size for part in parts}) != 1:
        raise RequestError("pooling needs versions over the same symbols, one or more")
    mean = by_reports(parts)
    r = onto_simplex(mean.mean.values)
    # At 0 and 1 a symbol may have no noise, but the ratios of the versions' variances have limits there.
    least = 1 / (mean.mean.n[0] + 1)
    for _ in range(_STEPS):
        at = np.clip(r, least, 1 - least)
        precisions = np.array([1 / part.channel.variance(at, part.reports) for part in parts])
        mean = PooledShares(parts, precisions / precisions.sum(axis=0))
        r = mean.r
    return mean


def contradictions(parts: Sequence[Estimate], coverage: float = 0.999) -> Mask:
    """Return the numbers, shape (m,), for which two versions' intervals, which hold at once, are disjoint."""
    tests = len(parts) * len(parts[0].values)
    lows, highs = zip(*(part.interval(1 - (1 - coverage) / tests) for part in parts), strict=True)
    return np.asarray(np.max(lows, axis=0) > np.min(highs, axis=0))


def difference_p_value(parts: Sequence[ShareEstimate]) -> float:
    """Return the probability of so large a difference between some part and the largest one, if all have one truth.

    Each of the others is compared as ``whole_p_value`` does, with the errors that both have at their mean by reports,
    of reports of different devices; the bound is that of Bonferroni.
    """
    first, *others = sorted(parts, key=lambda part: part.reports, reverse=True)
    found = []
    for other in others:
        r = by_reports([first, other]).r
        one, two = (
            replace(each, parts=(replace(each.parts[0], theta=r, whole=partial(np.asarray, r)),), places=(0,))
            for each in (first, other)
        )
        found.append(whole_p_value(one.less(two))[1])
    return min(1.0, len(found) * min(found, default=1.0))


def by_reports(parts: Sequence[ShareEstimate]) -> PooledShares:
    """Return the mean weighted by the numbers of reports: unbiased for all users, whatever those of a version hold."""
    reports = np.array([part.reports for part in parts])
    return PooledShares(parts, np.tile(reports[:, np.newaxis] / reports.sum(), parts[0].channel.size))


def difference(spec: CollectionSpec, newest: CollectionSpec) -> str | None:
    """Return why two versions estimate other quantities; None if only epsilon, mechanism and such differ."""
    if set(spec.variables) != set(newest.variables):
        return "their records have other attributes"
    for name, variable in spec.variables.items():
        other, of = newest.variables[name], f" of {name}" if name else ""
        if variable.kind.quantities != other.kind.quantities:
            kind = other.kind if variable.kind.listed else variable.kind
            return f"their {kind.compared}{of} differ"
        if [tag.name for tag in variable.tags] != [tag.name for tag in other.tags]:
            return f"their tags{of} differ"
    return None


# Covariances of so many differences are exact, and of more from random weights.
_EXACT, _PROBES = 256, 64


def whole_p_value(difference: Estimate) -> tuple[float, float]:
    """Return the sum of squared differences in standard errors, over its expectation, and its p-value.

    If nothing differs, the differences d are about normal with Cov = C. So T = sum d_z^2 / C_zz has the expectation
    tr A and the variance 2 tr A^2, for A = D C D with D = C_zz^(-1/2); its law is about that of a chi-square with the
    same two moments. Source: Satterthwaite (Biometrics 2, 1946).

    Values of which less than one report is expected have no normal difference. They are added up, as the cells of other
    chi-square tests are: such a value has a variance below the square of the step of one user.
    """
    from scipy import special  # takes a quarter of a second, and devices need none

    cumulants = difference.cumulants
    rare = cumulants.variance < cumulants.step**2
    tested, variance = difference.values[~rare], cumulants.variance[~rare]
    if rare.any():
        together = rare.astype(np.float64)[:, np.newaxis]
        tested = np.append(tested, difference.values @ together)
        variance = np.append(variance, difference.variance_of(together))
    scale = np.where(variance > 0, 1 / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0)
    k, some = len(tested), float((variance > 0).sum())
    if not some:
        return 0.0, 1.0

    def spread(w: Floats) -> Floats:
        wide = np.empty((len(rare), w.shape[1]))
        wide[~rare], wide[rare] = w[: int((~rare).sum())], w[-1]
        return wide

    probes = np.eye(k) if k <= _EXACT else np.random.default_rng(0).choice([-1.0, 1.0], (k, _PROBES))
    moved = difference.times(spread(scale[:, np.newaxis] * probes))
    of_tested = np.vstack([moved[~rare], moved[rare].sum(axis=0)]) if rare.any() else moved
    squares = float(((scale[:, np.newaxis] * of_tested) ** 2).sum()) / (1 if k <= _EXACT else _PROBES)
    degrees, factor = some**2 / squares, squares / some
    statistic = float(((tested * scale) ** 2).sum())
    return statistic / some, float(special.chdtrc(degrees, statistic / factor))


# The grid has two points a standard deviation. A share of so many standard deviations or more needs no prior.
_POINTS_PER_DEVIATION, _CLEAR = 2, 10


def pooled_bayes(mean: PooledShares, bots: int) -> Floats:
    """Estimate r by posterior means, and project these onto the simplex, as ``empirical_bayes`` of one version.

    The symbols of a class have the same p and q in each version. The counts of a symbol are independent binomials, one
    of each version, so their likelihoods multiply. Shares of ``_CLEAR`` standard deviations stay unbiased.
    """
    means, variances = mean.mean.values.copy(), mean.mean.variance
    noisy = means < _CLEAR * np.sqrt(variances)
    a, c = mean.noise()
    for members in _classes(mean.parts, len(means) - bots):
        kept = members[noisy[members]]
        if len(kept) >= SMALLEST_CLASS:
            usual = max(float(mean.r[kept].sum()), 1 / float(mean.mean.n[0])) / len(kept)
            means[kept], of_posterior = _posterior(mean, kept, float(means[kept].max()), usual)
            a[kept], c[kept] = np.maximum(of_posterior, LEAST_VARIANCE * variances.max()), 0
    return mean.nearest(means, a, c)


def _classes(parts: Sequence[ShareEstimate], values: int) -> list[Symbols]:
    """Return the values with noise in all versions and the same p and q in each, for each such class."""
    rows = np.array([probabilities[:values] for part in parts for probabilities in (part.channel.p, part.channel.q)])
    different, of = np.unique(rows, axis=1, return_inverse=True)
    return [np.flatnonzero(of.ravel() == i) for i in np.flatnonzero((different[1::2] > 0).all(axis=0))]


def _posterior(mean: PooledShares, members: Symbols, largest: float, usual: float) -> tuple[Floats, Floats]:
    """Return the posterior mean and variance of each share of a class, both of shape (len(members),)."""
    parts, first = mean.parts, members[0]
    q = np.array([part.channel.noise(mean.mean.values)[first] for part in parts])
    p = q + np.array([part.channel.gain[first] for part in parts])
    n = np.array([part.reports for part in parts])

    def deviation(share: float) -> float:
        m = q + (p - q) * share
        return 1 / math.sqrt(np.sum(n * (p - q) ** 2 / (m * (1 - m))))

    shares = [0.0]
    while shares[-1] < min(largest + 4 * deviation(shares[-1]), 1.0):
        shares.append(shares[-1] + deviation(shares[-1]) / _POINTS_PER_DEVIATION)
    grid = np.union1d(np.minimum(shares, 1.0), usual_shares(usual))
    # Inside (0, 1), so that the logarithms are finite.
    m = np.clip(q[:, np.newaxis] + np.multiply.outer(p - q, grid), 1e-300, 1 - 1e-16)
    counts = np.array([part.counts[members] for part in parts])
    log_likelihood = counts.T @ np.log(m) + (n[:, np.newaxis] - counts).T @ np.log1p(-m)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    prior = fitted_prior(grid, usual, likelihood, np.ones((1, len(members)), dtype=np.int64))
    (means,), (variances,) = posterior_moments(grid, prior, likelihood)
    return means, variances

"""Shares of bins in an order, for sums over neighbours: what to publish of the reports of a tree.

Least squares over all levels is unbiased, but its single bins are noisy, and some are below 0. Each candidate mends
that by a prejudice of its own, and none suits all shapes. So the published shares are a mixture of two, by weights that
follow from reports which the fits have not seen: fits to one half of the reports, of which the unbiased estimate of the
other half knows the risk.

- *nearest*: the shares of 0 or more that are nearest to what all levels report, see ``Tree.nearest``. It suits users of
  whom most hold few of the bins. In an empty tail it keeps the noise that is above 0 and not that below, so that the
  sum of the tail is too large.
- *smooth* and *block James-Stein*: least squares with its waves shrunk, the terms of its cosine transform, of which the
  short ones are mostly noise; and then a monotone fit of the shares below edges. These have errors of both signs in an
  empty tail too, so the fit has little bias there.

Sources: Stein, "Estimation of the Mean of a Multivariate Normal Distribution" (Annals of Statistics 9, 1981), for the
strength of smoothing; Cai, "Adaptive Wavelet Estimation: A Block Thresholding and Oracle Inequality Approach" (Annals
of Statistics 27, 1999), for James and Stein's factor of each block; Barlow, Bartholomew, Bremner & Brunk, "Statistical
Inference under Order Restrictions" (1972), for monotone fits; Neufeld, Dharamshi, Gao & Witten, "Data Thinning for
Convolution-Closed Distributions" (Journal of Machine Learning Research 25, 2024), for halves of counts.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from uldp.schemas.arrays import Floats

# The reports are divided so many times. Twice as many change the errors of ranges by less than 1 %.
_SPLITS = 4
# How many strengths of smoothing are tried.
_STRENGTHS = 24
# The longest waves are never shrunk by blocks. The others are shrunk in blocks of 2 and more, each larger by a factor.
_KEPT, _FIRST_BLOCK, _GROWTH = 3, 2.0, 1.4
# The risk is of what is published of a range with random ends: its share, and those below both of its ends, on which
# quantiles depend. With the errors F below edges, its squared error is 2 (mean F^2 - (mean F)^2) + 2 mean F^2: half as
# much of (mean F)^2 as of mean F^2.
_OF_MEAN = 1 / 2


class Fit(NamedTuple):
    """What the reports of a window say, or half of them."""

    values: Floats  # shape (m,): the unbiased least squares estimate of the shares of bins; it sums to 1
    nearest: Floats  # shape (m,): the shares of 0 or more that are nearest to the reports
    noise: Floats  # shape (m,): the variances of the orthonormal cosine transform of ``values``; see ``cosine_noise``


#: Divides the reports by chance, and returns the fits of both halves.
Halve = Callable[[Generator], tuple[Fit, Fit]]


def ordered_shares(fit: Fit, halve: Halve | None, seed: int) -> Floats:
    """Return the mixture of two candidates with the least risk, of shape (m,): 0 or more, with the sum 1.

    If the reports cannot be divided, ``halve`` is None, and the shares are the nearest ones. The seed follows from the
    counts, so that equal counts have equal estimates.
    """
    if halve is None:
        return fit.nearest
    rng, found = np.random.default_rng(seed), []
    for _ in range(_SPLITS):
        one, other = halve(rng)
        found += [risk(candidates(seen), held.values) for seen, held in ((one, other), (other, one))]
    gram, linear = (np.sum(each, axis=0) for each in zip(*found, strict=True))
    return least_risk(gram, linear) @ np.array(candidates(fit))


def risk(fits: Sequence[Floats], unbiased: Floats) -> tuple[Floats, Floats]:
    """Return A and b; w^T A w - 2 w^T b estimates the risk of the mixture w of fits, without bias, up to a constant."""
    below, other = np.cumsum(fits, axis=1), np.cumsum(unbiased)
    sums = below.sum(axis=1)
    part = _OF_MEAN / (len(other) + 1) * sums
    return below @ below.T - np.outer(part, sums), below @ other - part * other.sum()


def candidates(fit: Fit) -> list[Floats]:
    """Return the candidates, each of shape (m,): nearest, smooth, and block James-Stein."""
    from scipy import fft  # SciPy takes long to import, and devices need none

    waves = fft.dct(fit.values, norm="ortho")
    shrunk = (smooth(waves, fit.noise), by_blocks(waves, fit.noise))
    return [fit.nearest, *(monotone(fft.idct(each, norm="ortho")) for each in shrunk)]


def smooth(waves: Floats, noise: Floats) -> Floats:
    """Shrink waves by a penalty on second differences, as strong as has the least risk of the shares below edges.

    Wave i is divided by 1 + l nu_i^2 v_i, where v_i is its variance and nu_i^2 the sum of its squared second
    differences. The shares below edges are sines of the same frequencies, so the squared errors of the waves add up
    there by the weights 1/nu_i, and the risk has an unbiased estimate. Each strength l halves one of the waves.
    """
    m = len(waves)
    nu = (2 * np.sin(np.pi * np.arange(m) / (2 * m))) ** 2
    penalty = nu**2 * noise
    halved = np.unique(np.rint(np.geomspace(1, m - 1, _STRENGTHS)).astype(np.int64))
    kept = 1 / (1 + penalty / penalty[halved, np.newaxis])
    risks = (((1 - kept) ** 2 * waves**2 + 2 * kept * noise)[:, 1:] / nu[1:]).sum(axis=1)
    return np.asarray(waves * kept[risks.argmin()])


def by_blocks(waves: Floats, noise: Floats) -> Floats:
    """Shrink waves by James and Stein's factor of their block, 1 - (sum of variances)/(sum of squares), or to 0."""
    shrunk, first, size = waves.copy(), _KEPT, _FIRST_BLOCK
    while first < len(waves):
        block = slice(first, first + int(size))
        squares = (waves[block] ** 2).sum()
        shrunk[block] *= max(1 - noise[block].sum() / squares, 0.0) if squares > 0 else 0.0
        first, size = block.stop, size * _GROWTH
    return shrunk


def monotone(values: Floats) -> Floats:
    """Return shares, 0 or more of the sum 1, whose sums below edges are nearest: falling neighbours are pooled."""
    levels: list[float] = []
    sizes: list[int] = []
    for level in np.cumsum(values)[:-1].tolist():
        size = 1
        while levels and levels[-1] > level:
            both = size + sizes[-1]
            level = (level * size + levels.pop() * sizes.pop()) / both
            size = both
        levels.append(level)
        sizes.append(size)
    below = np.repeat(np.clip(levels, 0.0, 1.0), sizes)
    return np.diff(below, prepend=0.0, append=1.0)


def cosine_noise(size: int, widths: Sequence[int], weights: Sequence[float]) -> Floats:
    """Return the variances of the cosine transform of least squares over a tree, shape (size,).

    The normal equations multiply what differs between blocks of a level, but not between wider ones, by the sum of
    weight times width over this level and all narrower ones; levels are given the widest first. Of the square of a wave
    of frequency t = pi i/size, the means of blocks of w bins keep the part (sin(w t/2) / (w sin(t/2)))^2. That is exact
    for full blocks, but for one wave in 2 w; sums over many waves are exact to 4 %.
    """
    half = np.pi * np.arange(1, size) / (2 * size)
    kept = np.array([(np.sin(width * half) / (width * np.sin(half))) ** 2 for width in widths])
    levels = np.diff(kept, axis=0, prepend=0.0).clip(0.0)
    inverse = np.cumsum((np.array(weights) * widths)[::-1])[::-1]
    return np.concatenate([[0.0], (levels / inverse[:, np.newaxis]).sum(axis=0)])


def least_risk(gram: Floats, linear: Floats) -> Floats:
    """Return weights w of 0 or more, with the sum 1 and at most two above 0, of the least w^T gram w - 2 w^T linear."""
    least, best = np.inf, np.zeros(len(linear))
    for one, other in combinations(range(len(linear)), 2):
        apart = gram[one, one] - 2 * gram[one, other] + gram[other, other]
        slope = linear[one] - linear[other] - gram[one, other] + gram[other, other]
        part = min(max(slope / apart, 0.0), 1.0) if apart > 0 else 0.0
        weights = np.zeros(len(linear))
        weights[[one, other]] = part, 1 - part
        found = float(weights @ gram @ weights - 2 * weights @ linear)
        if found < least:
            least, best = found, weights
    return best


def into_box(shares: Floats, low: Floats, high: Floats) -> Floats:
    """Return min(max(t shares, low), high) with the number t at which they sum to 1, by bisection.

    Shares of 0 stay at their lower ends. What a share loses so goes to the others in their proportion, and not to
    an empty tail. If no shares between the ends sum to 1, the result is the nearest end of all, divided by its sum.
    """
    if ((low <= shares) & (shares <= high)).all():
        return shares
    least, most = 0.0, 2.0
    while most < 1e9 and np.clip(most * shares, low, high).sum() < 1:
        most *= 2
    for _ in range(60):
        t = (least + most) / 2
        least, most = (t, most) if np.clip(t * shares, low, high).sum() < 1 else (least, t)
    found = np.clip(most * shares, low, high)
    return np.asarray(found / found.sum())

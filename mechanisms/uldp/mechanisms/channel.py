"""A mechanism as a known linear channel; this module defines how all estimates follow from support counts.

A report supports a set of symbols. If C_z of n reports support symbol z,

    E[C_z / n] = m_z = p_z r_z + q_z (1 - r_z)            r-hat_z = (C_z / n - q_z) / (p_z - q_z)

Wang et al. (USENIX Security 2017, section 3) call the channel pure if p and q are scalars. Vectors also cover the
utility-optimized mechanisms of Murakami & Kawamoto (USENIX Security 2019), where q is 0 on the non-sensitive symbols.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.intervals import clopper_pearson
from uldp.schemas.arrays import Counts, Floats


def _readonly(values: npt.ArrayLike) -> Floats:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class Channel:
    """The vectors p and q of a mechanism over Z.

    Attributes:
        p: Shape (|Z|,): probability that a report supports z, if its true symbol is z.
        q: Shape (|Z|,): probability that a report supports z, if its true symbol is not z.
        independent_bits: Whether a report holds one independent bit per symbol. Otherwise it supports a fixed number of
            symbols.
        supported: The fixed number of symbols, w. If it is 1, the counts are multinomial. If it is more, all symbols
            have the same p and q, and apart from the true symbol, all sets of w symbols are equally probable.
    """

    p: Floats
    q: Floats
    independent_bits: bool
    supported: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", _readonly(self.p))
        object.__setattr__(self, "q", _readonly(self.q))
        if self.p.ndim != 1 or self.p.shape != self.q.shape:
            raise ValueError(f"p and q must be vectors of one length, got shapes {self.p.shape} and {self.q.shape}")
        if not ((self.q >= 0) & (self.q < self.p) & (self.p <= 1)).all():
            raise ValueError("a channel needs 0 <= q < p <= 1 for every symbol; is epsilon 0?")
        if self.supported > 1 and (self.independent_bits or np.ptp(self.p) or np.ptp(self.q)):
            raise ValueError(
                "a channel of several supported symbols needs dependent bits, and the same p and q for all"
            )

    @property
    def size(self) -> int:
        """|Z|."""
        return len(self.p)

    @property
    def one_symbol(self) -> bool:
        """Whether each report supports one symbol, so that the counts determine the likelihood."""
        return not self.independent_bits and self.supported == 1

    @cached_property
    def gain(self) -> Floats:
        """p - q, by which a true symbol raises the probability of its own support."""
        return _readonly(self.p - self.q)

    def support_probability(self, r: Floats) -> Floats:
        """Return m, the probability that a report supports each symbol, if true symbols are distributed as ``r``."""
        return self.q + self.gain * r

    def unbiased(self, counts: Counts, n: int) -> Floats:
        """Estimate r without bias from support counts (eq. 3, solved for r); entries may be negative.

        Raises:
            ValueError: if ``n`` is not positive, or ``counts`` does not have the shape of p.
        """
        if n <= 0:
            raise ValueError(f"an estimate needs one report or more, got n={n}")
        if counts.shape != self.p.shape:
            raise ValueError(f"counts have shape {counts.shape}, but the channel has {self.size} symbols")
        return (counts / n - self.q) / self.gain

    def variance(self, r: Floats, n: int) -> Floats:
        """Return Var[r-hat_z] = m (1 - m) / (n (p - q)^2), for users' values that are drawn i.i.d. from ``r``."""
        m = self.support_probability(r)
        return m * (1 - m) / (n * self.gain**2)

    def variance_given_values(self, r: Floats, n: int) -> Floats:
        """Return Var[r-hat_z] from the devices' randomness alone, for users' values with the fixed histogram ``r``."""
        return (r * self.p * (1 - self.p) + (1 - r) * self.q * (1 - self.q)) / (n * self.gain**2)

    def covariance_factors(self, r: Floats) -> tuple[Floats, Floats]:
        """Return vectors s, u with n Cov[r-hat] = diag(s) - u u^T, for users' values that are i.i.d.

        If a report holds one symbol, Cov[C_i, C_j] = -n m_i m_j, so u = m / (p - q). If it holds one independent bit
        per symbol, E[y_i y_j] is linear in r and Cov[y_i, y_j] = -(p_i - q_i)(p_j - q_j) r_i r_j, so u = r.

        Raises:
            ValueError: if a report supports several symbols; only ``covariance_times`` covers them.
        """
        if self.supported > 1:
            raise ValueError("the covariance of a channel of several supported symbols has no such factors")
        u = r if self.independent_bits else self.support_probability(r) / self.gain
        return self.variance(r, 1) + u**2, u

    def pair_probabilities(self) -> tuple[float, float]:
        """Return E[y_i y_j] if the true symbol is i or j, and if it is neither, where a report supports w > 1 symbols.

        Beside its true symbol, a report supports w - 1 of the k - 1 others with probability p, and else w of them:

            p (w-1)/(k-1)        (p (w-1)(w-2) + (1-p) w (w-1)) / ((k-1)(k-2))
        """
        k, w, p = self.size, self.supported, float(self.p[0])
        return p * (w - 1) / (k - 1), (w - 1) * (p * (w - 2) + (1 - p) * w) / ((k - 1) * (k - 2))

    def covariance_times(self, r: Floats, w: Floats) -> Floats:
        """Return n Cov[r-hat] @ w for w of shape (|Z|, j), for users' values that are i.i.d., without the matrix.

        If a report supports several symbols, E[y_i y_j] = b + (a-b)(r_i + r_j) for i != j, with a and b from
        ``pair_probabilities``, and E[y_i^2] = m_i.
        """
        if self.supported == 1:
            s, u = self.covariance_factors(r)
            return s[:, np.newaxis] * w - np.outer(u, u @ w)
        a, b = self.pair_probabilities()
        m = self.support_probability(r)
        sums = w.sum(axis=0)
        pairs = b * sums + (a - b) * (np.outer(r, sums) + r @ w)
        moments = (m - b - 2 * (a - b) * r)[:, np.newaxis] * w + pairs
        product: Floats = (moments - np.outer(m, m @ w)) / self.gain[:, np.newaxis] ** 2
        return product

    def confidence_interval(self, counts: Counts, n: int, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return intervals that cover each r_z, one at a time, with probability ``level``.

        The method maps Clopper and Pearson's interval for m (a binomial proportion) through the channel. It covers with
        ``level`` or more at every count and every n, so that it is too wide for rare symbols: a count of 0 excludes no
        small share.

        Returns:
            Lower and upper ends, each of shape (|Z|,). They are not cut to [0, 1], so that they may be used as the ends
            of a part of a sum or of a difference.

        Raises:
            ValueError: under the same conditions as ``unbiased``, or if a count is not in 0..n.
        """
        self.unbiased(counts, n)  # checks the arguments
        # Many symbols share a count, and the ends of an interval cost a microsecond or more each.
        different, place = np.unique(counts, return_inverse=True)
        low, high = clopper_pearson(different, n, level)
        return (low[place] - self.q) / self.gain, (high[place] - self.q) / self.gain

    def expected_l1(self, r: Floats, n: int) -> float:
        """Return E[l1(r-hat, r)] of the unbiased estimate for large n: sqrt(2/pi) times the sum of standard deviations.

        Equations (12) for uRR and (17) for uRAP are this sum for their p and q.
        """
        return math.sqrt(2 / math.pi) * float(np.sqrt(self.variance(r, n)).sum())

    def expected_l2(self, r: Floats, n: int) -> float:
        """Return E[l2^2(r-hat, r)] of the unbiased estimate: the sum of variances.

        Equations (46) for uRR and (48) for uRAP (Appendix E) are this sum for their p and q.
        """
        return float(self.variance(r, n).sum())


def normal_quantile(probability: float) -> float:
    """Return Phi^-1, the quantile function of the standard normal distribution."""
    return NormalDist().inv_cdf(probability)

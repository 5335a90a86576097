"""The errors of least squares for the shares of strings: the law of a report of a cohort, and the estimate."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.kernels.common_holders import of_other_sign
from uldp.mechanisms.laws.cumulants import Cumulants
from uldp.mechanisms.laws.estimate import Estimate, part_of
from uldp.mechanisms.laws.law import Law
from uldp.mechanisms.strings.cohort_channel import Candidates, CohortCells, CohortChannel
from uldp.schemas.arrays import Floats, Rows


@dataclass(frozen=True, eq=False, kw_only=True)
class CandidateEstimate(Estimate):
    """The estimate of the shares of candidates.

    Attributes:
        together: Those that are fitted together, in ascending order.
        collisions: tau^2, the estimated sum of the squared shares of all strings but these.
    """

    together: Rows
    collisions: float


class CohortLaw(Law):
    """The law of a report about candidates.

    A report that supports a position of a candidate moves its share by one step, and else hardly. So the third cumulant
    of a share is taken as that of how often such an event happens.

    Args:
        size: K.
        channel: The law of the cells.
        response: See ``Law``.
    """

    def __init__(self, size: int, channel: CohortChannel, response: Law | None = None) -> None:
        self.size, self.channel, self.response = size, channel, response

    @abstractmethod
    def variance(self, theta: Floats) -> Floats:
        """Return the variance of each share, shape (K,)."""

    def each(self, theta: Floats) -> Cumulants:
        """See the base class."""
        variance, step, none = self.variance(theta), self._step, np.full(self.size, np.nan)
        return Cumulants(
            variance, variance * step * (1 - 2 * self.channel.chance), np.full(self.size, step), none, none
        )

    def one(self, w: Floats, theta: Floats) -> Cumulants:
        """See the base class; the third cumulant is as if all shares had one variance, and were independent."""
        variance, none = np.maximum((w * self.times(w, theta)).sum(axis=0), 0.0), np.full(w.shape[1], np.nan)
        step = self._step * (w**3).sum(axis=0) / np.maximum((w**2).sum(axis=0), 1e-300)
        lean = step * (1 - 2 * self.channel.chance)
        return Cumulants(variance, variance * lean, self._step * np.abs(w).max(axis=0), none, none)

    @property
    def _step(self) -> float:
        return self.channel.weight / self.channel.hashes


class CandidateLaw(CohortLaw):
    """The law of a report about candidates that are fitted together; theta is the shares of these.

    Three parts add to the covariance:

    - the noise and the draw of the cohort: G^-1 R G R G^-1, where R is diagonal and makes the variance of each score
      exact, by the probability that each position is supported;
    - the draw of the users: diag(f) - f f^T, of which local hashing has diag(f) in the first part. Users who hold two
      strings make their covariance less, by what no cell shows; see ``times``;
    - collisions with the strings that are no candidates, sum f^2 = tau^2: their hashes are fixed but unknown, so they
      have the covariance tau^2 s G^-1 / M, with s = ``CohortChannel.scatter``. It does not fall with n.

    Args:
        candidates: The candidates.
        channel: The law of the cells.
        fixed: n times ``CohortChannel.colliding``; a further report of a device adds no collisions.
        response: See ``Law``.
    """

    def __init__(
        self, candidates: Candidates, channel: CohortChannel, fixed: float = 0.0, response: "CandidateLaw | None" = None
    ) -> None:
        super().__init__(candidates.size, channel, response)
        self.candidates, self.fixed = candidates, fixed

    def times(self, w: Floats, theta: Floats) -> Floats:
        """See the base class.

        Of sets, ``w @ times(w)`` is the variance of a sum, or more. In a cohort in which two strings collide, who holds
        both supports their bucket as if it held one. So of weights of one sign it takes no user to hold both, and of
        two signs as many as hold the rarer.
        """
        candidates, channel, beta = self.candidates, self.channel, self.channel.covered
        variance = channel.row_variance(candidates.covered(theta))
        ratio = np.sqrt(channel.of_scores(candidates.sums(variance), variance) / candidates.units)[:, np.newaxis]
        inverse, f = candidates.inverse, theta[:, np.newaxis]
        solved = inverse @ w
        noise: Floats = inverse @ (ratio * (candidates.normal @ (ratio * solved))) - f * (theta @ w)
        if not channel.one_position:
            noise += f * w
        if channel.held > 1:
            noise -= of_other_sign(theta, w) * beta / (channel.p - beta)
        return noise + self.fixed * solved

    def variance(self, theta: Floats) -> Floats:
        """See the base class."""
        return np.diag(self.times(np.eye(self.size), theta)).copy()


def estimate_together(candidates: Candidates, cells: CohortCells) -> CandidateEstimate:
    """Return the unbiased estimate of candidates that are all fitted together, of reports of different devices."""
    values, channel = candidates.fit(cells), candidates.channel
    collisions = candidates.collisions(values, cells)
    response = None if cells.response is None else CandidateLaw(candidates, cells.response)
    law = CandidateLaw(candidates, channel, cells.n * channel.colliding(collisions), response)
    part, together = part_of(law, candidates.cut(values), cells.n), np.arange(candidates.size)
    return CandidateEstimate(values, np.full(len(values), cells.n), (part,), together=together, collisions=collisions)

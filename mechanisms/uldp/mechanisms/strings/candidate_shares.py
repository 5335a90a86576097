"""The shares of candidates by least squares, with their errors: the law of a report of a cohort, and the estimate.

The cells may tell few of many candidates apart. Then least squares are on those that are found, and on these with each
other one. Memory is bounded: the positions of candidates are hashed in blocks, each time that they are needed.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from uldp.mechanisms.laws.channel_laws import of_other_sign
from uldp.mechanisms.laws.estimate import Estimate, part_of
from uldp.mechanisms.laws.interval import normal_quantile
from uldp.mechanisms.laws.law import Cumulants, Law
from uldp.mechanisms.strings.cohort_channel import Candidates, CohortCells, CohortChannel, sums_at
from uldp.schemas.arrays import Floats, Rows, Symbols

# Each round hashes all positions; some are found only when the more frequent ones are fitted.
_ROUNDS = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class CandidateEstimate(Estimate):
    """The estimate of the shares of candidates."""

    together: Rows  # those that are fitted together, in ascending order
    collisions: float  # tau^2, the estimated sum of the squared shares of all strings but these


class CandidateLaw(Law):
    """The law of a report about candidates, of which some are fitted together; theta is the shares of all.

    Three parts add to the covariance of those that are fitted together:

    - the noise and the draw of the cohort: G^-1 R G R G^-1, where R is diagonal and makes the variance of each score
      exact, by the probability that each position is supported;
    - the draw of the users: diag(f) - f f^T, of which local hashing has diag(f) in the first part. Users who hold two
      strings make their covariance less, by what no cell shows; see ``times``;
    - collisions with the strings that are no candidates, sum f^2 = tau^2: their hashes are fixed but unknown, so they
      have the covariance tau^2 s G^-1 / M, with s = ``CohortChannel.scatter``. It does not fall with n.

    Estimates of the others are taken as uncorrelated, and as having the variances of one estimate, whatever theta is.

    A report that supports a position of a candidate moves its share by one step, and else hardly. So the third cumulant
    of a share is taken as that of how often such an event happens.

    ``together`` are the positions of those that are fitted among all, and ``alone`` the variances, (K,), of the others;
    ``fixed`` is n times the variance of a score by collisions, to which a further report of a device adds none.
    """

    def __init__(
        self,
        fit: Candidates,
        together: Rows,
        channel: CohortChannel,
        alone: Floats,
        fixed: float = 0.0,
        response: "CandidateLaw | None" = None,
    ) -> None:
        self.size, self.response = len(alone), response
        self._fit, self._together, self._channel = fit, together, channel
        self._alone, self._fixed = alone, fixed
        self._step = channel.weight / channel.hashes

    def each(self, theta: Floats) -> Cumulants:
        variance, step, none = self._alone.copy(), np.full(self.size, self._step), np.full(self.size, np.nan)
        variance[self._together] = np.diag(self._of_fit(np.eye(self._fit.size), theta))
        return Cumulants(variance, variance * self._step * (1 - 2 * self._channel.chance), step, none, none)

    def one(self, w: Floats, theta: Floats) -> Cumulants:
        """See the base class; the third cumulant is as if all shares had one variance, and were independent."""
        variance, none = np.maximum((w * self.times(w, theta)).sum(axis=0), 0.0), np.full(w.shape[1], np.nan)
        step = self._step * (w**3).sum(axis=0) / np.maximum((w**2).sum(axis=0), 1e-300)
        lean = step * (1 - 2 * self._channel.chance)
        return Cumulants(variance, variance * lean, self._step * np.abs(w).max(axis=0), none, none)

    def times(self, w: Floats, theta: Floats) -> Floats:
        """See the base class.

        Of sets, ``w @ times(w)`` is the variance of a sum, or more. In a cohort in which two strings collide, who holds
        both supports their bucket as if it held one. So of weights of one sign it takes no user to hold both, and of
        two signs as many as hold the rarer.
        """
        product: Floats = self._alone[:, np.newaxis] * w
        product[self._together] = self._of_fit(w[self._together], theta)
        return product

    def _of_fit(self, w: Floats, theta: Floats) -> Floats:
        """Return ``times`` of those that are fitted together."""
        fit, channel, beta = self._fit, self._channel, self._channel.covered
        shares = fit.cut(theta[self._together])
        variance, inverse, f = channel.row_variance(fit.covered(shares)), fit.inverse, shares[:, np.newaxis]
        ratio = np.sqrt(channel.of_scores(fit.sums(variance), variance) / fit.units)[:, np.newaxis]
        solved = inverse @ w
        noise: Floats = inverse @ (ratio * (fit.normal @ (ratio * solved))) - f * (shares @ w)
        if not channel.one_position:
            noise += f * w
        if channel.held > 1:
            noise -= of_other_sign(shares, w) * beta / (channel.p - beta)
        return noise + self._fixed * solved


@dataclass(frozen=True, eq=False)
class CandidateShares:
    """The shares of candidates, which may be too many for one normal matrix."""

    channel: CohortChannel
    symbols: Symbols
    together: int  # how many of them may be fitted together
    level: float  # the probability with which chance makes a candidate significant

    @cached_property
    def _whole(self) -> Candidates:
        return Candidates(self.channel, self.symbols)

    @cached_property
    def _units(self) -> Floats:
        """Shape (K,): the diagonal of the normal matrix."""
        channel, beta = self.channel, self.channel.covered
        (own,) = sums_at(channel, self.symbols, [np.ones((channel.cohorts, channel.positions))])
        return np.asarray(own * (1 - 2 * beta) / channel.cohorts + channel.positions * beta**2)

    @cached_property
    def reach_of_sum(self) -> float | None:
        """By how much one of n reports moves the sum of all shares at the most, times n.

        A report of a cohort counts for all candidates with its bucket there. None if not all candidates are fitted
        together, or a report supports several positions.
        """
        channel = self.channel
        if len(self.symbols) > self.together or not channel.one_position:
            return None
        fit = self._whole
        counted = (fit.covered(fit.inverse.sum(axis=0)) - channel.covered) / (channel.p - channel.q)
        return float(max(counted.max(), channel.held - counted.min()))

    def estimate(self, cells: CohortCells) -> CandidateEstimate:
        """Return the estimate of the shares of all candidates, of reports of different devices.

        Let S be the candidates that are found. Each candidate x has the estimate of least squares on S and x, so it has
        no collisions with S. Whether x itself is in S changes nothing, so its estimate is not larger because it was
        found. All others collide with x as strings do that are no candidates. Of few candidates, S is all of them.

        S is found in rounds, of estimates that are significant at ``level``. Errors of the first round include all
        collisions, so that strings that only collide with frequent ones are not found. (The candidates with the largest
        estimates would not do as S: chosen by their noise, they take from the shares of frequent strings.)
        """
        if len(self.symbols) <= self.together:
            return self._given(np.arange(len(self.symbols)), cells)
        least, found = -normal_quantile(self.level), self._given(np.zeros(0, dtype=np.int64), cells)
        for _ in range(_ROUNDS):
            z = found.values / np.sqrt(found.repeated(cells.repeats).variance)
            z[found.together] = np.inf
            following = np.argsort(-z, kind="stable")[: self.together]
            following = np.sort(following[z[following] > least])
            if len(following) == len(found.together):
                break
            found = self._given(following, cells)
        return found

    def _given(self, together: Rows, cells: CohortCells) -> CandidateEstimate:
        """Return the estimates with some candidates that are fitted together.

        For x outside of S, the estimate is D_x . e / (D_x . P D_x), where e are the residuals of S, and P projects onto
        what S leaves of the cells. D_x is random relative to S, so D_x . P D_x is taken as G_xx (1 - |S|/cells). Its
        deviation from that is about sqrt(2 |S|)/cells of it, .003 for 512 of 12,288.
        """
        channel, beta, k = self.channel, self.channel.covered, len(self.symbols)
        fit = self._whole if len(together) == k else Candidates(channel, self.symbols[together])
        fitted = fit.fit(cells)
        collisions = fit.collisions(fitted, cells)
        # Collisions do not fall with n, and a further report of a device adds none.
        fixed = cells.n * collisions * channel.scatter / channel.cohorts
        channels = [channel] if cells.response is None else [channel, cells.response]
        values, alone = np.zeros(k), [np.zeros(k) for _ in channels]
        if len(together) < k:
            residuals, left = fit.residuals(fitted, channel.corrected(cells)), self._units * channel.left(fit.size)
            covered = fit.covered(fit.cut(fitted))
            of_rows = [of.row_variance(covered) for of in channels]
            of_residuals, *sums = sums_at(channel, self.symbols, [residuals, *of_rows])
            values = (of_residuals - beta * residuals.sum()) / left
            shares = np.clip(values, 0.0, 1.0)
            of_users = (0.0 if channel.one_position else shares) - shares**2
            alone = [
                of.of_scores(of_sums, rows) / self._units / left + of_users
                for of, of_sums, rows in zip(channels, sums, of_rows, strict=True)
            ]
            alone[0] += fixed / left
        values[together] = fitted
        response = None if cells.response is None else CandidateLaw(fit, together, cells.response, alone[-1])
        law = CandidateLaw(fit, together, channel, alone[0], fixed, response)
        part = part_of(law, np.clip(values, 0.0, 1.0), cells.n)
        return CandidateEstimate(values, np.full(k, cells.n), (part,), together=together, collisions=collisions)

"""Unbiased mean Borda scores from answers about single pairs of candidates, at any number of reports.

A score less (k-1)/2 is the sum of b_v over the pairs v of a candidate, where b_v is the share of users who rank it
above the other one, less 1/2. A report draws one of P pairs, and debiased it is z = 1/(2g) or -1/(2g), of mean b_v,
with the gain g = p - q. Horvitz & Thompson's sum (P/n) sum z (JASA 47, 1952) is unbiased, while a mean of each pair is
not: of a pair without reports it has to be guessed. The former pays for the drawn numbers of reports, unless each z is
taken from a centre c_v near b_v that does not depend on it. So the estimate is the mean over reports i, of pair v, of

    phi_i = S c + P S_v (z_i - c_v)              c from all reports but i

where column v of S is 1 for its first candidate and -1 for its second. Given the other reports, the mean of phi_i over
the pair and the answer is S b, whatever c is. Reports of one cell have the same centre, so there are 2P of them.

With f = 1/(4g^2) - 1/4, the variance of an answer about a pair on which all users agree, the covariance of phi_i is

    P S diag(f + e) S' - (S (b - c))(S (b - c))'         e_v = 1/4 - 2 c_v b_v + c_v^2

The second term is what the numbers of reports cost less, because they sum to n. b follows from all reports, as c does.
The part of f is exact. The other is scaled so that the variances sum to those of the phi_i, which are unbiased, but of
one candidate rest on few reports. Two phi depend on each other by the part that each has in the centre of the other,
which is of the order 1/n^2, and is left out.
"""

import numpy as np

from uldp.mechanisms.laws.estimate import Estimate, part_of
from uldp.mechanisms.laws.law import Cumulants, Law
from uldp.schemas.arrays import Counts, Floats

# Differences of scores are stretched by each of these, because users may agree more or less about each pair.
_STRETCHES = (1.0, 2.0, 4.0, 16.0)
# So many fits at once stay in the cache of a core.
_TOGETHER = 32


class ScoresLaw(Law):
    """The law of phi of one report, whose covariance is known from all; it is taken as symmetric around its mean."""

    def __init__(self, covariance: Floats, response: Law | None = None) -> None:
        self._covariance, self.size, self.response = covariance, len(covariance), response

    def each(self, theta: Floats) -> Cumulants:
        return self.one(np.eye(self.size), theta)

    def one(self, w: Floats, theta: Floats) -> Cumulants:
        variance = np.maximum((w * self.times(w, theta)).sum(axis=0), 0.0)
        none = np.full(len(variance), np.nan)
        return Cumulants(variance, np.zeros(len(variance)), np.sqrt(variance), none, none)

    def times(self, w: Floats, theta: Floats) -> Floats:
        return np.asarray(self._covariance @ w)


def borda(answers: Counts, signs: Floats, gain: float, of_response: float | None = None) -> Estimate:
    """Estimate the scores; see the module.

    Args:
        answers: Shape (2, P): how many reports rank the first of each pair higher, and how many the second; one or more
            in all.
        signs: Shape (k, P): S.
        gain: g.
        of_response: That of the responses that devices keep, with their pair; None if they keep none.
    """
    (k, pairs), n = signs.shape, int(answers.sum())
    side, pair = np.nonzero(answers)
    often, z = answers[side, pair], np.where(side == 0, 0.5, -0.5) / gain
    starts = range(0, len(pair), _TOGETHER)
    centres = np.concatenate(
        [_centres_without(answers, side[at : at + _TOGETHER], pair[at : at + _TOGETHER], signs, gain) for at in starts]
    )
    alone = z - centres[np.arange(len(pair)), pair]
    phi = centres @ signs.T + pairs * alone[:, np.newaxis] * signs[:, pair].T
    scores = often @ phi / n
    agreed = _agreed(gain) * pairs * signs @ signs.T
    b = _centres(answers[:, np.newaxis], signs, gain)[0]
    off, spread = b - centres, np.maximum(0.25 - 2 * centres * b + centres**2, 0.0)
    off = off @ signs.T
    rest = pairs * (signs * (often @ spread / n)) @ signs.T - (off * often[:, np.newaxis]).T @ off / n
    found = float((often @ (phi - scores) ** 2).sum()) / max(n - 1, 1) - float(np.trace(agreed))
    known = float(np.trace(rest))
    scale = max(found, 0.0) / known if known > 0 else 0.0
    response = None
    if of_response is not None:
        response = ScoresLaw(_agreed(of_response) * pairs * signs @ signs.T + scale * rest)
    values = (k - 1) / 2 + scores
    return Estimate(values, np.full(k, n), (part_of(ScoresLaw(agreed + scale * rest, response), values, n),))


def _agreed(gain: float) -> float:
    """Return f."""
    return 1 / (4 * gain**2) - 0.25


def _centres_without(answers: Counts, side: Counts, pair: Counts, signs: Floats, gain: float) -> Floats:
    """Fit b once without a report of each of some cells; shape (cells, P)."""
    others = np.repeat(answers[:, np.newaxis], len(pair), axis=1)
    others[side, np.arange(len(pair)), pair] -= 1
    return _centres(others, signs, gain)


def _centres(answers: Counts, signs: Floats, gain: float) -> Floats:
    """Fit b to the answers of several samples; shape (2, samples, P) becomes (samples, P).

    Each candidate has the mean of its z, shrunk by the part of their variance that is noise. The differences of these
    are stretched, in the mean over ``_STRETCHES`` by their normal likelihoods, and each pair moves from there towards
    its own mean as far as the pairs differ more from the fit than by noise (DerSimonian & Laird, 1986).
    """
    reports, total = answers.sum(axis=0), (answers[0] - answers[1]) / (2 * gain)
    n, noise = np.maximum(reports.sum(axis=1, keepdims=True), 1), 1 / (4 * gain**2)
    of_each = np.maximum(reports @ (signs**2).T, 1)
    means = total @ signs.T / of_each
    size = np.maximum((means**2).mean(axis=1, keepdims=True), np.finfo(float).tiny)
    means *= np.maximum(1 - noise * (1 / of_each).mean(axis=1, keepdims=True) / size, 0.0)
    fits = [np.clip(stretch * (means @ signs), -0.5, 0.5) for stretch in _STRETCHES]
    losses = np.stack([((reports * fit - 2 * total) * fit).sum(axis=1, keepdims=True) / (2 * noise) for fit in fits])
    weights = np.exp(losses.min(axis=0) - losses)
    fit = sum(weight * each for weight, each in zip(weights / weights.sum(axis=0), fits, strict=True))
    own, some = total / np.maximum(reports, 1), reports > 0
    chance = np.maximum(noise - fit**2, 0.0)
    beyond = ((own - fit) ** 2 * reports - chance * some).sum(axis=1, keepdims=True) / n
    beyond = np.maximum(beyond, 0.0)
    trust = some * beyond / np.maximum(beyond + chance / np.maximum(reports, 1), np.finfo(float).tiny)
    centres: Floats = np.clip(fit + trust * (own - fit), -0.5, 0.5)
    return centres

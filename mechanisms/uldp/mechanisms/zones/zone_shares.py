"""Where the users behind a nested tag are: the shares of its zones from reports and from its background, together."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from uldp.mechanisms.estimators.simplex import onto_simplex
from uldp.mechanisms.zones.projective_response import ProjectiveResponse
from uldp.mechanisms.zones.zoning import Zoning
from uldp.schemas.arrays import Counts, Floats

# A Dirichlet distribution needs a strength above 0.
_LEAST_STRENGTH = 1e-3


@dataclass(frozen=True, eq=False)
class ZoneShares:
    """The shares of zones among the users behind a tag, and the background that follows."""

    shares: Floats  # shape (G,), on the probability simplex
    stderr: Floats  # shape (G,): their standard errors, infinite if nothing is known
    background: Floats  # shape (|X|,): where the users behind the tag are
    strength: float  # the number of draws that ``background`` is worth; NaN if unknown


class Scores(NamedTuple):
    """What a report counts in the unbiased shares of users in the zones of bots; each array has the shape (zones,)."""

    constant: Floats  # what each report counts
    near: Floats  # how much more one of the bot counts that is on the hyperplane of the zone
    far: Floats  # how much more any other of the bot counts
    on: Floats  # the part of all reports that is of the bot, and on the hyperplane
    off: Floats  # the part that is of the bot, and not on it

    @property
    def values(self) -> Floats:
        """The estimates."""
        return np.asarray(self.constant + self.on * self.near + self.off * self.far)


class BotReports(NamedTuple):
    """The reports of a bot among all.

    With h = P(y on the hyperplane of zone g | g), h' the same for another zone, r the share of users of the bot, and
    r_g that of users in the zone,

        E[S_g / n] = gain (h r_g + h' (r - r_g)) + q s/P         E[C / n] = gain r + q

    for the number S_g of reports on the hyperplane of g, and the number C of all reports of the bot. So

        r_g = (S_g / n - q s/P - h' (C / n - q)) / (gain (h - h'))
    """

    nest: ProjectiveResponse | None  # the answer about the zone; None without one
    counts: Counts  # shape (P,): those of the bot by point
    n: int  # the number of all reports
    gain: float  # p - q of the bot
    q: float  # q of the bot

    def scores(self) -> Scores:
        """Return the scores in r_g, and which reports have them; a bot that is not nested is one zone."""
        if self.nest is None:
            on, near, far, constant = self.counts, 1.0, 0.0, -self.q
        else:
            own, across = self.nest, self.nest.across
            contrast, plane = own.inside - across, own.hyperplanes.shape[1] / own.points
            on, near, far = own.on_hyperplanes(self.counts), (1 - across) / contrast, -across / contrast
            constant = self.q * (across - plane) / contrast
        one = np.full(len(on), 1 / self.gain)
        return Scores(constant * one, near * one, far * one, on / self.n, (self.counts.sum() - on) / self.n)

    def shares(self) -> tuple[Floats, Floats]:
        """Return the shares r_g / r of zones in the bot and their variances; 0 and infinite if it has no users."""
        of, behind = self.scores(), int(self.counts.sum()) / self.n - self.q
        if behind <= 0:
            return np.zeros_like(of.on), np.full_like(of.on, np.inf)
        shares = of.values * self.gain / behind
        moved = of.on * (of.near * self.gain - shares) ** 2 + of.off * (of.far * self.gain - shares) ** 2
        # At least that of one report, because a few reports may agree by chance.
        return shares, np.maximum(moved, 1 / self.n) / (self.n * behind**2)


def learn(zoning: Zoning, tag: int, reports: BotReports) -> ZoneShares:
    """Combine the reports of a nested tag with its background.

    Both weigh by their inverse variances. That of a background of strength m is the mean of pi (1 - pi) / (m + 1) over
    the zones; one of unknown strength says nothing of the shares of zones. The result is the point of the simplex that
    is nearest by the inverse variances. Its strength is that of a Dirichlet distribution whose variances have the same
    sum over the values.
    """
    shares, variances = reports.shares()
    mass, strength, count = zoning.masses(tag), float(zoning.pum.strength[tag]), len(shares)
    spread = float((mass * (1 - mass)).mean())
    # The precision of a background whose only mass is in one zone has to be finite.
    known = 0.0 if np.isnan(strength) else (strength + 1) / max(spread, 1 / count**2)
    precision = 1 / variances + known
    of_value, within = zoning.zones_of(tag).of_value, zoning.within(tag)
    if not precision.any():
        equal, unknown = np.full(count, 1 / count), np.full(count, np.inf)
        return ZoneShares(equal, unknown, equal[of_value] * within, np.nan)
    mean, variances = (shares / variances + mass * known) / precision, 1 / precision
    shares = onto_simplex(mean, variances)
    background = shares[of_value] * within
    of_zone = (shares**2 + variances) / (zoning.strength_within(tag) + 1)
    total = (variances[of_value] * within**2 + of_zone[of_value] * within * (1 - within)).sum()
    ratio = np.inf if total == 0 else (background * (1 - background)).sum() / total
    return ZoneShares(shares, np.sqrt(variances), background, float(np.maximum(ratio - 1, _LEAST_STRENGTH)))

"""Where the users behind a nested tag are: the shares of its zones from reports and from its background, together."""

from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.estimators.simplex import onto_simplex
from uldp.mechanisms.zones.projective_response import ProjectiveResponse
from uldp.mechanisms.zones.zoning import Zoning
from uldp.schemas.arrays import Counts, Floats

# A Dirichlet distribution needs a strength above 0.
_LEAST_STRENGTH = 1e-3


@dataclass(frozen=True, eq=False)
class ZoneShares:
    """The shares of zones among the users behind a tag, and the background that follows.

    Attributes:
        shares: Shape (G,), on the probability simplex.
        stderr: Shape (G,): their standard errors, infinite if nothing is known.
        background: Shape (|X|,): where the users behind the tag are.
        strength: The number of draws that ``background`` is worth; NaN if unknown.
    """

    shares: Floats
    stderr: Floats
    background: Floats
    strength: float


def measured_shares(nest: ProjectiveResponse, counts: Counts, n: int, gain: float, q: float) -> tuple[Floats, Floats]:
    """Estimate the shares of zones from the reports of one bot.

    With h = P(y on the hyperplane of zone g | g), h' the same for another zone, and r the share of users of the bot,

        E[S_g / n] = gain (h r_g + h' (r - r_g)) + q s/P         E[C / n] = gain r + q

    for the number S_g of reports on the hyperplane of g, and the number C of all reports of the bot. So r_g is linear
    in the counts, and r_g / r has its error by the delta method.

    Args:
        nest: The answer about the zone.
        counts: Shape (P,): reports by point.
        n: The number of all reports.
        gain: p - q of the bot.
        q: q of the bot.

    Returns:
        The shares, which need not be on the simplex, and their variances. If no users are behind the tag by these
        counts, shares are 0 and their variances infinite.
    """
    on_plane, total = nest.on_hyperplanes(counts), int(counts.sum())
    behind = total / n - q
    if behind <= 0:
        return np.zeros(nest.zones), np.full(nest.zones, np.inf)
    plane = nest.hyperplanes.shape[1] / nest.points
    contrast = nest.inside - nest.across
    shares = ((on_plane / n - q * plane) / behind - nest.across) / contrast
    # A report on the hyperplane moves gain n (r_g - share r) by the first factor, another one of the bot by the second.
    inner, outer = (1 - nest.across) / contrast - shares, -nest.across / contrast - shares
    moved = on_plane * inner**2 + (total - on_plane) * outer**2
    # At least that of one report, because a few reports may agree by chance.
    return shares, np.maximum(moved, 1.0) / (n * behind) ** 2


def learn(zoning: Zoning, tag: int, counts: Counts, n: int, gain: float, q: float) -> ZoneShares:
    """Combine the reports of a nested tag with its background.

    Both weigh by their inverse variances. That of a background of strength m is the mean of pi (1 - pi) / (m + 1) over
    the zones; one of unknown strength says nothing of the shares of zones. The result is the point of the simplex that
    is nearest by the inverse variances. Its strength is that of a Dirichlet distribution whose variances have the same
    sum over the values.

    Args:
        zoning: The values, tags and zones.
        tag: The position of a nested tag.
        counts: Shape (P,): reports by point.
        n: The number of all reports.
        gain: p - q of the bot of the tag.
        q: q of the bot of the tag.
    """
    nest = zoning.nests[tag]
    assert nest is not None
    shares, variances = measured_shares(nest, counts, n, gain, q)
    mass, strength = zoning.masses(tag), float(zoning.pum.strength[tag])
    spread = float((mass * (1 - mass)).mean())
    # The precision of a background whose only mass is in one zone has to be finite.
    known = 0.0 if np.isnan(strength) else (strength + 1) / max(spread, 1 / nest.zones**2)
    precision = 1 / variances + known
    zones, within = zoning.zones[tag], zoning.within(tag)
    assert zones is not None
    of_value = zones.of_value
    if not precision.any():
        equal, unknown = np.full(nest.zones, 1 / nest.zones), np.full(nest.zones, np.inf)
        return ZoneShares(equal, unknown, equal[of_value] * within, np.nan)
    mean, variances = (shares / variances + mass * known) / precision, 1 / precision
    shares = onto_simplex(mean, variances)
    background = shares[of_value] * within
    of_zone = (shares**2 + variances) / (zoning.strength_within(tag) + 1)
    total = (variances[of_value] * within**2 + of_zone[of_value] * within * (1 - within)).sum()
    ratio = np.inf if total == 0 else (background * (1 - background)).sum() / total
    return ZoneShares(shares, np.sqrt(variances), background, float(np.maximum(ratio - 1, _LEAST_STRENGTH)))

"""Projective geometry response: an answer about one of many zones is one symbol of few, and spends a small budget.

Source: Feldman, Nelson, Nguyen & Talwar, "Private Frequency Estimation via Projective Geometry" (ICML 2022). It is as
accurate as subset selection, up to a few percent, and its report is one symbol. The rule for the field is ours.
"""

import math

import numpy as np

from uldp.mechanisms.kernels.projective_space import ProjectiveSpace, number_of_points, primes
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.schemas.arrays import Counts, Floats, Mask, Symbols, Values


class ProjectiveResponse:
    """A channel from zones to the points of a projective space over the integers modulo a prime g.

    Points are those of ``ProjectiveSpace``, and zone i is point i. Its hyperplane is the points y with
    sum_l x_l y_l = 0 modulo g, where x is the point of the zone.

        P = (g^m - 1) / (g - 1) points       s = (g^(m-1) - 1) / (g - 1) on a hyperplane
                                             t = (g^(m-2) - 1) / (g - 1) on any two hyperplanes

    With D = s + (P - s) c, a point on the hyperplane of the zone has probability 1/D, any other c/D. So two zones
    differ by at most a factor 1/c at each point. Both follow one rule: with probability P c/D report a uniform point,
    otherwise a uniform point of the hyperplane.

    Where the answer is all of a report, c = e^-epsilon. Where it is a part of a report of ``NestedResponse``, some
    reports have a uniform point whatever the zone. The answers of the others may differ by more, so that those of all
    differ by e^epsilon:

        c = (e^-epsilon - e^-report) / (1 - e^-report)

    g is the prime nearest to e^epsilon + 1, the smaller one of two, but not above the first prime from G - 1 on, for G
    zones. m is the least number from 2 with P >= G.
    """

    def __init__(self, zones: int, epsilon: float, report: float = math.inf) -> None:
        """Build the channel of G zones and a budget in nats.

        ``report`` is the budget of the report that has the answer as a part; infinite if the answer is all of it.
        ValueError if there are fewer than two zones, or epsilon is not positive, or above ``report``.
        """
        if zones < 2 or not epsilon > 0:
            raise ValueError(f"an answer about a zone needs two zones and a budget, got {zones} and {epsilon:g}")
        if epsilon > report:
            raise ValueError(f"the budget of an answer is {epsilon:g}, which is above that of the report, {report:g}")
        candidates = primes(2 * zones)
        candidates = candidates[: np.searchsorted(candidates, zones - 1) + 1]
        g = min(candidates.tolist(), key=lambda prime: (abs(prime - math.exp(epsilon) - 1), prime))
        m = next(m for m in range(2, zones + 2) if number_of_points(g, m) >= zones)
        space = ProjectiveSpace(g, m)
        s, t = space.on_hyperplane, number_of_points(g, m - 2)
        far = (math.exp(-epsilon) - math.exp(-report)) / -math.expm1(-report)  # c
        self.zones, self.points = zones, space.points  # G, P
        self.on_plane = 1 / (s + (self.points - s) * far)  # 1/D, of a point on the hyperplane of the zone
        self.uniform_probability = self.points * far * self.on_plane  # P c/D, of a report that is a uniform point
        self.inside = s * self.on_plane  # the probability of a report on the hyperplane of its own zone
        self.across = (t + (s - t) * far) * self.on_plane  # that of one on the hyperplane of a given other zone
        vectors = space.digits(space.vectors(np.arange(space.points)))
        #: Shape (G, s): the points on the hyperplane of each zone, in ascending order.
        self.hyperplanes: Symbols = np.stack([np.flatnonzero(vectors @ vector % g == 0) for vector in vectors[:zones]])

    def perturb(self, zones: Values, uniform: Mask, randomness: Randomness) -> Symbols:
        """Perturb zones (n,) into points, where ``uniform`` into any; the draws are the same for all."""
        n = len(zones)
        anywhere = uniform | (randomness.random(n) < self.uniform_probability)
        drawn = randomness.integers(0, self.points, n)
        on_plane = self.hyperplanes[zones, randomness.integers(0, self.hyperplanes.shape[1], n)]
        return np.where(anywhere, drawn, on_plane)

    def on_hyperplanes(self, counts: Counts) -> Counts:
        """Sum counts of shape (P,) over the hyperplane of each zone; shape (G,)."""
        return np.asarray(counts[self.hyperplanes].sum(axis=1))

    def law(self, shares: Floats) -> Floats:
        """Return the probability of each point, shape (P,), if zones are distributed as ``shares``, times its sum."""
        law = np.full(self.points, shares.sum() * self.uniform_probability / self.points)
        of_zone = shares * (self.on_plane - self.uniform_probability / self.points)
        np.add.at(law, self.hyperplanes, of_zone[:, np.newaxis])
        return law
